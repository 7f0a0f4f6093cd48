"""The local view: entries with their age, and how good the answers are that are made from them."""
