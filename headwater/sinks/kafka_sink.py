"""Answers to Kafka, through Spark's own connector.

    KafkaSink("localhost:9092", "answers")                   a record for each answer: a SPARQL JSON result
    KafkaSink("localhost:9092", "answers", per="row")        a record for each row
    KafkaSink("localhost:9092", "answers", parts=True)       a record for what each shard has of an answer
    KafkaSink("localhost:9092", "answers", format="nquads")  a timed graph, which Headwater can read as a stream again

A batch that is run again after a failure writes its records again, with the same keys: `query|tick|part`, and behind
it the number of the row where each row has a record (rows in the order of their texts, so that the number stays).
Whoever reads takes one record of each key. The records of a batch are written in order, and a batch is committed
after all of them are. Headers: `query`, `tick` and `watermark` (both in ISO 8601), `batch`; with `per="row"` also
`position`, the place of the row in its answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headwater.algebra.plan import QueryKind
from headwater.egress.secret_references import fill_in_secrets
from headwater.errors import SettingError, StateError
from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answers import Answer
from headwater.sinks.answer_text import format_answer_csv, format_answer_json, format_answer_nquads
from headwater.sinks.errors import SinkError
from headwater.sinks.written_parts import AnswerRecord, WorkerOutput, WrittenPart
from headwater.sources.kafka import is_broker_reachable
from headwater.sources.kafka_jars import ensure_kafka
from headwater.sources.outages import is_missing_topic
from headwater.terms.arguments import check_flag, check_text
from headwater.terms.timestamps import format_time
from headwater.values.row_order import row_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FORMATS = ("json", "csv", "nquads")


@dataclass(frozen=True, slots=True)
class AnswerRecords:
    """Makes the records of answers for a topic. It can be sent to workers."""

    topic: str
    format: str
    per: str

    def of(self, answer: Answer, batch: int) -> Iterator[tuple[bytes, bytes, list[dict[str, object]]]]:
        """Key, value and headers of the records of an answer."""
        for key, value, headers in self._records(answer):
            yield key.encode(), value, _header_list({**headers, "batch": str(batch)})

    def _records(self, answer: Answer) -> Iterator[tuple[str, bytes, dict[str, str]]]:
        key = f"{answer.query}|{answer.time}|{answer.part}"
        headers = {"query": answer.query, "tick": format_time(answer.time)}
        if answer.watermark is not None:
            headers["watermark"] = format_time(answer.watermark)
        if self.per == "answer":
            yield key, self._text(answer), headers
            return
        for row_index, (position, single) in enumerate(_split_rows(answer)):
            yield f"{key}|{row_index}", self._text(single), {**headers, "position": str(position)}

    @property
    def gives_records(self) -> bool:
        """Spark writes to topics."""
        return True

    def write_part(self, run: str, answers: AnswerBatch) -> WorkerOutput:
        """The records of answers, for Spark to write."""
        return WorkerOutput(
            records=[
                AnswerRecord(answer.query, key, value, json.dumps(headers))
                for answer in answers
                for key, value, headers in self._records(answer)
            ]
        )

    def _text(self, answer: Answer) -> bytes:
        if self.format == "json":
            text = format_answer_json(answer, with_query=True).rstrip("\n")
        elif self.format == "csv":
            text = format_answer_csv(answer, header=self.per == "answer").removesuffix("\r\n")
        else:
            text = format_answer_nquads(answer)
        return text.encode("utf-8", "surrogatepass")


class KafkaSink:
    """A topic of a cluster.

    `options` go to Spark's connector; `${env:NAME}` and `${file:PATH}` in them stand for what a variable or a file has.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        format: str = "json",
        per: str = "answer",
        options: Mapping[str, str] | None = None,
        parts: bool = False,
    ) -> None:
        if format not in _FORMATS:
            raise SettingError(f"no format {format!r} for Kafka: use one of {', '.join(_FORMATS)}")
        if per not in ("answer", "row"):
            raise SettingError(f"per={per!r}: use 'answer' or 'row'")
        if per == "row" and format == "nquads":
            raise SettingError("N-Quads are a graph for each answer: leave out per='row'")
        self._servers = check_text("servers", servers)
        self._options = {
            "kafka.bootstrap.servers": self._servers,
            "includeHeaders": "true",
            **(options or {}),
        }
        self.records = AnswerRecords(check_text("topic", topic), format, per)
        self.parts = check_flag("parts", parts)
        self._spark: SparkSession | None = None

    def open(self, spark: SparkSession | None) -> None:
        if spark is None:
            raise SettingError("answers go to Kafka through Spark: leave out in_process=True (--in-process)")
        if not is_broker_reachable(self._servers):
            raise SinkError(
                f"no Kafka broker answers at {self._servers}, where answers go (--out): check the address, and that "
                "the broker runs"
            )
        ensure_kafka(spark)
        self._spark = spark

    @property
    def can_be_read_back(self) -> bool:
        """Whether a record has a whole answer, as JSON."""
        return self.records.format == "json" and self.records.per == "answer"

    def spark_options(self) -> dict[str, str]:
        """The options of Spark's connector, without the topic."""
        return fill_in_secrets(self._options)

    def write(self, run: str, batch: int, answers: AnswerBatch) -> None:
        if self._spark is None:
            raise StateError("open the sink before writing to it")
        rows = [row for answer in answers for row in self.records.of(answer, batch)]
        if not rows:
            return
        import pyarrow as pa

        header = pa.struct([("key", pa.string()), ("value", pa.binary())])
        schema = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("headers", pa.list_(header))])
        table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
        # One task, so that the records come in order.
        self._save(self._spark.createDataFrame(table).coalesce(1))

    def part_writer(self) -> AnswerRecords | None:
        """What makes the records, unless somebody has made another way to write of this sink."""
        return self.records if type(self).write is KafkaSink.write else None

    def commit_parts(
        self, run: str, batch: int, files: Mapping[WrittenPart, str | None], records: DataFrame | None
    ) -> None:
        """Have Spark write the records that the workers made, those of each shard in order."""
        from pyspark.sql import functions as f

        if not files or records is None:
            return
        texts = f.from_json("headers", "map<string, string>")
        entries = f.map_entries(f.map_concat(texts, f.create_map(f.lit("batch"), f.lit(str(batch)))))
        headers = f.transform(entries, lambda one: f.struct(one["key"], one["value"].cast("binary").alias("value")))
        queries = {part.query for part in files}
        own = records.where(f.col("query").isin(*queries))
        self._save(own.select(f.col("key").cast("binary").alias("key"), "value", headers.alias("headers")))

    def _save(self, frame: DataFrame) -> None:
        """Write records to the topic."""
        try:
            frame.write.format("kafka").options(**self.spark_options(), topic=self.records.topic).save()
        except Exception as error:
            if is_missing_topic(error):
                raise SinkError(
                    f"there is no topic {self.records.topic!r} at {self._servers}, and the broker makes none: make "
                    "the topic, or name another one (--out)"
                ) from error
            raise


def _split_rows(answer: Answer) -> list[tuple[int, Answer]]:
    """An answer for each row, with the place of the row, in an order that a repeated run has again."""
    if answer.kind is QueryKind.ASK:
        return [(0, answer)]
    if answer.kind is QueryKind.SELECT:
        order = sorted(range(len(answer.rows)), key=lambda place: row_text(answer.rows[place]))
        return [(place, replace(answer, rows=(answer.rows[place],))) for place in order]
    order = sorted(range(len(answer.triples)), key=lambda place: str(answer.triples[place]))
    return [(place, replace(answer, triples=(answer.triples[place],))) for place in order]


def _header_list(values: Mapping[str, str]) -> list[dict[str, object]]:
    return [{"key": key, "value": value.encode()} for key, value in values.items()]
