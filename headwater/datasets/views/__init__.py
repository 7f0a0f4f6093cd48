"""The solutions of the static parts of plans, kept as views and followed as the data changes."""
