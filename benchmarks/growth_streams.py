"""Streams for `benchmarks.growth`, made as columns of ids: nothing is parsed, so that evaluation alone is measured."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from pyoxigraph import Store

from benchmarks.growth_points import GrowthPoint, resident_mb
from headwater.algebra.build import plan_query
from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.evaluator_choice import make_evaluator, with_optimisation
from headwater.kernel.sharing.find_shared import find_shared_evaluators
from headwater.language.parser import parse
from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.term_ids import encode
from headwater.terms.ids.term_texts import Ints, TermTexts
from headwater.terms.model import Literal, NamedNode
from headwater.terms.scanning.padded_text import PaddedText
from headwater.windows.element_sequences import Elements
from headwater.windows.settings import Options, resolve_settings

STREAM = "http://growth.example/stream"
VOCABULARY = "http://growth.example/"
SECOND = 1_000_000
"""In microseconds. A slide is one second long, whatever comes in it."""
_INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")
_VALUES = 1000
_BEFORE_NUMBER = f"<{VOCABULARY}".encode()

Batch: TypeAlias = dict[str, Elements]
"""The elements of each stream."""


def predicate(name: str) -> int:
    """The id of a predicate of the benchmark."""
    return encode(NamedNode(VOCABULARY + name))


def numbers() -> Ints:
    """The ids of some integers."""
    return np.array([encode(Literal(str(value), datatype=_INTEGER)) for value in range(_VALUES)], dtype=np.int64)


def resources(count: int, seed: int) -> Ints:
    """Different ids that look like those of IRIs, in their order."""
    return np.unique(np.random.default_rng(seed).integers(1 << 40, 1 << 62, count + count // 1000 + 8))[:count]


def name_resources(ids: Ints) -> TermTexts:
    """Texts of ids, all equally long."""
    own = np.unique(ids)
    digits = (own[:, None] // 10 ** np.arange(18, -1, -1)) % 10 + ord("0")
    rows = np.empty((own.shape[0], len(_BEFORE_NUMBER) + 20), dtype=np.uint8)
    rows[:, : len(_BEFORE_NUMBER)] = np.frombuffer(_BEFORE_NUMBER, dtype=np.uint8)
    rows[:, len(_BEFORE_NUMBER) : -1] = digits
    rows[:, -1] = ord(">")
    offsets = np.arange(own.shape[0] + 1, dtype=np.int64) * rows.shape[1]
    return TermTexts(own, offsets, PaddedText.of(rows.ravel()).content)


def columns_of(triples: Ints, named: Ints, per_element: int, begin: int, end: int, first: int) -> ElementColumns:
    """Elements of equally many triples, evenly spread over the time from `begin` to before `end`.

    As where a source reads for the query, only the terms that can be in an answer have texts: those in `named`.
    """
    count = triples.shape[0] // per_element
    times = begin + (np.arange(count) * (end - begin)) // max(1, count)
    starts = np.arange(count + 1) * per_element
    positions = np.arange(first, first + count).reshape(-1, 1)
    return ElementColumns(times, starts, triples, positions, (name_resources(named),), is_whole=False)


def register(text: str, name: str) -> RegisteredQuery:
    """A query with the settings that its text gives it."""
    plan = plan_query(parse(text), name=name)
    return RegisteredQuery(plan, resolve_settings(plan, Options(t0=0)))


def make_program(queries: Sequence[RegisteredQuery], store: Store | None = None, *, is_durable: bool = True) -> Program:
    """A program as a run has it, with the log of the windows from which a checkpoint is written."""
    return Program(
        queries,
        Store() if store is None else store,
        0,
        with_optimisation(make_evaluator),
        families=find_shared_evaluators,
        is_durable=is_durable,
    )


def measure_batches(
    size: float, program: Program, filling: Iterable[Batch], measured: Iterable[Batch], before_mb: float
) -> GrowthPoint:
    """The median processor seconds of the measured batches, once others have filled the windows.

    `mean_ms` and `worst_ms` have what comes now and then: arrays that are made larger, windows that are compacted.

    The memory is what the process has more at the end than `before_mb`; `state_mb` is what the program says it holds.
    """
    for batch in filling:
        program.advance(batch)
    spent: list[float] = []
    rows = 0
    for batch in measured:
        begun = time.process_time()
        answers = program.advance(batch).answers
        spent.append(time.process_time() - begun)
        rows += answers.row_count
    if not rows:
        raise AssertionError("nothing was answered")
    state = sum(program.size_of(one).bytes or 0 for one in set(program.evaluators.values()))
    more = {
        "rows": rows / len(spent),
        "state_mb": state / (1 << 20),
        "mean_ms": statistics.mean(spent) * 1e3,
        "worst_ms": max(spent) * 1e3,
    }
    return GrowthPoint(size, statistics.median(spent), max(0.0, resident_mb() - before_mb), more)
