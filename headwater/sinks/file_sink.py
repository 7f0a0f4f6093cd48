"""Answers in files: one file for each query and batch, so that a batch that is run again replaces what it wrote.

    FileSink("answers")                       answers/busy/1f0c…-00000007.jsonl, a SPARQL JSON result per line
    FileSink("answers", format="parquet")     answers/busy/1f0c…-00000007.parquet, a row for each row of an answer

The first part of a name is the run, which keeps it when it goes on from its checkpoint: another run never writes into
the same file. A file has its name when it is complete and on disk; readers pass over names that begin with a dot.
"""

from __future__ import annotations

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
from headwater.terms.arguments import check_path, make_folder
from headwater.terms.durable_files import create_folder, remove_files, replace_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    ) -> None:
        """The columns of Parquet have the types that the query says, such as those of counts and casts; `schema` says
        them of others, as in `{"speed": "double"}`. The rest is text: IRIs, and the texts of literals. With `terms` all
        cells are in N-Triples syntax.
        """
        if format not in _ENDINGS:
            raise SettingError(f"no format {format!r}: use one of {', '.join(_ENDINGS)}")
        self._folder = check_path("the folder of a FileSink", folder).absolute()
        self._format = format
        self._terms = terms
        self._schema = read_schema(schema, tuple(schema or ()))

    def open(self, spark: SparkSession | None) -> None:
        make_folder("answers", self._folder)

    def write(self, run: str, batch: int, answers: AnswerBatch) -> None:
        for query, own in answers.by_query().items():
            folder = self._folder / file_name(query)
            is_table = self._format == "parquet"
            data = parquet_bytes(own, self._terms, self._schema) if is_table else _TEXTS[self._format](own)
            with report_write_errors(folder):
                create_folder(folder)
                replace_file(folder / self._name(run, batch), data)

    def rewrite(self, run: str, batch: int, answers: AnswerBatch) -> None:
        """Take the answers of a batch that may have been written before: its files of other queries go."""
        self.write(run, batch, answers)
        written = {file_name(query) for query in answers.by_query()}
        with report_write_errors(self._folder):
            for folder in self._folder.iterdir():
                path = folder / self._name(run, batch)
                if folder.name not in written and path.exists():
                    remove_files(path)

    def _name(self, run: str, batch: int) -> str:
        return f"{run}-{batch:08d}{_ENDINGS[self._format]}"


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
_ENDINGS = {"json": ".jsonl", "csv": ".csv", "nquads": ".nq", "parquet": ".parquet"}
