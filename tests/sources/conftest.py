"""One Kafka broker for all tests that need it, and a session with Spark's Kafka connector.

Both come by their Maven coordinates. Where they cannot be had, for want of Maven or of a network, the tests that need
them are skipped and say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from headwater.sources.jar_checksums import JarError
from headwater.sources.kafka_jars import ensure_kafka
from tests.sources.kafka_broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker on loopback; a test that ends it starts it again."""
    try:
        made = Broker(tmp_path_factory.mktemp("kafka"))
    except JarError as error:
        pytest.skip(f"no Kafka broker: {error}")
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="session")
def kafka_spark(spark: SparkSession) -> SparkSession:
    """The session of the tests, with Spark's Kafka connector."""
    try:
        ensure_kafka(spark)
    except JarError as error:
        pytest.skip(f"no Kafka connector: {error}")
    return spark
