"""Live streams with pauses, by a clock that the test moves: answers are what the definition gives for the recording."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.algebra.build import plan_query
from headwater.execution.answers import Answer
from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.language.parser import parse
from headwater.running.program_description import ProgramDescription
from headwater.sources.following.stream_watch import StreamWatch
from headwater.terms.model import SECOND, Element, Literal, NamedNode, Triple
from headwater.windows.heartbeat import Heartbeat
from headwater.windows.settings import resolve_settings

EX = "http://ex/"
STREAMS = (EX + "a", EX + "b")
QUERIES = {
    "eager": "SELECT ?x WHERE { STREAM :a [NOW] { ?x :p ?v } }",
    "close": "SELECT ?x (COUNT(?v) AS ?n) FROM STREAM :a [RANGE 10s STEP 5s] WHERE { ?x :p ?v } GROUP BY ?x",
    "sums": "SELECT (COUNT(*) AS ?n) FROM STREAM :a [RANGE TRIPLES 3] WHERE { ?x :p ?v }",
    "joined": """
        SELECT ?x ?y
        FROM NAMED WINDOW :w1 ON :a [RANGE PT10S STEP PT5S] FROM NAMED WINDOW :w2 ON :b [RANGE PT20S STEP PT5S]
        WHERE { WINDOW :w1 { ?x :p ?v } WINDOW :w2 { ?y :p ?v } }""",
    "either": "SELECT ?x ?y WHERE { STREAM :a [RANGE 7s] { ?x :p ?v } STREAM :b [RANGE 7s] { ?y :p ?v } }",
    "made": """
        REGISTER STREAM made COMPUTED EVERY 5s AS CONSTRUCT { ?x :p ?v }
        FROM STREAM :a [RANGE 5s STEP 5s] WHERE { ?x :p ?v FILTER(?v > 1) }""",
    "reader": "SELECT ?x WHERE { STREAM <made> [RANGE 5s] { ?x :p ?v } STREAM :b [RANGE 9s] { ?y :p ?v } }",
}


@dataclass
class Arrival:
    """An element, and when it came."""

    pause: int
    stream: str
    lag: int
    value: int


@dataclass
class Story:
    """What a run met: elements with pauses in between, restarts, and how it was set up; times in seconds."""

    queries: tuple[str, ...]
    arrivals: list[Arrival]
    idle: dict[str, int]
    delay: int
    poll: int
    restarts: frozenset[int] = frozenset()
    stamps: frozenset[str] = frozenset()


@st.composite
def stories(draw: st.DrawFn) -> Story:
    names = draw(st.sampled_from([("eager",), ("close",), ("sums",), ("joined",), ("either",), ("made", "reader")]))
    arrivals = st.builds(
        Arrival, st.sampled_from([0, 0, 1, 2, 9, 30]), st.sampled_from(STREAMS), st.integers(0, 4), st.integers(0, 3)
    )
    stamps = draw(st.frozensets(st.sampled_from(STREAMS)))
    idle = {stream: draw(st.sampled_from([2, 5])) for stream in STREAMS if stream not in stamps}
    return Story(
        names,
        draw(st.lists(arrivals, min_size=1, max_size=12)),
        idle,
        draw(st.sampled_from([0, 3])),
        draw(st.sampled_from([1, 3])),
        draw(st.frozensets(st.integers(1, 30), max_size=3)),
        stamps,
    )


def make_program(story: Story, evaluator: Any) -> Program:
    queries = []
    for name in story.queries:
        plan = plan_query(parse("PREFIX : <http://ex/>\n" + QUERIES[name]), name=name, streams=STREAMS)
        queries.append(RegisteredQuery(plan, resolve_settings(plan)))
    idle = tuple((stream, seconds * SECOND) for stream, seconds in story.idle.items())
    return ProgramDescription(tuple(queries), delay=story.delay * SECOND, evaluator=evaluator, idle=idle).program()


def element(number: int, time: int, value: int) -> Element:
    triple = Triple(NamedNode(f"{EX}x{value % 2}"), NamedNode(EX + "p"), Literal(value))
    return Element(time, (triple,), position=(0, number))


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


class LiveRun:
    """Follows the arrivals of a story, as a runner does, by a clock of its own."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.clock = Clock()
        self.answers: list[Answer] = []
        self.admitted: dict[str, list[Element]] = {stream: [] for stream in STREAMS}
        self.late = 0
        self.program = make_program(story, "auto")
        self.last: dict[str, Heartbeat] = {}
        self.begin()

    def begin(self) -> None:
        self.watch = StreamWatch(self.clock, self.clock)
        for stream in STREAMS:
            self.watch.begin(stream, self.last.get(stream))

    def restart(self) -> None:
        """Goes on from a snapshot in another process, an hour later."""
        saved = self.program.snapshot()
        self.clock.now += 3_600
        self.program = make_program(self.story, "auto")
        self.program.restore(saved)
        self.begin()

    def poll(self, batch: dict[str, list[Element]]) -> None:
        """Takes what came; without anything, it asks first whether that leads to an answer."""
        now = int(self.clock.now * SECOND)
        beats = {stream: self.watch.beat(stream, now if stream in self.story.stamps else None) for stream in STREAMS}
        is_due = self.program.is_answer_due(beats)
        if not batch and not is_due:
            watched = make_program(self.story, "auto")
            watched.restore(self.program.snapshot())
            assert not len(watched.advance({}, heartbeats=beats).answers), "an answer was due"
            return
        self.last = beats
        step = self.program.advance(dict(batch), heartbeats=beats)
        self.answers.extend(step.answers)
        late = {(stream, one.position) for stream, one in step.late}
        self.late += len(late)
        for stream, elements in batch.items():
            self.admitted[stream] += [one for one in elements if (stream, one.position) not in late]


