"""Runs: a batch evaluated, counted and delivered, checkpoints, and the runner without Spark."""
