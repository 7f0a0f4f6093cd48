"""Benchmarks: each module with a main function prints one JSON object last; `make bench` runs them all."""
