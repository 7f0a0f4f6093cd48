"""Answers in files: one file for each query and batch, so that a batch that is run again replaces what it wrote.

    FileSink("answers")                       answers/busy/1f0c…-00000007.jsonl, a SPARQL JSON result per line
    FileSink("answers", format="parquet")     answers/busy/1f0c…-00000007.parquet, a row for each row of an answer
    FileSink("answers", parts=True)           answers/busy/1f0c…-00000007-1.jsonl: what shard 1 has of the answers

The first part of a name is the run, which keeps it when it goes on from its checkpoint: another run never writes into
the same file. A file has its name when it is complete and on disk; readers pass over names that begin with a dot.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from headwater.errors import SettingError
from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answers import Answer
from headwater.execution.arrow_tables import answers_to_table
from headwater.execution.typed_cells import choose_types, read_schema
from headwater.sinks.answer_text import format_answer_csv, format_answer_json, format_answer_nquads
from headwater.sinks.errors import report_write_errors
from headwater.sinks.written_parts import WorkerOutput, WrittenPart
from headwater.terms.arguments import check_flag, check_path, make_folder
from headwater.terms.durable_files import create_folder, place_files, remove_files, replace_file, write_unfinished

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LONGEST_NAME = 200
"""File systems take names of 255 bytes."""


class FileSink:
    """A folder of files in the format `json`, `csv`, `nquads` or `parquet`, a folder in it for each query."""

    def __init__(
        self,
        folder: str | Path,
        *,
        format: str = "json",
        terms: bool = False,
        schema: Mapping[str, Any] | None = None,
        parts: bool = False,
    ) -> None:
        """With `parts`, where a query is cut into shards that need no merge, each shard's worker writes a file of its
        own, and the answer of a tick is what all of them have of it. Workers must see the folder.

        The columns of Parquet have the types that the query says, such as those of counts and casts; `schema` says
        them of others, as in `{"speed": "double"}`. The rest is text: IRIs, and the texts of literals. With `terms` all
        cells are in N-Triples syntax.
        """
        if format not in _ENDINGS:
            raise SettingError(f"no format {format!r}: use one of {', '.join(_ENDINGS)}")
        self._folder = check_path("the folder of a FileSink", folder).absolute()
        self._format = format
        self._terms = terms
        self._schema = read_schema(schema, tuple(schema or ()))
        self.parts = check_flag("parts", parts)
        self._placed: tuple[str, int, frozenset[Path]] = ("", -1, frozenset())
        """The files of parts that were committed last, with their run and batch."""

    def open(self, spark: SparkSession | None) -> None:
        make_folder("answers", self._folder)

    def write(self, run: str, batch: int, answers: AnswerBatch) -> None:
        for query, own in answers.by_query().items():
            folder = self._folder / file_name(query)
            with report_write_errors(folder):
                create_folder(folder)
                replace_file(folder / self._name(run, batch), self._bytes(own))

    def rewrite(self, run: str, batch: int, answers: AnswerBatch) -> None:
        """Take the answers of a batch that may have been written before: its other files go."""
        self.write(run, batch, answers)
        kept = {self._folder / file_name(query) / self._name(run, batch) for query in answers.by_query()}
        if self._placed[:2] == (run, batch):
            kept |= self._placed[2]
        with report_write_errors(self._folder):
            for folder in self._folder.iterdir():
                # What workers left whose attempt failed has no name yet.
                found = {*folder.glob(f".{run}-*{_UNFINISHED}"), *folder.glob(self._name(run, batch, "*"))}
                path = folder / self._name(run, batch)
                if stale := (found | ({path} if path.exists() else set())) - kept:
                    remove_files(*stale)

    def part_writer(self) -> FileSink | None:
        """This sink, unless somebody has made another way to write of it."""
        return self if type(self).write is FileSink.write else None

    @property
    def gives_records(self) -> bool:
        """Files are written by the worker itself."""
        return False

    def write_part(self, run: str, answers: AnswerBatch) -> WorkerOutput:
        """Write the answers of a query to a file that has no name yet."""
        folder = self._folder / file_name(answers[0].query)
        path = folder / f".{run}-{uuid.uuid4().hex}{_UNFINISHED}"
        with report_write_errors(folder):
            create_folder(folder)
            write_unfinished(path, self._bytes(answers))
        return WorkerOutput(file=str(path))

    def commit_parts(
        self, run: str, batch: int, files: Mapping[WrittenPart, str | None], records: DataFrame | None = None
    ) -> None:
        """Give the files that workers wrote their names."""
        places = {
            Path(file): self._folder / file_name(part.query) / self._name(run, batch, part.shard)
            for part, file in files.items()
            if file is not None
        }
        with report_write_errors(self._folder):
            place_files(places)
        self._placed = run, batch, frozenset(places.values())

    def _bytes(self, answers: AnswerBatch) -> bytes:
        is_table = self._format == "parquet"
        return parquet_bytes(answers, self._terms, self._schema) if is_table else _TEXTS[self._format](answers)

    def _name(self, run: str, batch: int, shard: int | str | None = None) -> str:
        behind = "" if shard is None else f"-{shard}"
        return f"{run}-{batch:08d}{behind}{_ENDINGS[self._format]}"


def file_name(query: str) -> str:
    """A name for the folder of a query, whatever its own name is made of and however long that is."""
    name = quote(query, safe="", errors="surrogatepass").replace(".", "%2E") or "query"
    if len(name) <= _LONGEST_NAME:
        return name
    digest = blake2b(query.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{name[: _LONGEST_NAME - len(digest) - 1]}-{digest}"


def parquet_bytes(answers: AnswerBatch, terms: bool = False, schema: Mapping[str, Any] | None = None) -> bytes:
    """Answers of one query as a Parquet file: time, part, and the columns of the query with their types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    head = answers[0]
    types = choose_types(head.table_columns(), head.types, schema, tuple(schema or ()))
    pq.write_table(answers_to_table(answers, terms=terms, numbers=False, types=types), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _csv(answers: Sequence[Answer]) -> bytes:
    return "".join(format_answer_csv(answer, header=place == 0) for place, answer in enumerate(answers)).encode()


def _json(answers: Sequence[Answer]) -> bytes:
    return "".join(map(format_answer_json, answers)).encode("utf-8", "surrogatepass")


def _nquads(answers: Sequence[Answer]) -> bytes:
    return "".join(map(format_answer_nquads, answers)).encode("utf-8", "surrogatepass")


_TEXTS: dict[str, Callable[[Sequence[Answer]], bytes]] = {"json": _json, "csv": _csv, "nquads": _nquads}
_UNFINISHED = ".part"
_ENDINGS = {"json": ".jsonl", "csv": ".csv", "nquads": ".nq", "parquet": ".parquet"}
