"""Mistakes of a query over its data that give empty or wrong answers; one rule per file."""
