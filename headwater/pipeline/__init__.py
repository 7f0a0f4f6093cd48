"""From sources to answers: in this process, or on Spark.

Along the way of the data: `sources` say where a stream comes from, `feed` cuts them into batches and reads them,
`evaluation` puts a batch through the queries, `delivery` hands the outcome over, `sinks` write answers as text and
`dead_letters` what could not be used. `in_process` is the loop without Spark; `spark_source`, `stateful` and
`spark_runner` are the same on Spark; `engine` is what people call.
"""
