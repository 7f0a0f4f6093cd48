"""How commands end: exit codes, one line of reason, quiet on Ctrl-C and when the reader has gone."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import headwater as hw
from headwater.commands.ending import end_on_signals, exit_code, failure_text, report_failures
from headwater.datasets.errors import DataSetError
from headwater.errors import report_file_errors
from tests.commands.running import CITY, EXAMPLES, TOLLGATES, environment, headwater, process

RUN = ("run", EXAMPLES / "cars-per-district.rq", "--in-process", *TOLLGATES, *CITY, "--format", "json")
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
COMMANDS_THAT_PRINT = (
    RUN,
    (*RUN[:-1], "table"),
    ("check", EXAMPLES / "across-town.rq"),
    ("explain", EXAMPLES / "across-town.rq"),
    ("demo", "--in-process", "--seconds", "2"),
)


@pytest.mark.parametrize("arguments", COMMANDS_THAT_PRINT, ids=lambda arguments: f"{arguments[0]}-{arguments[-1]}")
def test_a_reader_that_has_gone_is_no_failure(arguments: tuple[object, ...]) -> None:
    with process(*arguments) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.close()
        assert command.wait(timeout=60) == 141
        assert command.stderr.read() == ""


@pytest.mark.parametrize(
    ("kind", "cause", "code"),
    [
        (hw.SourceError, OSError(errno.EIO, "Input/output error"), 1),
        (DataSetError, FULL, 1),
        (DataSetError, FileNotFoundError(errno.ENOENT, "No such file or directory", "manifest.json"), 2),
        (hw.SourceError, OSError("Not a gzipped file"), 2),
        (hw.SourceError, None, 2),
    ],
)
def test_what_a_disk_refuses_for_now_is_no_mistake_of_the_user(
    kind: type[Exception], cause: OSError | None, code: int
) -> None:
    error = kind("s.tnq cannot be read")
    error.__cause__ = cause
    assert exit_code(error) == code


def test_errors_of_files_say_which_file_if_anybody_knows() -> None:
    for error, said in (
        (FULL, "the place cannot be read or written (No space left on device): go"),
        (OSError(errno.ENOSPC, "No space left on device", "a.bin"), "(No space left on device: a.bin)"),
        (OSError("no number"), "(no number)"),
    ):
        with pytest.raises(DataSetError) as caught, report_file_errors(DataSetError, "the place", "go"):
            raise error
        assert said in str(caught.value)


def test_output_is_utf_8_whatever_the_terminal_says() -> None:
    with process(*RUN[:-1], "table", PYTHONIOENCODING="ascii", PYTHONUTF8="0") as command:
        output, errors = command.communicate(timeout=60)
        assert command.returncode == 0, errors
    assert "│ c:North  │        3 │" in output


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_after_its_batch_with_the_summary(number: signal.Signals, code: int) -> None:
    with process(*RUN, "--follow") as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline().startswith('{"head"')
        command.send_signal(number)
        assert command.wait(timeout=60) == code
        (summary,) = command.stderr.read().splitlines()
        assert summary.startswith("stopped in ") and "11 elements" in summary


def test_a_second_signal_interrupts() -> None:
    stops: list[str] = []
    with pytest.raises(KeyboardInterrupt) as end, end_on_signals(lambda: stops.append("stop")) as find_code:
        signal.raise_signal(signal.SIGTERM)
        assert (stops, find_code()) == (["stop"], 143)
        signal.raise_signal(signal.SIGTERM)
    assert exit_code(end.value) == 143
    assert stops == ["stop"]


def test_following_waits_for_what_is_added(tmp_path: Path) -> None:
    stream = tmp_path / "gates.tnq"
    stream.write_text("1000\t<urn:gate> <urn:sees> <urn:a> .\n11000\t<urn:gate> <urn:sees> <urn:b> .\n")
    query = tmp_path / "query.rq"
    query.write_text("SELECT ?car FROM STREAM <gates> [RANGE 10s STEP 10s] WHERE { ?gate <urn:sees> ?car }")
    arguments = ("run", query, "--in-process", "--stream", f"gates={stream}", "--format", "csv", "--follow")
    with process(*arguments) as command:
        assert command.stdout is not None
        lines = [command.stdout.readline().strip() for _ in range(2)]
        with stream.open("a") as file:
            file.write("21000\t<urn:gate> <urn:sees> <urn:c> .\n")
        lines.append(command.stdout.readline().strip())
        command.send_signal(signal.SIGINT)
        command.wait(timeout=60)
    assert lines == ["time,car", "1970-01-01T00:00:10Z,urn:a", "1970-01-01T00:00:20Z,urn:b"]


def test_debugging_shows_the_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.ttl"
    broken.write_text("<urn:a> <urn:b> .")
    arguments = ("run", EXAMPLES / "cars-per-district.rq", "--in-process", "--data", broken)
    assert "Traceback" not in headwater(*arguments).stderr
    monkeypatch.setenv("HEADWATER_DEBUG", "1")
    result = headwater(*arguments)
    assert result.exit_code == 1
    assert "Traceback (most recent call last)" in result.stderr
    assert "\nheadwater: " in result.stderr


def test_an_exception_nobody_foresaw_is_named_and_has_a_hint() -> None:
    assert failure_text(KeyError("x")) == "headwater: KeyError: 'x' (HEADWATER_DEBUG=1 shows where)"
    assert failure_text(ZeroDivisionError()) == "headwater: ZeroDivisionError (HEADWATER_DEBUG=1 shows where)"


def test_stack_traces_of_spark_are_left_out() -> None:
    text = "Job aborted.\nLost task 0.0\n\tat org.apache.spark.Thing.run(Thing.scala:1)\nand more"
    assert failure_text(ZeroDivisionError(text)).startswith(
        "headwater: ZeroDivisionError: Job aborted. Lost task 0.0 ("
    )


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (KeyboardInterrupt(), 130),
        (OSError("disk full"), 1),
        (MemoryError(), 1),
        (BrokenPipeError("to Java"), 1),
    ],
)
def test_each_ending_has_its_code(raised: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    @report_failures
    def command() -> None:
        raise raised

    with pytest.raises(typer.Exit) as end:
        command()
    assert end.value.exit_code == code
    assert bool(capsys.readouterr().err) == (code == 1)


def test_an_interrupt_inside_another_exception_is_still_one() -> None:
    try:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            raise RuntimeError("the run ended") from interrupt
    except RuntimeError as error:
        assert exit_code(error) == 130


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_the_command_line_is_imported_ends_it_in_silence(number: signal.Signals, code: int) -> None:
    # `-X importtime` says what has been imported; numpy is neither the first nor the last.
    arguments = [sys.executable, "-X", "importtime", "-m", "headwater", "check", str(EXAMPLES / "across-town.rq")]
    with subprocess.Popen(
        arguments,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert any(line.rstrip().endswith(" numpy") for line in command.stderr)
        command.send_signal(number)
        rest = command.stderr.read()
        assert command.wait(timeout=60) == code
        assert command.stdout.read() == ""
        assert all(line.startswith("import time:") for line in rest.splitlines()), rest
