"""Queries over the same windows, evaluated together: windows, patterns and equal parts of plans are there once."""
