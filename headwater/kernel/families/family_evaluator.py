"""Many queries that differ only in constants, evaluated as one (CQ9).

    SELECT ?loc … ?person foaf:name "Ann"    ┐
    SELECT ?loc … ?person foaf:name "Bob"    ├    one plan over one set of windows, with a table of the members
    SELECT ?loc … ?person foaf:name "Cleo"   ┘

The table is an input of the plan like any other (`family_plan`), so what a tick costs follows what changed and not how
many queries there are, and a query that comes or goes changes a row of the table. Each row of the result has the number
of its member, and at a tick the rows of each member are answered by themselves. An answer is that of the query alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, cast

import numpy as np

from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.query_families import ConstantTerm, Family, Form, form_of
from headwater.execution.answers import Answer
from headwater.execution.collapsed_triples import CollapsedTriples
from headwater.execution.evaluator import EvaluatorState
from headwater.execution.registered import RegisteredQuery
from headwater.execution.static_data import StaticData
from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.emitter import Emitter, ResultState
from headwater.kernel.families.family_compiler import FamilyCompiler
from headwater.kernel.families.family_plan import family_plan
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.optimizer.optimise import optimise
from headwater.optimizer.rewrites import bind_equalities, join_filters, push_filters, split_filters
from headwater.terms.model import Row
from headwater.terms.packing import Plain
from headwater.values.numeric import integer_literal
from headwater.values.templates import ConstructTemplate
from headwater.windows.ticks import Ticker

MOVING_FILTERS = (split_filters.RULE, push_filters.RULE)
"""The rules that are right for the table of the members; the others would take it for an empty table."""
_BINDING = (split_filters.RULE, bind_equalities.RULE)
FEWEST_MEMBERS = 2
"""The number of queries from which on a family is worth its table."""


def find_families(queries: Sequence[RegisteredQuery], static: StaticData) -> list[FamilyEvaluator]:
    """Make evaluators for queries that differ from others in constants only: `Program(…, families=find_families)`."""
    groups: dict[Form, list[RegisteredQuery]] = {}
    for query in queries:
        if can_be_member(query.plan):
            groups.setdefault(form_of(query.plan, query.settings)[0], []).append(query)
    families: list[FamilyEvaluator] = []
    for members in (alike for group in groups.values() for alike in _split_by_bound_form(group)):
        if len(members) >= FEWEST_MEMBERS:
            try:
                families.append(FamilyEvaluator(members, static))
            except UnsupportedByKernel:
                continue
    return families


def _split_by_bound_form(group: list[RegisteredQuery]) -> list[list[RegisteredQuery]]:
    """Split queries of one form by their form once equalities are constants; groups that are too small are one."""
    parts: dict[Form, list[RegisteredQuery]] = {}
    for query in group:
        parts.setdefault(form_of(with_bound_equalities(query.plan), query.settings)[0], []).append(query)
    large = [part for part in parts.values() if len(part) >= FEWEST_MEMBERS]
    return [*large, [query for part in parts.values() if len(part) < FEWEST_MEMBERS for query in part]]


def with_bound_equalities(plan: QueryPlan) -> QueryPlan:
    """The plan with constants in its patterns in place of equalities in filters, so that they can be looked up."""
    return optimise(plan, rewrites=_BINDING, finishing=(join_filters.RULE,)).plan


def can_be_member(plan: QueryPlan) -> bool:
    """Whether a query can be a member: one without a stream is answered once, and DESCRIBE is more than rows.

    Names of graphs are no part of the rows that members share.
    """
    return (
        bool(plan.windows)
        and plan.kind is not QueryKind.DESCRIBE
        and not (plan.reads_window_graphs or plan.reads_graph_times)
    )


@dataclass(slots=True)
class _Member:
    """One combination of constants, as ids: the queries that have it, with their templates, and their result."""

    number: int
    values: tuple[int, ...]
    templates_by_query: dict[str, ConstructTemplate | None] = field(default_factory=dict)
    result: ResultState = field(default_factory=ResultState)
    has_answered: bool = False

    @property
    def row(self) -> tuple[int, ...]:
        return (self.number, *self.values)


@dataclass
class FamilyMemory:
    """What cannot be derived from the windows: the queries without an answer so far, since when queries are complete,
    and, where the last tick was not reported, what is pending of each query."""

    unanswered: frozenset[str]
    complete_from: dict[str, int]
    pending: dict[str, object]


class FamilyEvaluator(KernelEvaluator):
    """Evaluates queries of one form together; raises `UnsupportedByKernel` where it cannot.

    `add` and `remove` may be called between two calls of `advance`.
    """

    _takes_runs: ClassVar[bool] = False
    _can_follow_views: ClassVar[bool] = False

    def __init__(self, queries: Sequence[RegisteredQuery], static: StaticData) -> None:
        first = queries[0]
        forms = [form_of(with_bound_equalities(query.plan), query.settings) for query in queries]
        # Whether a constant can go into a pattern depends on what it is.
        self._binds = len({form for form, _ in forms}) == 1
        if not self._binds:
            forms = [form_of(query.plan, query.settings) for query in queries]
        self.family = Family.of(forms[0][0], [constants for _, constants in forms])
        self._lifted = family_plan(self.family, _prefix(first.plan.text))
        plan = replace(
            first.plan, root=self._lifted.root, variables=(self._lifted.member, *first.plan.variables), template=()
        )
        plan = optimise(plan, rewrites=MOVING_FILTERS, finishing=(join_filters.RULE,)).plan
        self._member_variables = tuple(variable.value for variable in first.plan.variables)
        make_compiler = partial(FamilyCompiler, family=self._lifted, contents=self._window_contents)
        super().__init__(plan, first.settings, static, make_compiler)
        width = len(self._member_variables) if self._presenter is None else len(self.root.variables)
        make_result = None if self._presenter is None else self._present
        self._emitter = Emitter(plan.kind, first.settings, self.vocabulary, width, make_result, keeps_answers=True)
        self._members: dict[int, _Member] = {}
        self._by_name: dict[str, _Member] = {}
        self._templates: dict[object, ConstructTemplate] = {}
        self._complete_from: dict[str, int] = {}
        self._changed: set[int] = set()
        """The members whose result may have changed since their last answer, by number."""
        self._next = 0
        self._first_answers: set[int] = set()
        """The members, by number, that have answered for the first time since the last savepoint."""
        self.add(queries)

    def _compile(self) -> None:
        super()._compile()
        self._member_column = 0 if self._presenter is None else self.root.column_of(self._lifted.member.value)

    def encode_rows(self) -> None:
        """Rows stay terms: each member has its own, which are few."""

    def _recompile(self) -> None:
        super()._recompile()
        self._enter(list(self._members.values()))

    def take_collapsed(self) -> tuple[CollapsedTriples, ...]:
        # Each member has a constant of its own there.
        shown = {f"?{parameter.value}": "(a constant)" for parameter in self._lifted.parameters}
        return tuple(
            replace(one, pattern=" ".join(shown.get(word, word) for word in one.pattern.split(" ")))
            for one in super().take_collapsed()
        )

    def _window_contents(self) -> list[Ints]:
        return [buffer.triples for buffer in self._buffers]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def _values(self, query: RegisteredQuery) -> tuple[ConstantTerm, ...] | None:
        plan = with_bound_equalities(query.plan) if self._binds else query.plan
        return self.family.values(*form_of(plan, query.settings))

    def add(self, queries: Iterable[RegisteredQuery]) -> None:
        """Take queries in, all or none; from the next tick on they answer from what the windows hold."""
        coming: dict[str, tuple[tuple[ConstantTerm, ...], QueryPlan]] = {}
        for query in queries:
            name, values = query.plan.name, self._values(query)
            is_there = name in self._by_name or name in coming
            if values is None or is_there:
                why = "is in it already" if is_there else "differs from it in more than its parameters"
                raise ValueError(f"{name!r} cannot join this family of queries: it {why}")
            coming[name] = values, query.plan
        fresh: list[_Member] = []
        # A member that has answered does not emit its whole result again; a query that comes now does.
        known = {member.values: member for member in self._members.values() if not member.has_answered}
        for name, (values, plan) in coming.items():
            ids = tuple(map(self.vocabulary.id_of, values))
            if ids not in known:
                known[ids] = self._new_member(ids)
                fresh.append(known[ids])
            known[ids].templates_by_query[name] = self._template_of(plan)
            self._by_name[name] = known[ids]
            if self.ticker.last_tick is not None:
                self._complete_from[name] = self.ticker.last_tick + 1
        self._enter(fresh)

    def _new_member(self, values: tuple[int, ...]) -> _Member:
        member = _Member(self.vocabulary.id_of(integer_literal(self._next)), values)
        self._next += 1
        self._members[member.number] = member
        self._changed.add(member.number)
        return member

    def _enter(self, members: Sequence[_Member]) -> None:
        """Tell the operators of members that have come."""
        if members:
            compiler = cast(FamilyCompiler, self._compiler)
            compiler.table.give(np.array([member.row for member in members], dtype=np.int64))
            for follower in compiler.followers:
                follower.enter([member.values for member in members])

    def remove(self, name: str) -> None:
        """Let a query go; it has no answers any more."""
        member = self._by_name.pop(name)
        self._complete_from.pop(name, None)
        del member.templates_by_query[name]
        if not member.templates_by_query:
            del self._members[member.number]
            self._changed.discard(member.number)
            compiler = cast(FamilyCompiler, self._compiler)
            compiler.table.take(np.array([member.row], dtype=np.int64))
            for follower in compiler.followers:
                follower.leave(member.values)

    def complete_from(self, name: str) -> int | None:
        """The instant from which the answers of a query are complete; None: since the stream began.

        A family's windows hold what they would hold if the query had been there all the time, so for one that came
        later that is the first instant after the last tick that was answered without it.
        """
        return self._complete_from.get(name) if name in self._by_name else None

    def _template_of(self, plan: QueryPlan) -> ConstructTemplate | None:
        if plan.kind is not QueryKind.CONSTRUCT:
            return None
        known = self._templates.get(plan.template)
        if known is None:
            known = self._templates[plan.template] = ConstructTemplate(plan)
        return known

    def _present(self, rows: Ints) -> list[object]:
        assert self._presenter is not None
        return [row[1:] for row in self._presenter.present(rows)]

    @property
    def _has_pending_changes(self) -> bool:
        return bool(self._changed)

    def _apply(self, delta: Delta) -> None:
        """Hand each row to its member; the rows of members that have gone belong to none."""
        if delta.is_empty:
            return
        delta = self._project(delta)
        if delta.is_reset and not self._emitter.counts_changes:
            for member in self._members.values():
                if member.result.counts:
                    member.result.counts = {}
                    self._changed.add(member.number)
            self._count(delta.added, 1)
            return
        self._count(delta.added, 1)
        self._count(delta.removed, -1)

    def _count(self, rows: Ints, difference: int) -> None:
        column = self._member_column
        for row in rows.tolist():
            number = row[column]
            member = self._members.get(number)
            if member is not None:
                member.result.add((tuple(row if self._presenter else row[1:]),), difference)
                self._changed.add(number)

    def _report(self, tick: int, closing: int, watermark: int | None) -> Iterator[Answer]:
        changed, self._changed = self._changed, set()
        self._is_answered = True
        is_silent = self._omits_empty_answers
        answering = [self._members[n] for n in sorted(changed)] if is_silent else list(self._members.values())
        inputs = self._views(tick) if answering else ()
        for member in answering:
            emitted = self._emitter.emit(member.result, has_changed=member.number in changed)
            result = cast("list[object]", emitted)
            self.guard.check_answer(len(result))
            if not member.has_answered:
                self._first_answers.add(member.number)
                member.has_answered = True
            if not result and is_silent:
                continue
            for name, template in member.templates_by_query.items():
                answer = Answer(
                    query=name,
                    time=tick,
                    kind=self.plan.kind,
                    operator=self.settings.emit,
                    variables=self._member_variables if self.plan.kind is QueryKind.SELECT else (),
                    rows=cast("tuple[Row, ...]", tuple(result)) if self.plan.kind is QueryKind.SELECT else (),
                    triples=template.instantiate(cast("list[Row]", result), tick) if template is not None else (),
                    boolean=cast("bool | None", result[0] if result and self.plan.kind is QueryKind.ASK else None),
                    part=closing,
                    inputs=inputs,
                    watermark=watermark,
                    data_version=self.data_version,
                )
                if not (answer.is_empty and is_silent):
                    yield answer

    def _ids_in_use(self) -> Iterator[Ints]:
        yield from super()._ids_in_use()
        members = self._members.values()
        yield np.array([i for member in members for row in member.result.counts for i in row], dtype=np.int64)
        yield np.array([i for member in members for i in member.values], dtype=np.int64)

    def savepoint(self) -> Callable[[], EvaluatorState]:
        ticker, waiting = Ticker.from_plain(self.settings, self.ticker.to_plain()).to_plain(), self._waiting_numbers()
        pending = {} if self._is_answered else self._pending()
        self._first_answers = set()

        def state() -> EvaluatorState:
            unanswered = frozenset(
                name
                for name, member in self._by_name.items()
                if not member.has_answered or member.number in self._first_answers
            )
            memory = [unanswered, dict(self._complete_from), pending]
            return EvaluatorState(ticker, waiting, self.answered_once, memory, type(self).__name__)

        return state

    def _save_memory(self) -> Plain:
        unanswered = frozenset(name for name, member in self._by_name.items() if not member.has_answered)
        return [unanswered, dict(self._complete_from), self._pending()]

    def _pending(self) -> dict[str, object]:
        """By query, the changes that are not answered yet."""
        return {
            name: self._emitter.pending(member.result)
            for name, member in self._by_name.items()
            if not self._is_answered and member.has_answered and member.number in self._changed
        }

    def _restore_memory(self, memory: Plain) -> None:
        # With None, the queries were evaluated one by one when this was saved.
        memory = FamilyMemory(*memory) if memory is not None else FamilyMemory(frozenset(), {}, {})
        unanswered = memory.unanswered | self.new_queries
        self._complete_from = {name: time for name, time in memory.complete_from.items() if name in self._by_name}
        self._split_members(unanswered)
        if self.ticker.last_tick is not None:
            self._derive_result()
        self._is_answered = not memory.pending
        for member in self._members.values():
            name = next(iter(member.templates_by_query))
            if name in unanswered:
                continue
            member.has_answered = True
            self._emitter.restore(member.result, memory.pending.get(name))
            if name in memory.pending:
                self._changed.add(member.number)
            else:
                self._changed.discard(member.number)

    def _split_members(self, unanswered: frozenset[str]) -> None:
        """Make two members of queries with equal constants of which only some have answered."""
        fresh: list[_Member] = []
        for member in list(self._members.values()):
            late = {name: template for name, template in member.templates_by_query.items() if name in unanswered}
            if late and len(late) < len(member.templates_by_query):
                other = self._new_member(member.values)
                other.templates_by_query = late
                member.templates_by_query = {
                    name: template for name, template in member.templates_by_query.items() if name not in unanswered
                }
                self._by_name |= dict.fromkeys(late, other)
                fresh.append(other)
        self._enter(fresh)


def _prefix(text: str) -> str:
    """The beginning of names that a text does not have."""
    prefix = "hwf_"
    while prefix in text:
        prefix += "_"
    return prefix
