"""Joins over runs of ticks, and joins by comparison: what needs no operator."""
