"""What workers do with the answers of their shard: write those that no other shard is needed for.

The answers of a query stay on the workers where they are whole there, because there is one shard, or where its shards
need no merge and the sink takes parts. Everything else goes through the driver. So do the answers of the former where
somebody on the driver takes them, too: a callback, an iterator, a sink of another kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.typed_cells import ColumnTypes
from headwater.running.evaluation import BatchOutcome
from headwater.running.program_description import ProgramDescription
from headwater.sharding.answer_merging import needs_merge
from headwater.sinks.sink import PartSink, PartWriter, Sink
from headwater.sinks.written_parts import AnswerRecord, WrittenPart


@dataclass(frozen=True, slots=True)
class WorkerDelivery:
    """How workers deliver; it can be sent to them.

    `writers` are those of the sinks of the run, None for a sink that the driver writes. `queries` are those whose
    answers workers write; with `travels` the answers go to the driver all the same. `shards` are the keys of the
    shards, none where there is one.
    """

    run: str
    writers: tuple[PartWriter | None, ...]
    queries: frozenset[str]
    types: Mapping[str, ColumnTypes]
    shards: tuple[int, ...]
    travels: bool

    @classmethod
    def choose(
        cls,
        description: ProgramDescription,
        sinks: Sequence[Sink],
        run: str,
        types: Mapping[str, ColumnTypes],
        *,
        is_taken: bool,
        sees_folders: bool,
    ) -> WorkerDelivery | None:
        """How the answers of a run are delivered; None where all of them go through the driver.

        `is_taken`: somebody takes answers on the driver besides the sinks. `sees_folders`: the workers are on this
        machine, so that a sink is written the same way wherever it is written.
        """
        cut = description.sharding
        shards = () if cut is None or len(cut.keys) == 1 else cut.keys
        queries = [one for one in description.queries if cut is None or not shards or not needs_merge(one, cut)]
        writers = [sink.part_writer() if isinstance(sink, PartSink) else None for sink in sinks]
        asked = [isinstance(sink, PartSink) and sink.parts for sink in sinks]
        # Without having been asked for, it must be the same files, and worth it: no answer goes to the driver.
        is_usual = sees_folders and not shards and not is_taken and None not in writers
        chosen = tuple(writer if is_usual or wanted else None for writer, wanted in zip(writers, asked, strict=True))
        if not queries or not any(chosen):
            return None
        names = frozenset(query.plan.name for query in queries)
        return cls(run, chosen, names, types, shards, is_taken or None in chosen)

    @property
    def has_records(self) -> bool:
        """Whether Spark writes records that workers make."""
        return any(writer is not None and writer.gives_records for writer in self.writers)

    def deliver(self, outcome: BatchOutcome, key: int) -> tuple[BatchOutcome, list[tuple[int, AnswerRecord]]]:
        """Write what can be written here; gives the rest of the outcome, and records for Spark by their sink.

        A query that is suspended is left to the driver, which knows of all shards.
        """
        shard = self.shards.index(key) if self.shards else None
        written: list[WrittenPart] = []
        records: list[tuple[int, AnswerRecord]] = []
        for query, own in outcome.answers.by_query().items():
            if query not in self.queries or own.suspended is not None:
                continue
            answers = own if shard is None else own.with_part(shard)
            answers.set_types(self.types)
            files: list[str | None] = []
            for place, writer in enumerate(self.writers):
                output = None if writer is None else writer.write_part(self.run, answers)
                files.append(None if output is None else output.file)
                records.extend((place, one) for one in (() if output is None else output.records))
            written.append(WrittenPart.of(query, shard, answers, files))
        left = outcome.answers
        if not self.travels:
            left = left.without_queries({part.query for part in written})
        return replace(outcome, answers=left, written=tuple(written)), records


def answers_for_driver(answers: AnswerBatch, written: Sequence[WrittenPart]) -> AnswerBatch:
    """The answers that a sink gets from the driver where workers have written some of it."""
    return answers.without_queries({part.query for part in written}) if written else answers
