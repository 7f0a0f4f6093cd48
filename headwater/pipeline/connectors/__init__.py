"""Streams that come from elsewhere than files, and how they join the pipeline.

Two ways in:

- *Records* (`records`): a streaming DataFrame of Spark, from Kafka (`kafka`) or of the caller's own (`dataframe`).
  Spark keeps its offsets; the workers turn its rows into chunks (`record_chunks`).
- *Receivers* (`receiving`): MQTT (`mqtt`), lines over TCP and WebSocket (`sockets`). A receiver in the driver writes
  what arrives into a folder of `.tnq` files (`spool`), which the ordinary file source follows: from receipt on, replay
  and exactly-once are those of files.

`payloads` says what the bytes of a message mean; `addresses` reads `kafka://…` and the like from a command line; `jars`
sees to Spark's Kafka connector; `outages` says what is worth another try.
"""
