"""Where answers go: text, files, Kafka; and the dead letters."""
