"""Cutting plans into shards that need nothing of each other, and merging the answers of the shards."""
