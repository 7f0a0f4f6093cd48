"""Maintenance policies: which entries of a view are refreshed at a tick."""
