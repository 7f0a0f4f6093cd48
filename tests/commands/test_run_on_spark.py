"""`headwater run` without `--in-process`: the same answers, through Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.commands.running import CAMERAS, CITY, EXAMPLES, TOLLGATES, headwater

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = [EXAMPLES / f"{name}.rq" for name in ("district-stream", "busy-districts", "across-town")]


def test_spark_answers_as_the_process_does(spark: SparkSession) -> None:
    arguments = ("run", *QUERIES, *TOLLGATES, *CAMERAS, *CITY, "--format", "json")
    on_spark = headwater(*arguments)
    assert on_spark.exit_code == 0, on_spark.stderr
    assert on_spark.stdout == headwater(*arguments, "--in-process").stdout
    assert on_spark.stdout.count("\n") == 12
    assert on_spark.stderr.splitlines()[-1].startswith("done in ")
