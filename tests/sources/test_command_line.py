"""The connectors from a command line: `--stream` with an address, `--out` with a folder; and the examples."""

from __future__ import annotations

import csv
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.commands.running import CITY, EXAMPLES, PROJECT, TOLLGATES, headwater, process, run_example
from tests.sources.kafka_broker import Broker

QUERY = EXAMPLES / "cars-per-district.rq"


@contextmanager
def gates() -> Iterator[str]:
    """A server that sends the lines of the tollgates to whoever connects; gives its address."""
    text = (EXAMPLES / "tollgates.tnq").read_bytes()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(text)
            time.sleep(20)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_stream_may_be_an_address_and_goes_on_until_it_is_interrupted() -> None:
    with (
        gates() as address,
        process(
            "run", QUERY, "--in-process", "--stream", f"http://city/tollgates={address}", *CITY, "--format", "csv"
        ) as run,
    ):
        assert run.stdout is not None
        lines = [run.stdout.readline().strip() for _ in range(5)]
    assert lines[0] == "time,district,passages"
    assert [line.rpartition("#")[2] for line in lines[1:]] == ["East,1", "North,3", "East,2", "North,7"]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_answers_go_to_a_folder_instead_of_stdout(format: str, tmp_path: Path) -> None:
    result = run_example("cars-per-district", "--format", format, "--out", tmp_path / "answers")
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    files = list((tmp_path / "answers" / "CarsPerDistrict").iterdir())
    if format == "csv":
        rows = sum(len(list(csv.reader(path.read_text().splitlines()))) - 1 for path in files)
    else:
        rows = sum(pq.read_metadata(path).num_rows for path in files)
    assert rows == 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--stream", "http://city/tollgates=kafka://host/topic"), "expected host:port"),
        (("--stream", "http://city/tollgates=tcp://host:1", *TOLLGATES), "one address"),
        ((*TOLLGATES, "--format", "parquet"), "--out DIR"),
        ((*TOLLGATES, "--out", "mqtt://host/topic"), "to a folder, to kafka"),
        ((*TOLLGATES, "--out", "kafka://host:1/topic?por=row"), "known are format"),
    ],
)
def test_what_cannot_be_right_is_said(arguments: tuple[str, ...], words: str) -> None:
    result = headwater("run", QUERY, "--in-process", *CITY, *arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.replace("│", " ").split())


def run_script(name: str, *arguments: str) -> str:
    script = EXAMPLES / "connectors" / f"{name}.py"
    run = subprocess.run(
        [sys.executable, str(script), *arguments], cwd=PROJECT, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("name", ["tcp_lines", "websocket_messages"])
def test_the_examples_that_bring_their_own_server(name: str) -> None:
    rows = [line.split()[1:] for line in run_script(name).splitlines()[:4]]
    assert rows == [["East", "1"], ["North", "3"], ["East", "2"], ["North", "7"]]


def test_every_example_is_documented() -> None:
    text = (EXAMPLES / "README.md").read_text("utf-8")
    for path in (EXAMPLES / "connectors").glob("*.py"):
        assert path.stem == "gates" or f"connectors/{path.name}" in text, path.name


@pytest.mark.slow
def test_the_kafka_example(broker: Broker) -> None:
    lines = run_script("kafka_to_kafka", broker.servers).splitlines()
    assert lines[0] == "11 elements, 4 answers"
    assert len(lines) == 9


@pytest.mark.slow
def test_the_dataframe_example(tmp_path: Path) -> None:
    shown = run_script("dataframe_to_files", str(tmp_path / "answers"))
    assert "newest" in shown
    assert list((tmp_path / "answers" / "Newest").glob("*.parquet"))
