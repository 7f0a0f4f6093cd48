"""Java is looked at before Spark is started, and the failures of a run are said in one line."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.errors import AnalysisException

import headwater as hw
from headwater.spark.run_error import to_run_error
from headwater.spark.session import _delay_interrupts, check_java, java_version
from headwater.spark.spark_runner import load_stream


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('Picked up _JAVA_OPTIONS: -Dx=version\nopenjdk version "21-ea" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_the_version_of_a_java(text: str, version: int | None) -> None:
    assert java_version(text) == version


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'java version \"1.8.0_392\"' >&2", "is Java 8"),
        ("exit 1", "does not run"),
        (None, "found none|does not run"),
    ],
)
def test_a_java_that_does_not_serve_is_said_with_the_command_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, words: str
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    if script is not None:
        java.write_text(f"#!/bin/sh\n{script}\n")
        java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(hw.JavaError, match=words) as raised:
        check_java()
    assert "sudo apt-get install openjdk-17-jre-headless" in str(raised.value)


def test_a_java_that_is_new_enough_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check_java()


def test_the_innermost_reason_of_a_failure_on_spark() -> None:
    text = (
        "[STREAM_FAILED] Query terminated with exception: Job aborted\n"
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        '  File "x.py", line 1, in f\n'
        "headwater.terms.ids.hash_collisions.HashCollision: two terms share the id 7\n"
        "\tat org.apache.spark.Something\n"
        "java.lang.RuntimeException: Job aborted"
    )
    assert str(to_run_error(RuntimeError(text))) == "HashCollision: two terms share the id 7"
    assert str(to_run_error(RuntimeError("[STREAM_FAILED] lost\nmore"))) == "[STREAM_FAILED] lost"


@pytest.mark.parametrize("module", ["headwater", "pyarrow"])
def test_a_session_with_another_python_is_said_where_the_source_is_made(module: str) -> None:
    class Reader:
        def load(self) -> NoReturn:
            text = f"Failed to create Python data source instance\nModuleNotFoundError: No module named '{module}'"
            raise AnalysisException(text)

    with pytest.raises(hw.RunError, match=r"set PYSPARK_PYTHON to the path of this Python \(sys.executable\)"):
        load_stream(Reader())  # type: ignore[arg-type]


def test_an_interrupt_while_java_starts_waits_until_it_has_started() -> None:
    steps = []
    # A session that another test started has put a handler of its own.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), _delay_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("started")
        assert steps == ["started"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
