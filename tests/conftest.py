"""What all tests share: one Spark session for the whole run, and how much hypothesis generates.

A session takes 8 to 20 seconds to start, so there is one, started by the first test that asks for it. A test
that takes the fixture `spark` carries the marker of the same name, so `pytest -m "not spark"` needs no Java.
Two processes may share the tests (`pytest -n 2 --dist loadgroup`): one of them has all that need Spark, and the tests
of a file stay together.
An ordinary run generates the same examples each time, so that it says something about the change and not about chance.
`HYPOTHESIS_PROFILE=soak` (what `make soak` sets) generates far more, and others each time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[1]
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

# Examples are slow when the machine is busy: that says nothing about the code under test.
settings.register_profile(
    "default",
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize=True,
)
settings.register_profile("soak", settings.get_profile("default"), max_examples=2_000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that need Spark, before `-m` looks at the markers, and those that one process has to take."""
    for item in items:
        needs_spark = "spark" in getattr(item, "fixturenames", ())
        if needs_spark:
            item.add_marker("spark")
        item.add_marker(pytest.mark.xdist_group("spark" if needs_spark else item.path.stem))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small local session whose streaming state lives in RocksDB, as it does in a pipeline."""
    from pyspark.sql import SparkSession

    from headwater.spark.process_server import Launcher

    launcher = Launcher({}) if Launcher.is_possible() else None
    python = sys.executable if launcher is None else str(launcher.program)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = python
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"

    session = (
        SparkSession.builder.master("local[2]")
        .appName("headwater-tests")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    if launcher is not None:
        launcher.close()


@pytest.fixture(scope="session")
def mosquitto_executable() -> str:
    """The program of a real MQTT broker; it is installed where that is allowed."""
    pytest.importorskip("paho.mqtt", reason="the extra connectors is not installed")
    from tests.sources.mosquitto_broker import find_mosquitto

    if (found := find_mosquitto()) is not None:
        return found
    install = subprocess.run([PROJECT / "scripts" / "apt-install", "mosquitto"], capture_output=True, text=True)
    if (found := find_mosquitto()) is None:
        pytest.skip(f"no MQTT broker; type: sudo apt-get install mosquitto. {install.stderr.strip()}")
    return found


@pytest.fixture(scope="session")
def kafka_command() -> list[str]:
    """The command that runs a class of Kafka, whose jars are fetched."""
    from headwater.sources.jar_checksums import JarError
    from tests.sources.kafka_broker import java_with_kafka

    try:
        return java_with_kafka()
    except JarError as error:
        pytest.skip(f"no Kafka broker: {error}")


@pytest.fixture
def collide() -> Iterator[Callable[..., None]]:
    """Has ids keep so many bits of the hash, so that terms collide; all of them again after the test.

    A seed chooses which bits; without one they are the lowest.
    """
    from headwater.terms.ids.term_key import use_hash_bits

    def use_bits(bits: int, seed: int | None = None) -> None:
        places = range(bits) if seed is None else Random(seed).sample(range(63), bits)
        use_hash_bits(sum(1 << place for place in places))

    yield use_bits
    use_bits(63)
