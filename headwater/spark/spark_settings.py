"""The settings of Spark that are set here, each with the reason. PySpark has no constants for their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
STATE_PARTITIONS = "spark.sql.streaming.internal.stateStore.partitions"
"""In how many parts Spark cuts the state of streaming queries, where that is not the number of shuffle partitions.

Spark calls it internal; there is no other setting that leaves the rest of a session as it is. A test holds it.
"""
_ARROW_BYTES = 4 << 20
STATEFUL_SETTINGS = {
    # The state may be larger than the memory of Java.
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
    "RocksDBStateStoreProvider",
    # A batch writes its changes to the checkpoint, not all of the state.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Event time moves with elements alone, so a batch without any has no answers.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
"""What a query with the stateful step must have when it starts."""

LOCAL_SETTINGS = {
    # Files of the checkpoint are renamed as always, but without a process that is started to set their permissions.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
    "FileSystemBasedCheckpointFileManager",
    # Java and Python talk through sockets in files, which is quicker than through the network of the machine.
    "spark.python.unix.domain.socket.enabled": "true",
}
"""What a session has besides where all of Spark is on this machine."""

# The work is done in Python. With Java's quick compiler alone, start-up and small batches take about half. The young
# generation (-Xmn) is large enough that what comes and goes with a batch is collected in it.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def session_settings(master: str, java_megabytes: int, java_options: str, shuffle_partitions: int) -> dict[str, str]:
    """The settings of a session that is started here."""
    options = f"{_JAVA_OPTIONS} -Xmn{java_megabytes // 3}m {java_options}"
    return {
        "spark.master": master,
        "spark.app.name": "headwater",
        "spark.driver.extraJavaOptions": options.strip(),
        "spark.driver.memory": f"{java_megabytes}m",
        # The name of the machine may have no address, and no other machine needs to connect.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # No web page, no progress bar and no warnings: answers are printed here.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # Times in DataFrames of answers are the same on every machine.
        "spark.sql.session.timeZone": "UTC",
        SHUFFLE_PARTITIONS: str(shuffle_partitions),
    }


def dataframe_settings() -> dict[str, str]:
    """What a session must have when somebody else starts a query over the stateful step, which is not cut there.

    The session of another has 200 shuffle partitions, each of which would be a task of the stateful step.
    """
    return {**STATEFUL_SETTINGS, STATE_PARTITIONS: "1"}


def query_settings(shards: int, *, adapts: bool = False) -> dict[str, str]:
    """The settings that a streaming query takes at its start; `adapts`: somebody else has planned a part of it."""
    return {
        **STATEFUL_SETTINGS,
        # One partition for each shard.
        SHUFFLE_PARTITIONS: str(shards),
        STATE_PARTITIONS: str(shards),
        # The plan has one exchange, whose partitions are fixed: nothing to adapt, and each look at it costs a job.
        **({} if adapts else {"spark.sql.adaptive.enabled": "false"}),
        # Chunks go to the stateful step in packets of this size: while Python takes one, Java makes the next.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(_ARROW_BYTES),
    }


REALTIME_ROWS = 128
"""How many rows an Arrow batch has in real-time mode, those among them that only push a record on its way."""
REALTIME_SETTINGS = {
    # Rows go to Python while its answers to those before come back.
    "spark.python.udf.pipelined.enabled": "true",
    # Saves about 40 ms for each record.
    "spark.python.unix.domain.socket.enabled": "true",
    # A record that is alone does not wait for others on its way through the shuffle.
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "2",
}
"""What Spark must be started with for real-time mode."""


def realtime_query_settings() -> dict[str, str]:
    """The settings that a streaming query in real-time mode takes at its start."""
    return {
        # The list of operators that Spark allows names none of Python.
        "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(REALTIME_ROWS),
        # What Java writes for Python is sent when an Arrow batch is full, not when a buffer is.
        "spark.sql.execution.pandas.udf.buffer.size": "4",
    }


@contextmanager
def set_for_a_while(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set what a streaming query takes at its start, then restore the settings of the session."""
    before = dict(spark.conf.getAll)
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            if name in before:
                spark.conf.set(name, before[name])
            else:
                spark.conf.unset(name)
