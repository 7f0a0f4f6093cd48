"""The answer log: what was answered, on disk before anybody is told, for subscribers that come back.

The engine writes it as a sink. A batch that is run again after a failure replaces what it wrote, under the same ids; so
whoever reads by id misses nothing and gets nothing twice. What is older than the retention goes, file by file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answers import Answer
from headwater.server.answers.event_ids import EventId
from headwater.server.answers.log_files import (
    ANY_PLACE,
    FLOOR,
    LogReader,
    LogRecord,
    list_segments,
    log_folder,
    read_segment,
    segment_name,
)
from headwater.sinks.answer_text import format_answer_json
from headwater.sinks.errors import report_write_errors
from headwater.sinks.file_sink import file_name
from headwater.terms.arguments import make_folder
from headwater.terms.durable_files import create_folder, remove_files, replace_file, write_at_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUN = "run.json"
_LARGEST_SEGMENT = 8 << 20
_SEGMENTS = 8
"""Into about so many files the retention of a query is cut: the oldest one goes as a whole."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of its answers a log keeps: by age in seconds, and by bytes of each query."""

    seconds: float = 86_400.0
    bytes: int = 64 << 20

    @property
    def segment_bytes(self) -> int:
        """How large a file grows before the next one begins."""
        return max(1, min(_LARGEST_SEGMENT, self.bytes // _SEGMENTS))

    @property
    def segment_seconds(self) -> float:
        """How old a file grows before the next one begins."""
        return self.seconds / _SEGMENTS


class QueryLog:
    """Writes the log of one query."""

    def __init__(self, folder: Path, retention: Retention, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self._retention = retention
        self._clock = clock
        self._segment = ""
        self._end = 0
        self._begun = 0.0
        self._last: EventId | None = None
        last = LogReader(folder).last_record()
        if last is not None:
            record, place = last
            self._segment, self._end, self._last = place.file, place.offset, record.last
            self._begun = (folder / place.file).stat().st_mtime

    @property
    def last(self) -> EventId | None:
        """The newest id; None where nothing is logged."""
        return self._last

    def find(self, era: int, batch: int) -> LogRecord | None:
        """The record of a batch; None where it has none."""
        if self._last is None or self._last < EventId(era, batch, 0):
            return None
        names = [name for name in list_segments(self.folder) if name <= segment_name(era, batch)]
        records = read_segment(self.folder / names[-1]) if names else iter(())
        return next((one for one, _ in records if (one.era, one.batch) == (era, batch)), None)

    def append(self, record: LogRecord) -> None:
        """Write the answers of a batch. A batch that is there with others is replaced, with those behind it.

        One that is there with the same answers stays: nobody sees that it was written again.
        """
        if self.find(record.era, record.batch) == record:
            return
        self.remove_from(record.era, record.batch)
        if self._last is None:
            create_folder(self.folder)
            if not (self.folder / FLOOR).exists():
                # Ids of a query that had this name before, or of a log that is lost, are not kept.
                floor = EventId(record.era, record.batch - 1, ANY_PLACE)
                if not record.batch:
                    floor = EventId(record.era - 1, ANY_PLACE, ANY_PLACE)
                replace_file(self.folder / FLOOR, str(floor).encode())
        is_full = self._end >= self._retention.segment_bytes
        is_old = self._clock() - self._begun > self._retention.segment_seconds
        if not self._segment or is_full or is_old:
            self._segment, self._end, self._begun = segment_name(record.era, record.batch), 0, self._clock()
        data = record.to_bytes()
        write_at_end(self.folder / self._segment, data, self._end)
        self._end += len(data)
        self._last = record.last
        self.remove_old()

    def remove_from(self, era: int, batch: int) -> None:
        """Remove the records of a batch and of those behind it, which another attempt writes again."""
        if self._last is None or self._last < EventId(era, batch, 0):
            return
        names = list_segments(self.folder)
        mark = segment_name(era, batch)
        remove_files(*(self.folder / name for name in names if name >= mark))
        kept = [name for name in names if name < mark]
        self._segment, self._end, self._last = (kept[-1] if kept else ""), 0, None
        for record, end in read_segment(self.folder / kept[-1]) if kept else ():
            if (record.era, record.batch) >= (era, batch):
                break
            self._end, self._last = end, record.last
        if kept:
            write_at_end(self.folder / kept[-1], b"", self._end)

    def remove_old(self) -> None:
        """Remove the oldest files that are too many or too old; the newest one stays."""
        names = list_segments(self.folder)
        sizes = {name: (self.folder / name).stat().st_size for name in names}
        total = sum(sizes.values())
        for name in names[:-1]:
            age = self._clock() - (self.folder / name).stat().st_mtime
            if total <= self._retention.bytes and age <= self._retention.seconds:
                return
            removed = [record.last for record, _ in read_segment(self.folder / name)]
            if removed:
                replace_file(self.folder / FLOOR, str(removed[-1]).encode())
            remove_files(self.folder / name)
            total -= sizes[name]


class AnswerLogSink:
    """The answer log as a sink of the engine.

    `is_logged` says of a query whether its answers are wanted: one that was dropped may have answers in the batch at
    work. `on_write` is called with the names of queries when their answers are on disk.
    """

    def __init__(
        self,
        folder: Path,
        retention: Retention,
        *,
        is_logged: Callable[[str], bool] = lambda query: True,
        on_write: Callable[[list[str]], object] = lambda queries: None,
    ) -> None:
        self._folder = folder
        self._retention = retention
        self._is_logged = is_logged
        self._on_write = on_write
        self._logs: dict[str, QueryLog] = {}
        self._eras: dict[str, int] = {}

    def open(self, spark: SparkSession | None) -> None:
        make_folder("the answer log", self._folder)

    def write(self, run: str, batch: int, answers: AnswerBatch) -> None:
        """Log the answers of a batch."""
        era = self._era_of(run)
        written: list[str] = []
        for query, own in answers.by_query().items():
            if self._is_logged(query):
                record = LogRecord(era, batch, tuple(answer_line(answer) for answer in own))
                with report_write_errors(self._folder):
                    self._log_of(query).append(record)
                written.append(query)
        if written:
            self._on_write(written)

    def rewrite(self, run: str, batch: int, answers: AnswerBatch) -> None:
        """Log the answers of a batch that may have been logged before, and remove those of it that are not among them.

        What is removed takes the batches behind it along: they were planned with it, and come again.
        """
        era = self._era_of(run)
        answered = {file_name(query) for query in answers.by_query()}
        with report_write_errors(self._folder):
            for folder in self._folder.iterdir():
                if folder.is_dir() and folder.name not in answered:
                    log = self._log_at(folder)
                    if log.find(era, batch) is not None:
                        log.remove_from(era, batch)
        self.write(run, batch, answers)

    def forget(self, query: str) -> None:
        """Remove the log of a query that was dropped."""
        folder = log_folder(self._folder, query)
        self._logs.pop(folder.name, None)
        remove_files(folder)

    def _log_of(self, query: str) -> QueryLog:
        return self._log_at(self._folder / file_name(query))

    def _log_at(self, folder: Path) -> QueryLog:
        if folder.name not in self._logs:
            self._logs[folder.name] = QueryLog(folder, self._retention)
        return self._logs[folder.name]

    def _era_of(self, run: str) -> int:
        """The era of a run; a run that is new begins one, which is later than all before."""
        if run not in self._eras:
            path = self._folder / _RUN
            known: dict[str, Any] = {"run": "", "era": 0}
            if path.exists():
                known = json.loads(path.read_text("utf-8"))
            if known["run"] != run:
                known = {"run": run, "era": max(known["era"] + 1, int(time.time()))}
                with report_write_errors(self._folder):
                    replace_file(path, json.dumps(known).encode())
            self._eras[run] = known["era"]
        return self._eras[run]


def answer_line(answer: Answer) -> bytes:
    """An answer as a line of JSON, without its line feed, the watermark before everything else where it is known."""
    line = format_answer_json(answer).rstrip("\n")
    if answer.watermark is not None:
        line = f'{{"watermark_us": {answer.watermark}, {line[1:]}'
    return line.encode("utf-8", "surrogatepass")
