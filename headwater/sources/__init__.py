"""Where streams come from: files, memory, Kafka, MQTT, sockets, DataFrames; the feed and its offsets."""
