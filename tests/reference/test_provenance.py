"""What is behind an answer: found from the top down it is what the definition gives, and that keeps its laws."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from headwater.algebra.nodes import Aggregation, ExistsPlan, Group, LeftJoin, Minus, Node, Slice
from headwater.algebra.scope import expressions_of, nodes_of, sub_expressions
from headwater.algebra.window_graphs import DEFAULT
from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.language.expressions import FunctionCall, Operation, Timestamp
from headwater.reference.derivations import Derivations
from headwater.reference.observed_ticks import TickObserver
from headwater.reference.provenance import Provenance
from headwater.reference.tick_solutions import FoundElement, StaticTriple, TickSolutions
from headwater.terms.model import NamedNode
from tests.kernel.generated_queries import STREAMS, Case, a_case

CASES, BLOCK = 1_000, 200
"""Every second one with GRAPH in the clauses of windows; they take about half a minute."""


def observe(case: Case, look: Callable[[TickSolutions], None]) -> None:
    """Have a function look at the first tick of a case that has a solution."""
    has_seen = False

    def look_once(tick: TickSolutions) -> None:
        nonlocal has_seen
        if not has_seen and tick.solutions(tick.plan.root, DEFAULT):
            has_seen = True
            look(tick)

    plan, settings = case.plan()
    program = Program([RegisteredQuery(plan, settings)], case.store(), 0, partial(TickObserver, observe=look_once))
    program.advance({stream: list(elements) for stream, elements in case.elements.items()}, ended=list(STREAMS))
    for suspension in program.suspensions.values():
        raise suspension.to_error("query")


def check_case(number: int) -> tuple[int, int]:
    """Compare the two ways at a tick of a case; gives how many solutions were explained, and in graphs of windows."""
    case = a_case(Random(number), named=number % 2 == 1)
    explained = in_graphs = 0

    def look(tick: TickSolutions) -> None:
        nonlocal explained, in_graphs
        expected = Provenance(tick).of_plan()
        assert expected.keys() == tick.solutions(tick.plan.root, DEFAULT), f"case {number}: {case.text}"
        derivations = Derivations(tick)
        for solution, leaves in expected.items():
            assert derivations.find([solution]) == leaves, f"case {number}: {case.text}"
            explained += 1
            in_graphs += tick.plan.reads_window_graphs and any(is_in_some_window(tick, leaf.graph) for leaf in leaves)
        assert derivations.find(list(expected)) == frozenset().union(*expected.values())

    observe(case, look)
    return explained, in_graphs


def is_in_some_window(tick: TickSolutions, graph: NamedNode) -> bool:
    return any(graph in graphs.values() for graphs in tick.dataset.graphs_in_windows.values())


def check_block(first: int) -> None:
    explained, in_graphs = map(sum, zip(*map(check_case, range(first, first + BLOCK)), strict=True))
    assert explained > BLOCK / 2
    assert in_graphs > 5


@pytest.mark.parametrize("first", range(0, CASES, BLOCK))
def test_top_down_is_the_definition(first: int) -> None:
    check_block(first)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(CASES, 10 * CASES, BLOCK))
def test_top_down_is_the_definition_often(first: int) -> None:
    check_block(first)


def _kinds(root: Node) -> set[str]:
    """What a plan has for which the laws do not hold."""
    nodes = list(nodes_of(root))
    parts = [part for node in nodes for e in expressions_of(node) for part in sub_expressions(e)]
    found = {
        "group": any(isinstance(node, Group | Aggregation) for node in nodes),
        "slice": any(isinstance(node, Slice) for node in nodes),
        "missing": any(isinstance(node, LeftJoin | Minus) for node in nodes)
        or any(isinstance(part, ExistsPlan) and part.negated for part in parts)
        or any(isinstance(part, Operation) and part.operator == "!" for part in parts),
        # A value of EXISTS may be compared with others, and a sub-query has variables of its own.
        "exists": any(isinstance(part, ExistsPlan) for part in parts),
        "time": any(isinstance(part, Timestamp) for part in parts)
        or any(isinstance(part, FunctionCall) and part.name == "NOW" for part in parts),
    }
    return {kind for kind, is_there in found.items() if is_there}


def _remove(tick: TickSolutions, keep: Callable[[object], bool]) -> TickSolutions:
    """The same tick, with those elements and static triples alone that are to be kept."""
    from pyoxigraph import DefaultGraph, Quad, Store

    from headwater.reference.tick_dataset import TickDataset
    from headwater.reference.window_content import WindowBuffer
    from headwater.terms.stored_forms import to_stored_quad

    store = Store()
    for graph in (DEFAULT, *tick.dataset.named):
        store.add_graph(graph) if graph != DEFAULT else None
        for triple in tick.static_triples(graph):
            named = None if graph == DEFAULT else graph
            if keep(StaticTriple(named, triple)):
                where = named or DefaultGraph()
                store.add(to_stored_quad(Quad(triple.subject, triple.predicate, triple.object, where)))
    dataset = TickDataset.of(tick.plan, tick.settings.content, store)
    buffers = []
    for number, buffer in enumerate(tick.buffers):
        items = [one for one in buffer.shown if keep(FoundElement(number, one.time, one.position))]
        kept = WindowBuffer(buffer.definition, buffer.label, buffer.cap, items=items, times=[one.time for one in items])
        kept.high = len(items)
        dataset.change(number, items, [])
        buffers.append(kept)
    return TickSolutions(tick.plan, tick.settings, store, dataset, buffers, tick.tick)


def test_a_solution_stays_with_its_provenance_and_goes_without() -> None:
    stayed = went = 0
    for number in range(2_000, 2_090):
        case = a_case(Random(number), depth=1, named=number % 3 == 0)
        kinds = _kinds(case.plan()[0].root)
        if kinds & {"slice", "exists", "time"} or {"group", "missing"} <= kinds:
            continue

        def look(tick: TickSolutions, kinds: set[str] = kinds, text: str = case.text) -> None:
            nonlocal stayed, went
            for solution, leaves in list(Provenance(tick).of_plan().items())[:2]:
                behind = {one for leaf in leaves for one in tick.trace(leaf)}
                alone = _remove(tick, behind.__contains__)
                assert solution in alone.solutions(tick.plan.root, DEFAULT), text
                stayed += 1
                if behind and not kinds:
                    rest = _remove(tick, lambda one, behind=behind: one not in behind)  # type: ignore[misc]
                    assert solution not in rest.solutions(tick.plan.root, DEFAULT), text
                    went += 1

        observe(case, look)
    assert stayed > 10
    assert went > 5
