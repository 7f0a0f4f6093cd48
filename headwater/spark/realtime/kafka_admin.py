"""What a broker says of topics, asked with the Java client that Spark's connector brings along."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headwater.sources.outages import is_missing_topic, is_outage
from headwater.sources.source import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIX = "kafka."
_SECONDS = 30
_ADMIN_SETTINGS = {"default.api.timeout.ms": "15000", "request.timeout.ms": "10000"}
"""The client gives up before its caller does, and says why."""
_SOURCE_CLASS = "org.apache.spark.sql.kafka010.KafkaSourcePartitionOffset"


def java_of(spark: SparkSession) -> Any:
    """The gateway to the Java classes of a session's driver."""
    return spark.sparkContext._jvm


def is_connector_loaded(spark: SparkSession) -> bool:
    """Whether Spark itself was started with its Kafka connector.

    Jars that are added to a session serve its queries alone. In real-time mode tasks also send offsets of the connector
    back, and what takes them knows only what Java was started with.
    """
    java = java_of(spark)
    loader = java.org.apache.spark.util.Utils.getSparkClassLoader()
    return loader.getResource(f"{_SOURCE_CLASS.replace('.', '/')}.class") is not None


def can_ask_broker(spark: SparkSession) -> bool:
    """Whether this thread of the session's driver finds the Java client: a session that was started without may not."""
    # What is no class is taken for a package.
    return type(java_of(spark).org.apache.kafka.clients.admin.Admin).__name__ == "JavaClass"


def java_client_settings(spark: SparkSession, options: Mapping[str, str], more: Mapping[str, str] | None = None) -> Any:
    """A Java map of settings for a Kafka client: the options of Spark's connector without their prefix, and `more`."""
    settings = java_of(spark).java.util.HashMap()
    for name, value in options.items():
        if name.startswith(_PREFIX):
            settings.put(name.removeprefix(_PREFIX), value)
    for name, value in (more or {}).items():
        settings.put(name, value)
    return settings


def count_partitions(spark: SparkSession, options: Mapping[str, str], topics: Iterable[str]) -> dict[str, int]:
    """How many partitions each topic has; a `SourceError` where there is none of that name."""
    java = java_of(spark)
    names = java.java.util.ArrayList()
    for topic in topics:
        names.add(topic)
    admin = java.org.apache.kafka.clients.admin.Admin.create(java_client_settings(spark, options, _ADMIN_SETTINGS))
    try:
        found = admin.describeTopics(names).allTopicNames().get(_SECONDS, java.java.util.concurrent.TimeUnit.SECONDS)
        return {topic: found.get(topic).partitions().size() for topic in names}
    except Exception as error:
        if is_outage(error):
            servers = options.get("kafka.bootstrap.servers")
            raise SourceError(f"no Kafka broker answers at {servers}: check the address, and that it runs") from error
        if is_missing_topic(error):
            raise SourceError(
                f"the broker has no topic {', '.join(names)}: real-time mode needs it, so make it"
            ) from None
        raise
    finally:
        admin.close(java.java.time.Duration.ofSeconds(1))
