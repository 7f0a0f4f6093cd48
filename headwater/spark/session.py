"""The Spark session: an embedded one that is quiet and small, or the caller's own.

Java is checked before Spark is started, because Spark itself only reports that its gateway exited.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError
from headwater.spark.java_class_archive import archive_path, option_to_use
from headwater.spark.process_server import Launcher
from headwater.spark.spark_settings import LOCAL_SETTINGS, STATEFUL_SETTINGS, session_settings
from headwater.terms.scratch_folders import ScratchFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
_GATEWAY_PORT = "PYSPARK_GATEWAY_PORT"
"""The environment variable in which spark-submit gives the port of its Java process."""
_IS_LOCAL = re.compile(r"local(\[|$)")
_MOST_JAVA_MEGABYTES = 3072


class JavaError(HeadwaterError, RuntimeError):
    """No Java that Spark can use; the message says the command that installs one."""


def java_version(text: str) -> int | None:
    """The major version in the output of `java -version`: 8 for "1.8.0_392", 17 for "17.0.15"."""
    match = re.search(r'version "(?:1\.)?([0-9]+)', text)
    return int(match.group(1)) if match else None


def check_java() -> str:
    """The output of `java -version` of the Java that Spark will find; `JavaError` unless it is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    finding = "found none"
    if java:
        try:
            run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
            output = run.stderr + run.stdout
            version = java_version(output)
        except (OSError, subprocess.SubprocessError):
            version = None
        if version is not None and version >= OLDEST_JAVA:
            return output
        finding = f"{java} " + ("does not run" if version is None else f"is Java {version}")
    raise JavaError(
        f"Spark needs Java {OLDEST_JAVA} or newer; {finding}. "
        "Type: sudo apt-get install openjdk-17-jre-headless (and let JAVA_HOME name it, or unset JAVA_HOME); "
        "or run in process, without Spark: Engine(in_process=True), headwater run --in-process"
    )


def embedded_session(
    *,
    master: str = "local[*]",
    shuffle_partitions: int = 1,
    java_options: str | None = None,
    more: Mapping[str, str] | None = None,
) -> SparkSession:
    """The session of this process, or the one of spark-submit; if there is none: local, without a web page, in UTC.

    What the Java process prints goes to a file, because answers are printed here; `HEADWATER_DEBUG=1` shows it.
    `more` are settings of a session that is started here.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return configure_session(active)
    if _GATEWAY_PORT in os.environ:
        # spark-submit has started Java with the master and the settings.
        return configure_session(SparkSession.builder.appName("headwater").getOrCreate())
    classes = option_to_use(archive_path(check_java()))
    settings = session_settings(master, choose_java_megabytes(), java_options or classes, shuffle_partitions)
    variables = {
        "PYTHONPATH": os.pathsep.join(filter(None, (_package_folder(), os.environ.get("PYTHONPATH")))),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
    }
    variables |= dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), _choose_python(master, variables))
    if is_local_master(master):
        settings |= LOCAL_SETTINGS
    with _set_environment(variables), _delay_interrupts():
        return _start_session(settings | STATEFUL_SETTINGS | dict(more or {}))


def choose_java_megabytes() -> int:
    """The memory for Java: an eighth of that of the machine, at least 1 GB and at most as much as Java can use."""
    try:
        megabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    except (ValueError, OSError):
        megabytes = 0
    return max(1024, min(_MOST_JAVA_MEGABYTES, megabytes // 8))


def is_local_master(master: str | None) -> bool:
    """Whether all of Spark runs on this machine, in one process of Java."""
    return master is not None and _IS_LOCAL.match(master) is not None


def _choose_python(master: str, variables: Mapping[str, str]) -> str:
    """The program that Spark runs wherever it needs Python: the launcher, where all of Spark is on this machine."""
    return str(Launcher(variables).program) if is_local_master(master) and Launcher.is_possible() else sys.executable


def _start_session(settings: dict[str, str]) -> SparkSession:
    """Start Spark, whose output goes to a temporary log, or use the session of this process."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    if SparkContext._gateway is None and os.environ.get("HEADWATER_DEBUG") != "1":
        with open(ScratchFolder("spark").path / "spark.log", "wb") as output:
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
def _set_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables for the Java process, which passes them to the workers; then restores them."""
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
def _delay_interrupts() -> Iterator[None]:
    """Delays Ctrl-C: a Java process whose parent ends while it starts would never end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupted.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted:
        raise KeyboardInterrupt


def configure_session(session: SparkSession, settings: Mapping[str, str] = STATEFUL_SETTINGS) -> SparkSession:
    """Set what the stateful step needs in a session of the caller, who starts the query; gives the session."""
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def _package_folder() -> str:
    return str(Path(__file__).resolve().parents[2])
