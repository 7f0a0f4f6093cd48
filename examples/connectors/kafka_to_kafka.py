r"""From a Kafka topic to a Kafka topic, on Spark.

python examples/connectors/kafka_to_kafka.py [localhost:9092]

Spark's Kafka connector is fetched by its Maven coordinates the first time (docs/how-to/kafka.md). The same from a
command line, for as long as it may run:
headwater run examples/cars-per-district.rq --data examples/city.ttl --follow --checkpoint state \
  --stream http://city/tollgates=kafka://localhost:9092/gates \
  --template http://city/tollgates=examples/connectors/gates.template \
  --out kafka://localhost:9092/answers
"""

from __future__ import annotations

import sys
import uuid

from gates import CITY, QUERY, STREAM, TEMPLATE, messages

import headwater as hw

SERVERS = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"
RUN = uuid.uuid4().hex[:6]

engine = hw.Engine()
source = hw.kafka(SERVERS, f"gates-{RUN}", template=TEMPLATE)
sink = hw.KafkaSink(SERVERS, f"answers-{RUN}", per="row")
spark = engine.session()
sink.open(spark)
target = {"kafka.bootstrap.servers": SERVERS, "topic": f"gates-{RUN}"}
gates = spark.createDataFrame([(message,) for message in messages()], "value string")
gates.coalesce(1).write.format("kafka").options(**target).save()

engine.stream(STREAM, source)
engine.dataset(CITY / "city.ttl")
engine.register(QUERY)
summary = engine.run(sinks=[sink])
print(f"{summary.elements} elements, {summary.ticks} answers")

asked = {"kafka.bootstrap.servers": SERVERS, "subscribe": f"answers-{RUN}"}
for record in spark.read.format("kafka").options(**asked).load().orderBy("partition", "offset").collect():
    print(bytes(record.key).decode(), bytes(record.value).decode())
