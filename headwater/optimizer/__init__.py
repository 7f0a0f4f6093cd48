"""Rewrites of plans that keep every answer: `optimise` applies the ordered list in `rules`."""
