"""The same on Spark: session, source, stateful step and runner."""
