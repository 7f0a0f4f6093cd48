"""Why an answer is as it is: the sources are read again up to its tick, and what led to its rows is found.

An `Explanation` has the elements and static triples behind the rows (`reference.provenance` defines which), and for
each step of the plan how many solutions it had. It is about the result at the tick, before ISTREAM or DSTREAM choose.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.algebra.plan import QueryPlan
from headwater.algebra.window_graphs import DEFAULT
from headwater.errors import SettingError
from headwater.execution.evaluator import Evaluator
from headwater.execution.static_data import StaticData
from headwater.reference.derivations import Derivations
from headwater.reference.observed_ticks import TickObserver
from headwater.reference.plan_steps import PlanStep, find_end, list_steps
from headwater.reference.tick_solutions import FoundElement, Leaf, StaticTriple, TickSolutions
from headwater.running.named_evaluators import evaluator_by_name
from headwater.running.workload import Workload
from headwater.sources.element_places import ElementPlaces
from headwater.sources.feed import Feed
from headwater.sources.offsets import Offset
from headwater.terms.model import Row, Term, Triple
from headwater.terms.names import iri_to_name
from headwater.terms.timed_graphs import GENERATED_AT_TIME
from headwater.terms.timestamps import format_time
from headwater.windows.element_sequences import Elements, concat_elements
from headwater.windows.settings import Content, QuerySettings

_BATCH_BYTES = 1 << 20
_NEARBY = 3
"""So many ticks before and after a wrong one are named."""


@dataclass(frozen=True, slots=True)
class ExplainedElement:
    """An element behind an answer: its stream and time, where it stands, and those of its triples that took part."""

    stream: str
    time: int
    source: str
    line: int | None
    triples: tuple[Triple, ...]

    def to_json(self) -> Mapping[str, object]:
        found = {"stream": iri_to_name(self.stream), "time": format_time(self.time), "source": self.source}
        return {**found, "line": self.line, "triples": [f"{triple} ." for triple in self.triples]}


@dataclass(frozen=True, slots=True)
class Explanation:
    """What led to the rows of a query at a tick.

    `rows` are those that were asked for, in the order of `variables`; `elements` and `static` are behind them. `steps`
    has the solutions of each step of the plan, leaves first. `end` is the step at which nothing was left, where the
    plan has no solution. `collapsed` has the triples that stand for several of the elements, because windows are sets.
    """

    query: str
    time: int
    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    elements: tuple[ExplainedElement, ...]
    static: tuple[StaticTriple, ...]
    steps: tuple[PlanStep, ...]
    end: PlanStep | None = None
    collapsed: tuple[Triple, ...] = ()

    def to_json(self) -> str:
        """All of it as one line of JSON."""
        rows = [
            {name: str(term) for name, term in zip(self.variables, row, strict=True) if term is not None}
            for row in self.rows
        ]
        static = [
            {"graph": None if one.graph is None else one.graph.value, "triple": f"{one.triple} ."}
            for one in self.static
        ]
        found: dict[str, object] = {
            "query": self.query,
            "time_us": self.time,
            "time": format_time(self.time),
            "rows": rows,
            "elements": [one.to_json() for one in self.elements],
            "static": static,
            "steps": [step.to_json() for step in self.steps],
        }
        if self.collapsed:
            found["collapsed"] = [f"{triple} ." for triple in self.collapsed]
        return json.dumps(found, ensure_ascii=False)


RowChoice = int | Mapping[str, object] | None
"""A row of an answer: its number, from 1 on, or values of some of its variables; None: all rows."""


def explain_tick(workload: Workload, query: str, tick: int, row: RowChoice = None) -> Explanation:
    """Read the sources of a workload up to a tick, and explain the rows of a query at it."""
    return _Replay(workload, query, tick, row).run()


def _choose_rows(rows: Sequence[Row], row: RowChoice, variables: tuple[str, ...]) -> list[Row]:
    if row is None:
        return list(rows)
    if isinstance(row, int):
        if not 1 <= row <= len(rows):
            raise SettingError(f"there is no row {row}: the result has {len(rows)} different rows at this tick")
        return [rows[row - 1]]
    if not isinstance(row, Mapping):
        raise SettingError(f"row must be the number of a row, or values of variables such as {{'x': 5}}, not {row!r}")
    if unknown := set(row) - set(variables):
        shown = ", ".join(variables) or "none"
        raise SettingError(f"the query shows no variable {', '.join(sorted(unknown))}; it shows {shown}")
    wanted = {variables.index(name): value for name, value in row.items()}
    chosen = [one for one in rows if all(_is_value(one[place], value) for place, value in wanted.items())]
    if not chosen:
        raise SettingError(
            f"no row has these values; leave them out to see all {len(rows)} different rows, or why there are none"
        )
    return chosen


def _collapsed_triples(elements: Sequence[ExplainedElement]) -> tuple[Triple, ...]:
    """The triples that several elements of one stream have."""
    counts = Counter((one.stream, triple) for one in elements for triple in one.triples)
    return tuple(dict.fromkeys(triple for (_, triple), count in counts.items() if count > 1))


def _is_value(term: Term | None, wanted: object) -> bool:
    """Whether a term is what a person named: the term, its text, or its text in N-Triples."""
    if term is None:
        return wanted is None
    return wanted == term or str(wanted) in (str(term), getattr(term, "value", ""))


class _Replay:
    """Reads the sources again, up to a tick of a query."""

    def __init__(self, workload: Workload, query: str, tick: int, row: RowChoice) -> None:
        self._workload = workload
        self._query = query
        self._tick = tick
        self._row = row
        self._ticks: list[int] = []
        self._found: Explanation | SettingError | None = None
        self._feed = Feed(workload.sources)
        self._places = ElementPlaces(self._feed)

    def run(self) -> Explanation:
        """What led to the rows at the tick."""
        description = replace(self._workload.description, sharding=None)
        others = evaluator_by_name(description.evaluator, description.services, description.statistics)

        def make(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> Evaluator:
            if plan.name != self._query:
                return others(plan, settings, static)
            return TickObserver(plan, settings, static, self._observe)

        program = description.program(evaluator=make)
        self._feed.finish()
        offset, is_passed = Offset(), False
        while self._found is None and not is_passed:
            end = self._feed.next_offset(offset, _BATCH_BYTES)
            if end == offset:
                break
            program.advance(*self._read(offset, end))
            if self._query in program.suspensions:
                raise program.suspensions[self._query].to_error(self._query)
            is_passed = bool(self._ticks) and self._ticks[-1] > self._tick
            offset = end
        if self._found is None:
            raise SettingError(self._no_tick_text())
        if isinstance(self._found, SettingError):
            raise self._found
        return self._found

    def _observe(self, tick: TickSolutions) -> None:
        self._ticks.append(tick.tick)
        if tick.tick == self._tick:
            # The windows move on after the call.
            try:
                self._found = self._explain_tick(tick)
            except SettingError as error:
                self._found = error

    def _explain_tick(self, tick: TickSolutions) -> Explanation:
        plan = tick.plan
        shown = tuple(variable.value for variable in plan.variables)
        chosen = _choose_rows(list(dict.fromkeys(tick.rows())), self._row, shown)
        solutions = tick.solutions(plan.root, DEFAULT)
        if shown:
            cut = {tuple(dict(one).get(variable) for variable in plan.variables): one for one in solutions}
            solutions = frozenset(cut[one] for one in chosen if one in cut)
        elements, static = self._locate(tick, Derivations(tick).find(solutions))
        steps = list_steps(tick)
        return Explanation(
            *(self._query, tick.tick, shown, tuple(chosen), elements, static, steps, find_end(steps)),
            collapsed=_collapsed_triples(elements) if tick.settings.content is Content.SET else (),
        )

    def _no_tick_text(self) -> str:
        if not self._ticks:
            return f"the query {self._query} has no tick: its streams have no element in time"
        place = bisect_left(self._ticks, self._tick)
        near = self._ticks[max(0, place - _NEARBY) : place + _NEARBY]
        shown = ", ".join(map(format_time, near))
        return f"{format_time(self._tick)} is no tick of the query {self._query}; ticks near it: {shown}"

    def _read(self, start: Offset, end: Offset) -> tuple[dict[str, Elements], set[str]]:
        batch: dict[str, list[Elements]] = {}
        ended: set[str] = set()
        for task in self._feed.read_tasks(start, end):
            for chunk in self._feed.read(task):
                if chunk.stream is None:
                    continue
                elements = chunk.elements
                listed = list(elements) if isinstance(elements, tuple) else elements
                batch.setdefault(chunk.stream, []).append(listed)
                self._places.add(chunk)
                if chunk.has_ended:
                    ended.add(chunk.stream)
        return {stream: concat_elements(parts) for stream, parts in batch.items()}, ended

    def _locate(
        self, found: TickSolutions, leaves: frozenset[Leaf]
    ) -> tuple[tuple[ExplainedElement, ...], tuple[StaticTriple, ...]]:
        """Where triples came from: the elements in the order of time, with their lines, and the static triples."""
        triples: dict[FoundElement, list[Triple]] = {}
        static: dict[StaticTriple, None] = {}
        for leaf in sorted(leaves, key=str):
            for one in found.trace(leaf):
                if isinstance(one, StaticTriple):
                    static[one] = None
                else:
                    triples.setdefault(one, []).append(leaf.triple)
        located: dict[tuple[str, int, tuple[int, ...]], dict[Triple, None]] = {}
        for element, parts in triples.items():
            stream = found.plan.windows[element.window].stream.value
            located.setdefault((stream, element.time, element.position), {}).update(dict.fromkeys(parts))
        in_order = sorted(located.items(), key=lambda one: one[0][1:])
        elements = []
        for (stream, time, _), used in in_order:
            # The time of a graph is a statement that the text of its element need not have.
            written = tuple(triple for triple in used if triple.predicate != GENERATED_AT_TIME)
            source, line = self._places.take(stream, time, written)
            elements.append(ExplainedElement(stream, time, source, line, tuple(used)))
        return tuple(elements), tuple(sorted(static, key=str))
