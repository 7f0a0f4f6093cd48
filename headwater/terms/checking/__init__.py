"""Limits on what comes from outside, checked before a parser sees it."""
