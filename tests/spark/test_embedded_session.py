"""What a session that is started here is given: the classes of an earlier Java, a launcher, memory that is there."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from headwater.spark import session
from headwater.spark.java_class_archive import archive_path, option_to_use, option_to_write
from headwater.spark.process_server import Launcher

SAID = 'openjdk version "17.0.1"'


class Started:
    """What Spark would have been started with, and the variables that there were then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, classes: Path) -> None:
        from pyspark.sql import SparkSession

        monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda _: None))
        monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
        monkeypatch.setattr(session, "check_java", lambda: SAID)
        monkeypatch.setattr(session, "archive_path", lambda java: classes if java == SAID else Path("another"))
        monkeypatch.setattr(session, "_choose_python", lambda master, _: f"python for {master}")
        monkeypatch.setattr(session, "_start_session", self._start)
        self.settings: dict[str, str] = {}
        self.python: str | None = None

    def _start(self, settings: dict[str, str]) -> Any:
        self.settings, self.python = settings, os.environ.get("PYSPARK_PYTHON")


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    return tmp_path / "classes.jsa"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, classes: Path) -> Started:
    return Started(monkeypatch, classes)


def test_the_classes_of_an_earlier_run_are_used_if_they_are_there(started: Started, classes: Path) -> None:
    options = "spark.driver.extraJavaOptions"
    session.embedded_session()
    assert "SharedArchiveFile" not in started.settings[options]
    classes.write_bytes(b"")
    session.embedded_session()
    assert option_to_use(classes) in started.settings[options]
    session.embedded_session(java_options=option_to_write(classes))
    assert "ArchiveClassesAtExit" in started.settings[options]
    assert "SharedArchiveFile" not in started.settings[options]


def test_another_java_has_another_archive() -> None:
    assert archive_path(SAID) == archive_path(SAID)
    assert archive_path(SAID) != archive_path(SAID.replace("17.0.1", "17.0.2"))


def test_python_is_the_launcher_while_spark_starts(started: Started) -> None:
    session.embedded_session(master="local[2]")
    assert started.python == "python for local[2]"


@pytest.mark.parametrize(("master", "is_here"), [("local", True), ("local[3]", True), ("spark://host:7077", False)])
def test_files_are_written_and_python_is_reached_in_another_way_where_all_is_on_one_machine(
    started: Started, master: str, is_here: bool
) -> None:
    session.embedded_session(master=master)
    assert ("spark.sql.streaming.checkpointFileManagerClass" in started.settings) == is_here
    assert ("spark.python.unix.domain.socket.enabled" in started.settings) == is_here


@pytest.mark.skipif(not Launcher.is_possible(), reason="processes cannot be forked here")
def test_the_launcher_is_for_one_machine() -> None:
    for master in ("spark://host:7077", "local-cluster[2,1,1024]"):
        assert session._choose_python(master, {}) == sys.executable


@pytest.mark.parametrize(("gigabytes", "megabytes"), [(2, 1024), (16, 2048), (256, 3072)])
def test_java_takes_a_share_of_what_there_is(monkeypatch: pytest.MonkeyPatch, gigabytes: int, megabytes: int) -> None:
    there = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": (gigabytes << 30) // 4096}
    monkeypatch.setattr(os, "sysconf", there.__getitem__)
    assert session.choose_java_megabytes() == megabytes
