"""A stream of terms that never come again takes no more memory after a long time than after a short one.

Elements come as columns, as they do from a source; every one has two terms that nobody has seen before. What is
measured is what the program holds (entries of the vocabularies, bytes of buffers and operators, segments of the log)
and the resident memory of the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.kernel.operators.operator import Operator
from headwater.language.parser import parse
from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.term_texts import TermTexts
from headwater.terms.scanning.scanner import scan
from headwater.windows.settings import resolve_settings

STREAM, THINNED = "http://example.org/s", "http://example.org/t"
_ELEMENT = b"""%d\t<urn:s:%d> <urn:knows> <urn:o:%d> .
%d\t<urn:o:%d> <urn:has> "%d"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""
QUERIES = (
    # A join of what is new with what is new, groups that come and go, aggregates of each family.
    """SELECT ?s (COUNT(*) AS ?n) (MAX(?v) AS ?m) (AVG(?v) AS ?a) (SAMPLE(?o) AS ?p)
       FROM NAMED WINDOW <w> ON <http://example.org/s> [RANGE 1000ms STEP 250ms]
       WHERE { WINDOW <w> { ?s <urn:knows> ?o . ?o <urn:has> ?v FILTER(?v > 97) } } GROUP BY ?s""",
    # Only the change, different rows, rows without a partner, values that an expression makes.
    """SELECT ISTREAM DISTINCT ?o ?v ?text
       FROM NAMED WINDOW <w> ON <http://example.org/s> [RANGE 1000ms STEP 250ms]
       WHERE { WINDOW <w> { ?o <urn:has> ?v FILTER(?v = 7) }
               OPTIONAL { WINDOW <w> { ?o <urn:has> 8 . ?z <urn:knows> ?o } }
               BIND(CONCAT(STR(?o), "!") AS ?text) }""",
    # A window that counts, aggregates that need the terms.
    """SELECT (COUNT(DISTINCT ?s) AS ?n) (MIN(?o) AS ?first) (GROUP_CONCAT(?o) AS ?all)
       FROM NAMED WINDOW <w> ON <http://example.org/t> [TRIPLES 100 STEP 20]
       WHERE { WINDOW <w> { ?s <urn:knows> ?o } }""",
)
_ONE_IN = 25
"""Every so many elements of the stream are in the thinned one, too: text takes longer than columns."""


def batches(triples: int, each: int) -> Iterator[ElementColumns]:
    """So many triples, two per element: a new term knows a new term, which has a number. A millisecond each."""
    for first in range(0, triples // 2, each // 2):
        text = b"".join(_ELEMENT % (n, n, n, n, n, n % 100) for n in range(first, min(triples, first + each // 2)))
        scanned = scan(text)
        assert not scanned.bad and not scanned.parsed_lines
        yield ElementColumns(
            scanned.element_times,
            scanned.element_rows,
            scanned.triples,
            scanned.element_positions.reshape(-1, 1),
            (scanned.texts(),),
        )


@dataclass(frozen=True)
class Held:
    """What a program holds at one moment."""

    terms: int
    operators: int
    buffers: int
    log: int
    resident: int

    @classmethod
    def by(cls, program: Program) -> Held:
        evaluators = [one for one in program.evaluators.values() if isinstance(one, KernelEvaluator)]
        assert len(evaluators) == len(QUERIES)
        return cls(
            sum(one.vocabulary.size for one in evaluators),
            sum(operator.nbytes for one in evaluators for operator in all_operators(one.root)),
            sum(buffer.nbytes for one in evaluators for buffer in one._buffers),
            sum(len(one) for segment in program.log for one in [segment.elements or []])
            + sum(texts.ids.shape[0] for texts in waiting_texts(evaluators)),
            resident_bytes(),
        )


def all_operators(root: Operator) -> Iterator[Operator]:
    yield root
    for one in root.inputs:
        yield from all_operators(one)


def waiting_texts(evaluators: list[KernelEvaluator]) -> Iterator[TermTexts]:
    for one in evaluators:
        for waiting in one.waiting.values():
            if isinstance(waiting, ElementColumns):
                yield from waiting.texts


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(triples: int, each: int) -> list[Held]:
    """What the program holds after each batch. It must have had answers all the time."""
    plans = [plan_query(parse(text), name=f"q{number}") for number, text in enumerate(QUERIES)]
    program = Program([RegisteredQuery(plan, resolve_settings(plan)) for plan in plans], Store(), 0, KernelEvaluator)
    held: list[Held] = []
    rows: dict[str, int] = {}
    for batch in batches(triples, each):
        thinned = batch.select(np.arange(0, len(batch), _ONE_IN)).with_own_texts()
        for answer in program.advance({STREAM: batch, THINNED: thinned}).answers:
            rows[answer.query] = rows.get(answer.query, 0) + len(answer.rows)
        held.append(Held.by(program))
    assert len(rows) == len(QUERIES) and min(rows.values()) > triples // 2000, rows
    return held


def check_flat(held: list[Held], resident: int) -> None:
    """The second half holds what the time before held, give or take a tenth, and so many bytes more are resident."""
    early, late = held[len(held) // 10 : len(held) // 2], held[len(held) // 2 :]
    for what in ("terms", "operators", "buffers", "log"):
        assert max(getattr(one, what) for one in late) <= 1.1 * max(getattr(one, what) for one in early), what
    assert late[-1].resident - early[-1].resident < resident


def test_memory_is_flat_over_a_stream_of_ever_new_terms() -> None:
    check_flat(run(triples=200_000, each=2_000), resident=8 << 20)


@pytest.mark.soak
def test_memory_is_flat_over_a_hundred_million_triples() -> None:
    check_flat(run(triples=100_000_000, each=20_000), resident=32 << 20)
