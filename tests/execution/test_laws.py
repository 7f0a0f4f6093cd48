"""The three laws of the semantics on generated streams, windows and queries: definition, batching, order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.answers import Answer
from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.language.parser import parse
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.model import Element, Literal, NamedNode, Triple
from headwater.windows.element_sequences import Elements
from headwater.windows.model import Bounds
from headwater.windows.settings import Content, Options, Report, resolve_settings
from tests.reference.naive import (
    Evaluate,
    Fact,
    NaiveWindow,
    Solution,
    Timed,
    change_ticks,
    close_ticks,
    counted,
    facts_of,
    join,
    left_join,
    match,
    minus,
    project,
)
from tests.reference_programs import reference_program

INSTANTS = range(-40, 120)
EX = "http://example.org/"


@dataclass(frozen=True)
class Shape:
    """A query, written once for the engine ({0} and {1} are its windows' contents) and once as a function."""

    body: str
    select: str
    evaluate: Evaluate
    windows: int = 1
    tail: str = ""


P, Q = ("?x", "p", "?v"), ("?y", "q", "?v")
SHAPES = [
    Shape("{0:?x :p ?v}", "?x ?v", lambda w: match(w[0], P)),
    Shape("{0:?x :p ?v . ?y :q ?v}", "?x ?y", lambda w: project(match(w[0], P, Q), "x", "y")),
    Shape("{0:?x :p ?v} {1:?y :q ?v}", "?x ?y ?v", lambda w: join(match(w[0], P), match(w[1], Q)), windows=2),
    Shape(
        "{0:?x :p ?v} OPTIONAL {{ {1:?y :q ?v} }}",
        "?x ?v ?y",
        lambda w: left_join(match(w[0], P), match(w[1], Q)),
        windows=2,
    ),
    Shape("{0:?x :p ?v} MINUS {{ {0:?y :q ?v} }}", "?x ?v", lambda w: minus(match(w[0], P), match(w[0], Q))),
    Shape(
        "{{ {0:?x :p ?v} }} UNION {{ {1:?x :q ?v} }}",
        "?x ?v",
        lambda w: match(w[0], P) + match(w[1], ("?x", "q", "?v")),
        windows=2,
    ),
    Shape(
        "{0:?x :p ?v} FILTER NOT EXISTS {{ {0:?y :q ?v} }}",
        "?x ?v",
        lambda w: [s for s in match(w[0], P) if not any(dict(s)["v"] == dict(o)["v"] for o in match(w[0], Q))],
    ),
    Shape("{0:?x :p ?v} FILTER(?v > 1)", "?x ?v", lambda w: [s for s in match(w[0], P) if int(dict(s)["v"]) > 1]),
    Shape("{0:?x :p ?v}", "DISTINCT ?v", lambda w: sorted(set(project(match(w[0], P), "v")), key=sorted)),
    Shape("{0:?x :p ?v}", "?x (COUNT(*) AS ?n)", lambda w: counted(match(w[0], P), "x", "n"), tail="GROUP BY ?x"),
]


@dataclass(frozen=True)
class Case:
    shape: Shape
    windows: tuple[NaiveWindow, ...]
    streams: tuple[int, ...]
    report: Report
    emit: StreamOperator
    content: Content
    elements: tuple[tuple[Timed, ...], ...]
    period: int = 3

    def text(self) -> str:
        declared = []
        for number, window in enumerate(self.windows):
            if window.count is not None:
                spec = f"TRIPLES {window.count}"
            else:
                spec = f"RANGE {window.width}us" + (f" STEP {window.slide}us" if window.slide else "")
            declared.append(f"FROM NAMED WINDOW :w{number} ON :s{self.streams[number]} [{spec}]")
        body = self.shape.body
        for number in range(self.shape.windows):
            body = body.replace(f"{{{number}:", f"WINDOW :w{number} {{")
        body = body.replace("{{", "{").replace("}}", "}")
        every = f" COMPUTED EVERY {self.period}us" if self.report is Report.PERIODIC else ""
        head = f"PREFIX : <{EX}> REGISTER QUERY q{every} AS SELECT {self.shape.select} " + " ".join(declared)
        return f"{head} WHERE {{ {body} }} {self.shape.tail}"

    def program(self, delay: int = 0) -> Program:
        first = self.windows[0]
        options = Options(
            bounds=Bounds.LEFT_OPEN if first.closed_right else Bounds.RIGHT_OPEN,
            report=self.report,
            emit=self.emit,
            content=self.content,
            t0=first.t0,
        )
        plan = plan_query(parse(self.text()))
        return reference_program([RegisteredQuery(plan, resolve_settings(plan, options))], Store(), delay)

    def batches(self) -> dict[str, list[Element]]:
        return {
            f"{EX}s{number}": [element(timed, i) for i, timed in enumerate(elements)]
            for number, elements in enumerate(self.elements)
            if number in self.streams
        }


def element(timed: Timed, position: int) -> Element:
    triples = tuple(
        Triple(NamedNode(EX + s), NamedNode(EX + p), Literal(o, datatype=NamedNode(XSD_INTEGER)))
        for s, p, o in timed[1]
    )
    return Element(timed[0], triples, None, (position,))


XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"

facts = st.tuples(st.sampled_from("ab"), st.sampled_from("pq"), st.sampled_from("123"))
graphs = st.lists(facts, min_size=1, max_size=3, unique=True).map(tuple)
streams = st.lists(st.tuples(st.integers(-10, 40), graphs), max_size=9).map(
    lambda elements: tuple(sorted(elements, key=lambda timed: timed[0]))
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    shape = draw(st.sampled_from(SHAPES))
    closed_right = draw(st.booleans())
    t0 = draw(st.none() | st.integers(-5, 5))
    windows = []
    for _ in range(shape.windows):
        kind = draw(st.sampled_from(["stepped", "sliding", "count"]))
        width = draw(st.integers(1, 12))
        if kind == "count":
            windows.append(NaiveWindow(0, count=draw(st.integers(1, 4)), t0=t0, closed_right=closed_right))
        else:
            slide = draw(st.integers(1, 12)) if kind == "stepped" else None
            windows.append(NaiveWindow(width, slide, t0, closed_right))
    return Case(
        shape,
        tuple(windows),
        tuple(draw(st.integers(0, 1)) for _ in windows),
        draw(st.sampled_from(list(Report))),
        draw(st.sampled_from(list(StreamOperator))),
        draw(st.sampled_from(list(Content))),
        (draw(streams), draw(streams)),
        draw(st.integers(1, 9)),
    )


def as_solutions(answer: Answer) -> Counter[Solution]:
    return Counter(
        frozenset(
            (v, t.value.removeprefix(EX) if isinstance(t, NamedNode) else t.value)  # type: ignore[union-attr]
            for v, t in zip(answer.variables, row, strict=True)
            if t is not None
        )
        for row in answer.rows
    )


def expected_ticks(case: Case) -> list[int]:
    read = [(window, list(case.elements[s])) for window, s in zip(case.windows, case.streams, strict=True)]
    if case.report is Report.EAGER:
        return change_ticks(read, INSTANTS)
    if case.report is Report.PERIODIC:
        return periodic_ticks(case, read)
    stepped = [(w, e) for w, e in read if w.slide is not None]
    ticks = set(change_ticks([(w, e) for w, e in read if w.slide is None], INSTANTS))
    if stepped:
        # The ticks of all stepped windows go on as long as any window holds the last element of its stream.
        ends = [t for w, e in read for t in INSTANTS if e and last_visible(w, e) >= t]
        end = max(ends, default=-1000)
        for window, elements in stepped:
            own = close_ticks(window, elements, INSTANTS)
            start = first_advance(window, elements)
            if start is not None:
                ticks.update(t for t in INSTANTS if window.is_advance(t) and start <= t <= max([end, *own]))
    return sorted(ticks)


def periodic_ticks(case: Case, read: list[tuple[NaiveWindow, list[Timed]]]) -> list[int]:
    """The multiples of the period from where a window can hold something to where none does any more."""
    filled = [(w, e) for w, e in read if e]
    if not filled:
        return []
    t0 = read[0][0].t0
    entered = [min(t for t, _ in e) if w.count is not None else naive_enter(w, e) for w, e in filled]
    start = t0 + case.period if t0 is not None else min(entered)
    grid = [t for t in INSTANTS if (t - (t0 or 0)) % case.period == 0 and t >= start]
    ends = [
        max([last_visible(w, e), *[t for t in grid if t >= last_visible(w, e)][: 1 if w.count is not None else 0]])
        for w, e in filled
    ]
    return [t for t in grid if t <= max(ends)]


def naive_enter(window: NaiveWindow, elements: list[Timed]) -> int:
    enough = min(t for t, _ in elements) + (0 if window.closed_right else 1)
    return next(t for t in range(enough, 400) if (t - window.width - (window.t0 or 0)) % (window.slide or 1) == 0)


def first_advance(window: NaiveWindow, elements: list[Timed]) -> int | None:
    if window.t0 is not None and window.slide is not None:
        return window.t0 + window.width
    if not elements:
        return None
    first = min(t for t, _ in elements)
    enough = first if window.closed_right else first + 1
    return next(t for t in INSTANTS if window.is_advance(t) and t >= enough)


def last_visible(window: NaiveWindow, elements: list[Timed]) -> int:
    """The last instant before the window has passed its last element."""
    last = max(t for t, _ in elements)
    if window.count is not None:
        return last
    passed = last + window.width + (0 if window.closed_right else 1)
    while not window.is_advance(passed) and passed < 200:
        passed += 1
    return passed - 1


def expected(case: Case) -> list[tuple[int, Counter[Solution]]]:
    """What the definition says at each tick."""
    answers = []
    before: Counter[Solution] = Counter()
    shown: list[Counter[Fact]] = [Counter() for _ in case.windows]
    for tick in expected_ticks(case):
        contents = [
            facts_of(window.content(list(case.elements[s]), tick), as_set=case.content is Content.SET)
            for window, s in zip(case.windows, case.streams, strict=True)
        ]
        if case.report is Report.CHANGE:
            changed = [Counter(facts) for facts in contents] != shown
            shown = [Counter(facts) for facts in contents]
            if not changed:
                continue
        if case.report is Report.NONEMPTY and not any(contents):
            continue
        now = Counter(case.shape.evaluate(contents))
        kept = {
            StreamOperator.RSTREAM: now,
            StreamOperator.ISTREAM: now - before,
            StreamOperator.DSTREAM: before - now,
        }[case.emit]
        if kept or case.emit is StreamOperator.RSTREAM or case.report in (Report.CLOSE, Report.PERIODIC):
            answers.append((tick, kept))
        before = now
    return answers


def run_whole(case: Case) -> list[tuple[int, Counter[Solution]]]:
    batches = case.batches()
    step = case.program().advance(batches, ended=[f"{EX}s0", f"{EX}s1"])
    assert not step.late
    return [(answer.time, as_solutions(answer)) for answer in step.answers]


@given(cases())
def test_definition(case: Case) -> None:
    """Every answer equals the evaluation of the window contents, as the definition says."""
    assert run_whole(case) == expected(case)


@given(cases(), st.data())
def test_batching(case: Case, data: st.DataObject) -> None:
    """Answers do not depend on how the streams were cut into batches, and each batch into its ticks."""
    program = case.program()
    answers: list[tuple[int, Counter[Solution]]] = []
    in_ticks = data.draw(st.booleans())

    def advance(batch: dict[str, Elements], ended: Sequence[str] = ()) -> None:
        steps = (
            list(program.advance_by_ticks(batch, ended, lambda tick: (tick, ())))
            if in_ticks
            else [program.advance(batch, ended)]
        )
        assert [step.is_last for step in steps] == [False] * (len(steps) - 1) + [True]
        for step in steps:
            assert len({answer.time for answer in step.answers}) <= 1 or not in_ticks
            answers.extend((answer.time, as_solutions(answer)) for answer in step.answers)

    waiting = case.batches()
    while any(waiting.values()):
        taken = {stream: data.draw(st.integers(0, len(elements))) for stream, elements in waiting.items()}
        if not any(taken.values()):
            taken = {stream: 1 for stream in waiting}
        advance({stream: elements[: taken[stream]] for stream, elements in waiting.items()})
        waiting = {stream: elements[taken[stream] :] for stream, elements in waiting.items()}
    advance({}, ended=[f"{EX}s0", f"{EX}s1"])
    assert answers == run_whole(case)


@given(cases(), st.randoms(use_true_random=False), st.integers(1, 8))
def test_order(case: Case, random: object, delay: int) -> None:
    """A shuffle of arrivals within the allowed delay changes nothing."""
    program = case.program(delay)
    answers: list[tuple[int, Counter[Solution]]] = []
    shuffled: list[tuple[str, list[Element]]] = []
    for stream, elements in case.batches().items():
        order = sorted(elements, key=lambda e: e.time + random.random() * delay)  # type: ignore[attr-defined]
        shuffled.append((stream, [Element(e.time, e.triples, None, (i,)) for i, e in enumerate(order)]))
    for stream, elements in shuffled:
        for one in elements:
            step = program.advance({stream: [one]})
            assert not step.late
            answers.extend((answer.time, as_solutions(answer)) for answer in step.answers)
    step = program.advance({}, ended=[f"{EX}s0", f"{EX}s1"])
    answers.extend((answer.time, as_solutions(answer)) for answer in step.answers)
    assert answers == run_whole(case)


def test_the_generator_reaches_answers_of_every_kind() -> None:
    """A law that only ever saw empty answers would say nothing."""
    facts: tuple[Fact, ...] = (("a", "p", "1"), ("b", "q", "1"))
    for shape in SHAPES:
        windows = tuple(NaiveWindow(10, 5) for _ in range(shape.windows))
        case = Case(
            shape,
            windows,
            (0,) * shape.windows,
            Report.CLOSE,
            StreamOperator.RSTREAM,
            Content.SET,
            (((3, facts), (7, (("a", "p", "2"),))), ()),
        )
        assert any(rows for _, rows in run_whole(case)), shape.body
        assert run_whole(case) == expected(case)
