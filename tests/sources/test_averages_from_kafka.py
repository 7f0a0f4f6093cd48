"""The tutorial docs/averages.md on Kafka: its command, run against a real broker, gives the lines of its files."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.commands.documents import Block, blocks_of
from tests.commands.running import PROJECT, environment
from tests.sources.kafka_broker import Broker, put

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = PROJECT / "docs" / "averages.md"


def find_block(language: str, words: str) -> Block:
    (found,) = [block for block in blocks_of(PAGE) if block.language == language and words in block.body]
    return found


def run_words(folder: Path, *words: str) -> str:
    run = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment(), capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.slow
@pytest.mark.spark
def test_the_averages_come_from_kafka_as_from_files(broker: Broker, kafka_spark: SparkSession, tmp_path: Path) -> None:
    for block in blocks_of(PAGE):
        if block.title is not None:
            (tmp_path / block.title).write_text(block.body, "utf-8")
    rows = (tmp_path / "readings.json").read_bytes().splitlines()
    for partition in range(2):
        put(kafka_spark, broker.servers, "averages", rows[partition::2], partition)
    command = find_block("sh", "kafka://").body.replace("\\\n", " ")
    command = command.replace("localhost:9092/readings", f"{broker.servers}/averages")
    program, *words = shlex.split(command)
    assert program == "headwater"
    run_words(tmp_path, "-m", "headwater", *words)
    shown = run_words(tmp_path, "read_averages.py", "averages-from-kafka")
    assert shown == find_block("console", "python read_averages.py averages").output


def test_the_page_sends_the_rows_to_the_topic_that_it_reads() -> None:
    (topic,) = re.findall(r"kcat .* -t (\w+) readings\.json", find_block("sh", "kcat").body)
    assert f"kafka://localhost:9092/{topic} " in find_block("sh", "kafka://").body
