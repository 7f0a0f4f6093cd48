"""The incremental operators: a difference of bags in, a difference of bags out."""
