"""The Spark session: an embedded one that is quiet and small, or the caller's own.

Java is looked at before Spark is started, because Spark itself says only that its gateway went away.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError
from headwater.spark.java_classes import archive, using
from headwater.spark.process_server import Launcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
_IS_LOCAL = re.compile(r"local(\[|$)")
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATEFUL = {
    "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Time moves by the elements alone, so a batch without any has nothing to say.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
"""What a query with the stateful step must have when it starts."""


# The work is done in Python. With Java's quick compiler alone, start-up and small batches take about half. What comes
# and goes with a batch has room enough to go before anybody looks at it.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_MOST_JAVA_MEGABYTES = 3072
_ONE_MACHINE = {
    # Files of the checkpoint are renamed as always, but without a process that is started to set their permissions.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
    "FileSystemBasedCheckpointFileManager",
}


class JavaError(HeadwaterError, RuntimeError):
    """No Java that Spark can use; the message says the command that installs one."""


def java_version(text: str) -> int | None:
    """The major version in the output of `java -version`: 8 for "1.8.0_392", 17 for "17.0.15"."""
    match = re.search(r'version "(?:1\.)?([0-9]+)', text)
    return int(match.group(1)) if match else None


def check_java() -> str:
    """What the Java that Spark will find says of itself; `JavaError` unless it is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    found = "found none"
    if java:
        try:
            run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
            said = run.stderr + run.stdout
            version = java_version(said)
        except (OSError, subprocess.SubprocessError):
            version = None
        if version is not None and version >= OLDEST_JAVA:
            return said
        found = f"{java} " + ("does not run" if version is None else f"is Java {version}")
    raise JavaError(
        f"Spark needs Java {OLDEST_JAVA} or newer; {found}. "
        "Type: sudo apt-get install openjdk-17-jre-headless (and let JAVA_HOME name it, or unset JAVA_HOME); "
        "or run in process, without Spark: Engine(in_process=True), headwater run --in-process"
    )


def embedded_session(
    *, master: str = "local[*]", shuffle_partitions: int = 1, java_options: str | None = None
) -> SparkSession:
    """The session of this process, or the one of spark-submit; if there is none: local, without a web page, in UTC.

    What the Java process prints goes to a file, because answers are printed here; `HEADWATER_DEBUG=1` shows it.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return prepared(active)
    if _SUBMITTED in os.environ:
        # spark-submit has started Java, and said where and how to run.
        return prepared(SparkSession.builder.appName("headwater").getOrCreate())
    classes = using(archive(check_java()))
    memory = java_megabytes()
    settings = {
        "spark.master": master,
        "spark.app.name": "headwater",
        "spark.driver.extraJavaOptions": f"{_JAVA_OPTIONS} -Xmn{memory // 3}m {java_options or classes}".strip(),
        "spark.driver.memory": f"{memory}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
    }
    variables = {
        "PYTHONPATH": os.pathsep.join(filter(None, (_package_folder(), os.environ.get("PYTHONPATH")))),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
    }
    variables |= dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), _python(master, variables))
    if _IS_LOCAL.match(master):
        settings |= _ONE_MACHINE
    with _environment(variables), _interrupts_later():
        return _start(settings | STATEFUL)


def java_megabytes() -> int:
    """What Java may take: an eighth of the memory of the machine, but no more than it can use and no less than 1 GB."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    except (ValueError, OSError):
        there = 0
    return max(1024, min(_MOST_JAVA_MEGABYTES, there // 8))


def _python(master: str, variables: Mapping[str, str]) -> str:
    """The program that Spark runs wherever it needs Python: the launcher, where all of Spark is on this machine."""
    return str(Launcher(variables).program) if _IS_LOCAL.match(master) and Launcher.is_possible() else sys.executable


def _start(settings: dict[str, str]) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    if SparkContext._gateway is None and os.environ.get("HEADWATER_DEBUG") != "1":
        handle, log = tempfile.mkstemp(prefix="headwater-spark-", suffix=".log")
        atexit.register(Path(log).unlink, missing_ok=True)
        with open(handle, "wb") as output:
            launch: Any = launch_gateway
            gateway = launch(conf, {"stdout": output, "stderr": output})
        SparkContext(conf=conf, gateway=gateway)
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    # Spark starts a process that forks workers for each set of variables that functions are sent with. Workers have
    # theirs from the Java process, so that one is enough for the source and for the stateful step.
    session.sparkContext.environment.clear()
    return session


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for the Java process, which hands them to the workers; then as they were."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = old


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Holds Ctrl-C back: a Java process whose parent goes away while it starts would stay behind for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted.is_set():
        raise KeyboardInterrupt


def prepared(session: SparkSession) -> SparkSession:
    """A session of the caller with the settings of the stateful step, for a query that the caller will start."""
    for name, value in STATEFUL.items():
        session.conf.set(name, value)
    return session


def _package_folder() -> str:
    return str(Path(__file__).resolve().parents[2])
