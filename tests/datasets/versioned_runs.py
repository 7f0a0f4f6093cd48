"""Generated queries over data that changes while they run: by definition over plain stores, and over data sets.

A case is a seed, as in `tests.kernel.generated_runs`. Between the pieces of the streams statements are added and
removed. The expected answers come from a plain store for each version, without logs, columns and views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from pyoxigraph import Quad, Store

from headwater.datasets.dataset import DataSet
from headwater.datasets.linked_data import LinkedData
from headwater.datasets.loading.temporary_dataset import add_statements
from headwater.execution.answers import Answer
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.execution.static_data import StaticData
from headwater.language.stream_clauses import StreamOperator
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import Element, NamedNode
from headwater.terms.stored_forms import to_stored_quad
from headwater.windows.settings import Report
from tests.kernel.generated_queries import GRAPHS, STREAMS, Case, a_case, a_triple
from tests.kernel.generated_runs import compared
from tests.optimised_evaluators import make_optimised_evaluator

Change = tuple[list[Quad], list[Quad]]
"""The statements that are added and removed."""

Piece = dict[str, list[Element]]
"""Some elements of each stream."""


class Stores:
    """A store for each version."""

    def __init__(self, quads: list[Quad], changes: list[Change]) -> None:
        self._contents = [set(quads)]
        for added, removed in changes:
            self._contents.append((self._contents[-1] - set(removed)) | set(added))
        self.move((1,))

    @property
    def version(self) -> tuple[int, ...]:
        return self._version

    def differences(self, version: tuple[int, ...]) -> None:
        return None

    def move(self, version: tuple[int, ...]) -> None:
        self._version = version
        self._store = Store()
        for graph in GRAPHS:
            self._store.add_graph(NamedNode(graph))
        self._store.extend(map(to_stored_quad, self._contents[version[0] - 1]))

    def quads_for_pattern(self, *pattern: Any) -> Iterator[Quad]:
        return self._store.quads_for_pattern(*pattern)

    def named_graphs(self) -> Iterator[Any]:
        return iter(self._store.named_graphs())


def a_quad(random: Random) -> Quad:
    triple = a_triple(random)
    graph = random.choice([None, *map(NamedNode, GRAPHS)])
    if graph is None:
        return Quad(triple.subject, triple.predicate, triple.object)
    return Quad(triple.subject, triple.predicate, triple.object, graph)


def changes_of(case: Case, random: Random, count: int) -> list[Change]:
    return [
        (
            [a_quad(random) for _ in range(random.randrange(3))],
            random.sample(case.quads, min(len(case.quads), random.randrange(3)))
            + [a_quad(random) for _ in range(random.randrange(2))],
        )
        for _ in range(count)
    ]


def pieces_of(case: Case, random: Random) -> list[Piece]:
    """The streams in parts."""
    left = {stream: list(elements) for stream, elements in case.elements.items()}
    found: list[Piece] = []
    while any(left.values()):
        piece: dict[str, list[Element]] = {}
        for stream, elements in left.items():
            size = random.randint(0, 4)
            piece[stream], left[stream] = elements[:size], elements[size:]
        found.append(piece)
    return found


def answers_over(
    static: StaticData,
    registered: RegisteredQuery,
    pieces: list[Piece],
    versions: list[int],
    evaluator: MakeEvaluator,
    restarts: bool = False,
    prepares: Random | None = None,
) -> list[Answer]:
    """The answers, with the data at a version for each piece and for the end; some versions are prepared before."""
    program = Program([registered], static, 0, evaluator)
    answers: list[Answer] = []
    for piece, version in zip(pieces, versions, strict=False):
        if prepares is not None and prepares.randrange(3):
            # What is prepared may be another version than the one that is then seen.
            program.prepare_version((prepares.choice([version, versions[-1]]),), prepares.choice([0.0, 5.0]))
        answers += program.advance(dict(piece), version=(version,)).answers
        if prepares is not None and prepares.randrange(3) == 0:
            # As a worker on Spark does, which does not know what the next batch will see.
            program.prepare_newest()
        if restarts:
            saved = program.snapshot()
            program = Program([registered], static, 0, evaluator)
            program.restore(saved)
    return [*answers, *program.advance({}, ended=list(STREAMS), version=(versions[-1],)).answers]


def answers_by_ticks(
    static: StaticData,
    registered: RegisteredQuery,
    pieces: list[Piece],
    newest: int,
    evaluator: MakeEvaluator,
    seed: int,
) -> list[Answer]:
    """The answers, with the data at a version of its own for each tick: the same ones for everybody."""
    program = Program([registered], static, 0, evaluator)
    random, version = Random(seed), 1

    def next_version() -> tuple[int, ...]:
        nonlocal version
        version = random.choice([version, random.randint(version, newest)])
        return (version,)

    program.move_static_data((1,))
    found: list[Answer] = []
    for piece, ended in [*((dict(piece), ()) for piece in pieces), ({}, STREAMS)]:
        for step in program.advance_by_ticks(piece, ended, lambda tick: (tick, next_version())):
            assert len({answer.time for answer in step.answers}) <= 1
            found += step.answers
    return found


def check_by_ticks(number: int, folder: Path, case: Case, changes: list[Change], pieces: list[Piece]) -> None:
    """What each tick shows is what it would show if the data had always been as it is then."""
    registered = RegisteredQuery(*case.plan())
    newest = len(changes) + 1
    stores = Stores(list(case.quads), changes)
    truth = answers_by_ticks(stores, registered, pieces, newest, ReferenceEvaluator, number)
    if registered.settings.emit is StreamOperator.RSTREAM and registered.settings.report is not Report.CHANGE:
        always = {
            version: answers_over(stores, registered, pieces, [version] * (len(pieces) + 1), ReferenceEvaluator)
            for version in range(1, newest + 1)
        }
        assert [*map(compared, truth)] == [
            compared(always[one.data_version[0]][place]) for place, one in enumerate(truth) if one.data_version
        ]
    data = LinkedData([DataSet.open(folder, version=1)])
    found = answers_by_ticks(data, registered, pieces, newest, make_optimised_evaluator, number)
    assert [*map(compared, found)] == [*map(compared, truth)], f"case {number} by ticks: {case.text}\n{changes}"
    assert [one.data_version for one in found] == [one.data_version for one in truth]


def check_case(number: int, folder: Path, make_case: Callable[[Random], Case] = a_case) -> bool:
    """Whether a case in which all agree has answers."""
    random = Random(number)
    case = make_case(random)
    registered = RegisteredQuery(*case.plan())
    pieces = pieces_of(case, random)
    changes = changes_of(case, random, random.randrange(1, 5))
    versions = sorted(random.randint(1, len(changes) + 1) for _ in range(len(pieces) + 1))
    add_statements(folder, list(case.quads), map(NamedNode, GRAPHS))
    writer = DataSet.open(folder)
    for added, removed in changes:
        writer.change(added, removed)
    truth = answers_over(Stores(list(case.quads), changes), registered, pieces, versions, ReferenceEvaluator)
    restarts = random.randrange(3) == 0
    for evaluator in (ReferenceEvaluator, make_optimised_evaluator):
        data = LinkedData([DataSet.open(folder, version=1)])
        found = answers_over(data, registered, pieces, versions, evaluator, restarts, random)
        what = f"case {number}, {evaluator.__name__}, versions {versions}, restarts {restarts}: {case.text}\n{changes}"
        assert [*map(compared, found)] == [*map(compared, truth)], what
        assert {answer.data_version for answer in found} <= {(version,) for version in versions}
    check_by_ticks(number, folder, case, changes, pieces)
    return any(not answer.is_empty for answer in truth)
