"""What numbers, aggregates, orders and templates mean: shared by both evaluators."""