def follow(story: Story) -> LiveRun:
    run = LiveRun(story)
    instants = list(accumulate(one.pause for one in story.arrivals))
    elapsed = polls = number = 0
    while elapsed < instants[-1] + 12 + 4 * story.poll:
        batch: dict[str, list[Element]] = {}
        while number < len(instants) and instants[number] <= elapsed:
            one = story.arrivals[number]
            # An arrival that is stamped has the time of the clock, others are some seconds old.
            lag = 0 if one.stream in story.stamps else one.lag
            time = int((run.clock.now - lag) * SECOND) - 1_000 + 10 * number
            batch.setdefault(one.stream, []).append(element(number, time, one.value))
            number += 1
        run.poll(batch)
        run.clock.now += story.poll
        elapsed += story.poll
        polls += 1
        if polls in story.restarts:
            run.restart()
    return run


def shown(answers: list[Answer]) -> list[tuple[str, int, int, list[str]]]:
    return sorted((one.query, one.time, one.part, sorted(map(str, one.rows or one.triples))) for one in answers)


@settings(max_examples=settings().max_examples // 2)
@given(stories())
def test_a_live_run_answers_as_the_recording_of_its_stream(story: Story) -> None:
    run = follow(story)
    # The recording: the same elements, and one far behind them, up to which the live run has come.
    recorded = make_program(Story(story.queries, [], {}, 0, 1), "reference")
    end = max([one.time for one in run.answers] + [one.time for some in run.admitted.values() for one in some]) + 1
    batch: dict[str, Any] = {
        stream: [*sorted(elements, key=lambda one: one.time), element(9_999, end, 99)]
        for stream, elements in run.admitted.items()
    }
    batch = {
        stream: [Element(one.time, one.triples, position=(0, at)) for at, one in enumerate(elements)]
        for stream, elements in batch.items()
    }
    expected = list(recorded.advance(batch).answers)
    assert shown(run.answers) == shown(expected)


@settings(max_examples=settings().max_examples // 5)
@given(stories())
def test_every_element_is_answered_although_none_follows(story: Story) -> None:
    story.queries = ("eager",)
    run = follow(story)
    answered = {one.time for one in run.answers}
    assert {one.time for one in run.admitted[STREAMS[0]]} <= answered
