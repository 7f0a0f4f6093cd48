"""The stateful step on Spark: a batch of chunks in, answers, letters and counts out.

All of a run's state is one key in this version. The truth is the snapshot in Spark's state store; the worker process
keeps the live evaluation as a cache. Each state carries a random token: a cached evaluation is used only if it
carries the token that the store has, so a worker that took another batch meanwhile, or took this one in an attempt
that was not committed, throws its copy away and starts from the snapshot.
"""

from __future__ import annotations

import pickle
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headwater.pipeline.chunks import unpack_chunk
from headwater.pipeline.evaluation import Definition, Evaluation, Outcome
from headwater.pipeline.packing import pack, unpack

OUTPUT_SCHEMA = "number long, kind string, query string, time_us long, payload binary"
ANSWER, OUTCOME = "answer", "outcome"

_LIVE: OrderedDict[str, Evaluation] = OrderedDict()
_MOST_LIVE = 4


class EvaluationProcessor(StatefulProcessor):
    """Keeps an evaluation and advances it once per batch."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._token = handle.getValueState("token", "token string")
        self._snapshot = handle.getValueState("snapshot", "snapshot binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        chunks = [unpack_chunk(bytes(chunk)) for frame in rows for chunk in frame["chunk"]]
        evaluation = self._evaluation()
        outcome = evaluation.step(chunks)
        token = uuid.uuid4().hex
        self._snapshot.update((evaluation.snapshot(),))
        self._token.update((token,))
        _LIVE[token] = evaluation
        while len(_LIVE) > _MOST_LIVE:
            _LIVE.popitem(last=False)
        yield outcome_to_frame(outcome)

    def _evaluation(self) -> Evaluation:
        stored = self._token.get()
        if stored is None:
            return Evaluation(self._definition.program())
        live = _LIVE.pop(stored[0], None)
        if live is not None:
            return live
        snapshot = self._snapshot.get()
        if snapshot is None:
            raise RuntimeError("the state has a token but no snapshot: the checkpoint is damaged")
        return Evaluation(self._definition.program(), bytes(snapshot[0]))

    def close(self) -> None:
        return


def outcome_to_frame(outcome: Outcome) -> pd.DataFrame:
    """One row per answer, and a last one with the rest."""
    rest = (outcome.letters, outcome.elements, outcome.watermarks)
    rows: list[tuple[int, str, str | None, int | None, bytes]] = [
        (number, ANSWER, answer.query, answer.time, pack(answer)) for number, answer in enumerate(outcome.answers)
    ]
    rows.append((len(rows), OUTCOME, None, None, pickle.dumps(rest)))
    columns = dict(zip(("number", "kind", "query", "time_us", "payload"), zip(*rows, strict=True), strict=True))
    frame = pd.DataFrame(columns)
    return frame.astype({"number": "int64", "time_us": "Int64"})


def rows_to_outcome(rows: list[Any]) -> Outcome:
    """The outcome of a batch from the rows that the stateful step gave."""
    ordered = sorted(rows, key=lambda row: row["number"])
    answers = tuple(unpack(bytes(row["payload"])) for row in ordered if row["kind"] == ANSWER)
    for row in ordered:
        if row["kind"] == OUTCOME:
            letters, elements, watermarks = pickle.loads(bytes(row["payload"]))
            return Outcome(answers, letters, elements, watermarks)
    return Outcome(answers)
