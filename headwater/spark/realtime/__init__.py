"""Spark's real-time mode: records are answered as they come, and a checkpoint is written every few seconds."""
