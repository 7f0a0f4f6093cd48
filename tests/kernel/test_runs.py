"""Runs: windows moved over many ticks, changes that cancel each other, whole results, and evaluators that take them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.answer_batch import AnswerPart
from headwater.execution.answers import Answer
from headwater.federation.service_evaluator import ServiceEvaluator
from headwater.kernel import moving_windows as kernel
from headwater.kernel.columns.delta_run import DeltaRun, concat_runs
from headwater.kernel.columns.row_counts import RowCounts
from headwater.kernel.columns.window_buffers import TripleBuffer
from headwater.kernel.families.family_evaluator import FamilyEvaluator
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.model import SECOND, XSD, Element, Literal, NamedNode, Triple
from headwater.windows.caps import WindowCapError
from headwater.windows.model import Bounds, CountWindow, TimeWindow, Window
from headwater.windows.settings import Options, Report, resolve_settings
from tests.kernel.manual_input import as_bag

Change = tuple[int, int, int]
"""A row of one value, its tick, its sign."""

windows = st.one_of(
    st.builds(
        TimeWindow,
        st.one_of(st.none(), st.integers(1, 12)),
        st.one_of(st.none(), st.integers(1, 6)),
        st.integers(0, 3),
        st.one_of(st.none(), st.integers(0, 8)),
        st.sampled_from(Bounds),
        st.one_of(st.none(), st.integers(0, 5)),
    ),
    st.builds(CountWindow, st.integers(1, 6), st.none(), st.sampled_from(["triples", "elements"])),
)


@given(windows.filter(lambda window: isinstance(window, TimeWindow)), st.lists(st.integers(-5, 40), min_size=1))
def test_intervals_are_those_of_the_instants(window: TimeWindow, instants: list[int]) -> None:
    lows, highs = window.intervals(np.array(instants))
    assert list(zip(lows.tolist(), highs.tolist(), strict=True)) == [window.interval(one) for one in instants]
    assert window.entry_instants(np.array(instants)).tolist() == [window.entry_instant(one) for one in instants]
    left = window.exit_instants(np.array(instants))
    assert (instants if left is None else left.tolist()) == [
        one if (gone := window.exit_instant(one)) is None else gone for one in instants
    ]


@settings(max_examples=300)
@given(windows, st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=20), st.data(), st.booleans())
def test_a_window_moved_over_a_run_shows_what_it_shows_tick_by_tick(
    window: Window, items: list[tuple[int, int]], data: st.DataObject, has_times: bool
) -> None:
    items.sort()
    times = np.array([time for time, _ in items], dtype=np.int64)
    sizes = [size if isinstance(window, TimeWindow) or window.unit == "elements" else 1 for _, size in items]
    starts = np.array([0, *np.cumsum(sizes)], dtype=np.int64)
    triples = np.arange(3 * sum(sizes), dtype=np.int64).reshape(-1, 3)
    ticks = sorted(data.draw(st.sets(st.integers(0, 45), min_size=2)))
    begin = data.draw(st.integers(0, len(ticks) - 1))
    one, other = (TripleBuffer(window, "w", 1 << 20, has_times=has_times) for _ in range(2))
    for buffer in (one, other):
        buffer.add(times, starts, triples)
        for tick in ticks[:begin]:
            buffer.move(tick, 0)
    run = other.move_run(np.array(ticks[begin:]))
    for number, tick in enumerate(ticks[begin:]):
        delta = one.move(tick, 0)
        here = run.ticks == number
        assert as_bag(run.rows[here & (run.signs > 0)]) == as_bag(delta.added)
        assert as_bag(run.rows[here & (run.signs < 0)]) == as_bag(delta.removed)
        view = one.view(tick)
        assert [int(column[number]) for column in other.run_views] == [view.low, view.high, view.items]
    assert other.triples.tolist() == one.triples.tolist()


def test_a_run_that_exceeds_the_cap_is_refused() -> None:
    buffer = TripleBuffer(TimeWindow(100), "w", 3)
    buffer.add(np.arange(5), np.arange(6), np.zeros((5, 3), dtype=np.int64))
    with pytest.raises(WindowCapError, match="holds 5 triples, of at most 3"):
        buffer.move_run(np.arange(5))


def _run_of(changes: list[Change]) -> DeltaRun:
    ordered = sorted(changes, key=lambda change: change[1])
    return DeltaRun(
        np.array([[row] for row, _, _ in ordered], dtype=np.int64).reshape(-1, 1),
        np.array([tick for _, tick, _ in ordered], dtype=np.int64),
        np.array([sign for _, _, sign in ordered], dtype=np.int8),
    )


changes = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.sampled_from([-1, 1])), max_size=30)


@given(changes, st.sampled_from([-1, 1]))
def test_changes_of_a_tick_cancel_each_other(given_changes: list[Change], sign: int) -> None:
    run = _run_of(given_changes)
    net: Counter[tuple[int, int]] = Counter()
    for row, tick, one in given_changes:
        net[tick, row] += one * sign
    left = run.select(run.net_places(sign))
    found = Counter(zip(left.ticks.tolist(), left.rows[:, 0].tolist(), strict=True))
    assert found == +net
    assert (np.diff(left.ticks) >= 0).all()


@given(changes, changes)
def test_runs_are_merged_by_their_ticks(one: list[Change], other: list[Change]) -> None:
    merged = concat_runs([_run_of(one), _run_of(other)], 1)
    assert (np.diff(merged.ticks) >= 0).all()
    listed = zip(merged.rows[:, 0].tolist(), merged.ticks.tolist(), merged.signs.tolist(), strict=True)
    assert Counter(listed) == Counter([*one, *other])


@given(st.lists(st.lists(st.integers(0, 5), max_size=8), min_size=1, max_size=40))
def test_the_bag_after_each_tick(contents: list[list[int]]) -> None:
    """Each tick has a content of its own, and the run has the differences."""
    listed: list[Change] = []
    before: Counter[int] = Counter()
    for tick, content in enumerate(contents):
        now = Counter(content)
        listed += [(row, tick, -1) for row in (before - now).elements()]
        listed += [(row, tick, 1) for row in (now - before).elements()]
        before = now
    offsets, rows = RowCounts(1).list_bags(_run_of(listed), len(contents))
    bags = np.split(rows[:, 0], offsets[1:-1])
    assert [sorted(bag.tolist()) for bag in bags] == [sorted(content) for content in contents]


EX = "http://example.org/"
QUERIES = (
    "SELECT ?x ?y ?z WHERE { STREAM :s [TRIPLES 7] { ?x :p ?y . ?y :p ?z } }",
    "SELECT ?x ?y WHERE { STREAM :s [NOW] { ?x :p ?y } STREAM :s [RANGE 3s] { ?y :q ?z } FILTER(?x != ?z) }",
    "SELECT ?x (COUNT(*) AS ?n) (AVG(?v) AS ?a) WHERE { STREAM :s [RANGE 2s] { ?x :v ?v } } GROUP BY ?x",
    "SELECT (SUM(?v) AS ?s) (COUNT(DISTINCT ?x) AS ?n) WHERE { STREAM :s [RANGE 4s SLIDE 1s] { ?x :v ?v } }",
    "SELECT ?x (MAX(?v) AS ?m) WHERE { STREAM :s [TRIPLES 5] { ?x :v ?v } } GROUP BY ?x",
    "SELECT DISTINCT ?x WHERE { STREAM :s [RANGE 2s] { ?x ?k ?y } MINUS { STREAM :s [NOW] { ?x :q ?y } } }",
    "CONSTRUCT { ?x :near ?z } WHERE { STREAM :s [RANGE 2s] { ?x :p ?y } STREAM :s [TRIPLES 9] { ?z :q ?y } }",
    "SELECT ?x ?y ?w WHERE { STREAM :s [RANGE 3s] { ?x :p ?y OPTIONAL { ?y :q ?w } } }",
    "SELECT ?x ?y ?w WHERE { STREAM :s [TRIPLES 6] { ?x :p ?y OPTIONAL { ?y :v ?w FILTER(?w > 1) } } }",
    "SELECT ?x ?w ?z WHERE { STREAM :s [TRIPLES 9] { ?x :p ?y OPTIONAL { ?y :q ?w } ?z :p ?w } }",
    "SELECT ?x (EXISTS { STREAM :s [RANGE 2s] { ?x :q ?z } } AS ?e) WHERE { STREAM :s [RANGE 3s] { ?x :p ?y } }",
    "SELECT ?x WHERE { STREAM :s [RANGE 3s] { ?x :p ?y } FILTER NOT EXISTS { STREAM :s [NOW] { ?y :q ?z } } }",
    "SELECT (MIN(?v) AS ?a) (MAX(?v) AS ?b) (SAMPLE(?v) AS ?c) WHERE { STREAM :s [RANGE 2s] { ?x :v ?v } }",
    "SELECT ?x ?v WHERE { STREAM :s [RANGE 2s] { ?x :v ?v } } ORDER BY DESC(?v) ?x LIMIT 2",
    "ASK { STREAM :s [TRIPLES 4] { ?x :p ?y . ?y :q ?z } }",
    "SELECT DISTINCT ?x WHERE { STREAM :s [RANGE 1s] { ?x :p ?y . ?z :p ?y } }",
    "SELECT ?x ?y WHERE { STREAM :s [TRIPLES 5 SLIDE 2] { ?x :p ?y } }",
    "SELECT ?x ?z WHERE { STREAM :s [RANGE 1s SLIDE 1s] { ?x ?k ?y . ?y ?l ?z } }",
    "SELECT ?x (MIN(?v) AS ?m) WHERE { STREAM :s [TRIPLES 4 SLIDE 3] { ?x :v ?v } STREAM :s [RANGE 1s] { ?x :p ?y } } "
    "GROUP BY ?x",
)
VALUES = (
    Literal(1),
    Literal(2),
    Literal("1.0", datatype=NamedNode(XSD + "decimal")),
    Literal(1.0),
    Literal("n"),
    NamedNode(EX + "n1"),
)
"""Of these, several are equal numbers, and some are none."""


@st.composite
def streams(draw: st.DrawFn) -> list[Element]:
    """Elements of one or two triples, several at some instants, with repeated triples; some have pauses in between."""
    time, elements = 0, []
    has_numbers, has_pauses = draw(st.booleans()), draw(st.booleans())
    distances = [0, 2 * SECOND, 5 * SECOND] if has_pauses else [0, 1, 250_000, 400_000, SECOND]
    for _ in range(draw(st.integers(10, 40))):
        time += draw(st.sampled_from(distances))
        triples = []
        for _ in range(draw(st.integers(1, 2))):
            subject = NamedNode(f"{EX}n{draw(st.integers(0, 3))}")
            predicate = draw(st.sampled_from("pqv"))
            number = draw(st.integers(0, 3))
            # A stream without other values than numbers is the common case.
            few = VALUES[:3] if has_numbers else VALUES
            value = draw(st.sampled_from(few)) if predicate == "v" else NamedNode(f"{EX}n{number}")
            triples.append(Triple(subject, NamedNode(EX + predicate), value))
        elements.append(Element(time, tuple(triples)))
    return elements


def _answers(text: str, emit: StreamOperator, elements: list[Element], cuts: list[int]) -> list[Answer]:
    plan = plan_query(parse(f"PREFIX : <{EX}> {text}"), name="q", streams=[EX + "s"])
    evaluator = KernelEvaluator(plan, resolve_settings(plan, Options(emit=emit)), Store())
    answers: list[Answer] = []
    for low, high in zip([0, *cuts], [*cuts, len(elements)], strict=True):
        some = elements[low:high]
        batch = {key: some for key in dict.fromkeys(evaluator.keys)}
        watermark = elements[high].time if high < len(elements) else None
        answers += evaluator.advance(batch, watermark, ended=watermark is None)
    return answers


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("emit", StreamOperator)
@settings(max_examples=8)
@given(elements=streams(), data=st.data())
def test_any_cut_into_steps_gives_the_answers_of_single_ticks(
    text: str, emit: StreamOperator, elements: list[Element], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(elements) - 1), max_size=5)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_WORTH_A_RUN", 2)
        patch.setattr(kernel, "_MOST_TRIPLES_IN_A_RUN", data.draw(st.sampled_from([3, 1 << 18])))
        patch.setattr(kernel, "_LARGE_TICK", data.draw(st.sampled_from([0, 2, 1024])))
        in_runs = _answers(text, emit, elements, cuts)
        patch.setattr(KernelEvaluator, "_takes_runs", False)
        one_by_one = _answers(text, emit, elements, [])
    assert in_runs == one_by_one
    assert [answer.inputs for answer in in_runs] == [answer.inputs for answer in one_by_one]


@pytest.mark.parametrize(
    ("text", "report", "takes_runs"),
    [
        ("SELECT * WHERE { STREAM :s [TRIPLES 3] { ?x :p ?y } }", None, True),
        ("SELECT ?x (SAMPLE(?y) AS ?s) WHERE { STREAM :s [TRIPLES 3] { ?x :p ?y } } GROUP BY ?x", None, True),
        ("SELECT ?x (GROUP_CONCAT(?y) AS ?s) WHERE { STREAM :s [TRIPLES 3] { ?x :p ?y } } GROUP BY ?x", None, True),
        ("SELECT (MAX(?y) AS ?m) WHERE { STREAM :s [TRIPLES 3] { ?x :p ?y } }", None, True),
        ("SELECT ?x WHERE { STREAM :s [TRIPLES 3] { ?x :p ?y } } ORDER BY ?x LIMIT 1", None, True),
        ("SELECT * WHERE { STREAM :s [TRIPLES 3] { ?x :p ?y } }", Report.NONEMPTY, False),
        ("SELECT * WHERE { STREAM :s [TRIPLES 3] { ?x :p ?y } }", Report.CHANGE, False),
        ("DESCRIBE ?x WHERE { STREAM :s [TRIPLES 3] { ?x :p ?y } }", None, False),
    ],
)
def test_which_queries_take_many_ticks_in_one_step(
    text: str, report: Report | None, takes_runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 33 has the list. Families and SERVICE say it of themselves."""
    steps: list[int] = []
    answer_run = KernelEvaluator._answer_run

    def counting(evaluator: KernelEvaluator, ticks: list[int], watermark: int | None) -> AnswerPart:
        steps.append(len(ticks))
        return answer_run(evaluator, ticks, watermark)

    monkeypatch.setattr(KernelEvaluator, "_answer_run", counting)
    plan = plan_query(parse(f"PREFIX : <{EX}> {text}"))
    evaluator = KernelEvaluator(
        plan, resolve_settings(plan, Options(report=report, emit=StreamOperator.RSTREAM)), Store()
    )
    node, predicate = NamedNode(f"{EX}n"), NamedNode(f"{EX}p")
    elements = [Element(number, (Triple(node, predicate, VALUES[number % 6]),)) for number in range(40)]
    answers = evaluator.advance({evaluator.keys[0]: elements}, None, ended=True)
    assert len(answers) == 40
    assert (sum(steps) >= 30) == takes_runs == bool(steps)
    assert not ServiceEvaluator._takes_runs and not FamilyEvaluator._takes_runs
