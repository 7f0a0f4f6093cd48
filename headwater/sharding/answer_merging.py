"""Merges the answers of the shards.

The answer of a query at a tick is the bag union of its shards' answers. Where shards have partial groups, the groups
are merged first (`partial_groups`). ORDER BY, DISTINCT, LIMIT and CONSTRUCT are applied to the merged rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.presentation import Presentation
from headwater.execution.answer_batch import AnswerBatch, AnswerPart, merge_answers
from headwater.execution.answer_columns import AnswerColumns, union_columns
from headwater.execution.answers import Answer
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.compiled_expressions import CompiledExpression
from headwater.kernel.operators.presenter import Presenter
from headwater.language.stream_clauses import StreamOperator
from headwater.sharding.partial_groups import GroupMerger, make_partial_plan
from headwater.sharding.shard_plan import ShardPlan
from headwater.terms.ids.hash_collisions import HashCollision
from headwater.terms.model import Row
from headwater.values.row_order import row_text
from headwater.values.templates import ConstructTemplate

_KINDS_WITH_ROWS = (QueryKind.SELECT, QueryKind.CONSTRUCT)


def presentation_of(query: RegisteredQuery) -> Presentation | None:
    """What is applied to the rows of all shards beyond their union; None for nothing."""
    is_whole = query.settings.emit is StreamOperator.RSTREAM and query.plan.kind in _KINDS_WITH_ROWS
    return Presentation.extract_any(query.plan.root)[0] if is_whole else None


def needs_merge(query: RegisteredQuery, sharding: ShardPlan) -> bool:
    """Whether the answers of a query are more than the rows of its shards, one behind the other.

    DISTINCT alone needs no merge where the rows show by which value they were divided.
    """
    name = query.plan.name
    if query.plan.kind is not QueryKind.SELECT or name in sharding.partial_groups:
        return True
    presentation = presentation_of(query)
    if presentation is None:
        return False
    is_plain = not presentation.keys and not presentation.offset and presentation.limit is None
    return not is_plain or all(one.value != sharding.variables.get(name) for one in presentation.variables)


def query_of_shard(query: RegisteredQuery, sharding: ShardPlan) -> RegisteredQuery:
    """The query that each shard evaluates: its rows, before ORDER BY, LIMIT or CONSTRUCT are applied to all of them.

    Where the groups of a query are spread over shards, its rows are partial groups.
    """
    if query.plan.name in sharding.partial_groups:
        return replace(query, plan=make_partial_plan(query.plan, has_whole_groups=bool(sharding.large)))
    plan, presentation = query.plan, presentation_of(query)
    if plan.kind is QueryKind.CONSTRUCT:
        plan = replace(plan, kind=QueryKind.SELECT)
    if presentation is not None:
        root = presentation.partial_plan(Presentation.extract_any(plan.root)[1])
        plan = replace(plan, root=root, variables=presentation.needed_variables)
    return query if plan is query.plan else replace(query, plan=plan)


class _MergedPresenter:
    """Applies ORDER BY, DISTINCT and LIMIT to the rows of all shards, with the kernel's operator."""

    def __init__(self, presentation: Presentation, base: str | None) -> None:
        self._vocabulary = Vocabulary(gives_other_ids=True)
        names = tuple(variable.value for variable in presentation.needed_variables)
        self._width = len(names)
        keys = [CompiledExpression(key, names, self._vocabulary, base=base) for key, _ in presentation.keys]
        columns = [names.index(variable.value) for variable in presentation.variables]
        self._presenter = Presenter(presentation, [key.compute_values for key in keys], columns, self._vocabulary)

    def present(self, rows: Sequence[Row]) -> list[Row]:
        """The rows of the answer, in order."""
        return self._presenter.present(self._vocabulary.ids_of_rows(rows, self._width))


class AnswerMerger:
    """Makes one answer of the shards' answers of a query at a tick."""

    def __init__(self, queries: Iterable[RegisteredQuery], sharding: ShardPlan) -> None:
        self._plans: dict[str, QueryPlan] = {}
        self._templates: dict[str, ConstructTemplate] = {}
        self._presenters: dict[str, _MergedPresenter] = {}
        self._groups: dict[str, GroupMerger] = {}
        for query in queries:
            self._plans[query.plan.name] = query.plan
            self._templates[query.plan.name] = ConstructTemplate(query.plan)
            presentation = presentation_of(query)
            if presentation is not None:
                self._presenters[query.plan.name] = _MergedPresenter(presentation, query.plan.base)
            if query.plan.name in sharding.partial_groups:
                wanted = query.plan.variables if presentation is None else presentation.needed_variables
                self._groups[query.plan.name] = GroupMerger(query.plan, wanted, has_whole_groups=bool(sharding.large))

    def merge(self, answers: AnswerBatch, suspended: Collection[str] = ()) -> AnswerBatch:
        """The answers of all shards, in the order of time and of the registration of their queries.

        Of queries that are suspended in some shard, the others have parts of answers, which nobody needs.
        """
        order = {name: index for index, name in enumerate(self._plans)}
        merged: list[AnswerBatch] = []
        for name, own in answers.by_query().items():
            if name in suspended:
                merged.append(AnswerBatch([[one for one in own if one.suspended is not None][:1]]))
                continue
            columns = self._merge_columns(name, own.parts)
            merged.append(self._merge_ticks(own) if columns is None else AnswerBatch([columns]))
        return merge_answers(merged, order)

    def _merge_columns(self, name: str, parts: Sequence[AnswerPart]) -> AnswerColumns | None:
        """The answers of a query that are the union of their shards' rows, as columns; None where they are more."""
        columns = [part for part in parts if isinstance(part, AnswerColumns)]
        is_union = name not in self._groups and name not in self._presenters
        is_select = self._plans[name].kind is QueryKind.SELECT
        if not is_union or not is_select or len(columns) < len(parts) or len({one.head.part for one in columns}) > 1:
            return None
        variables = tuple(variable.value for variable in self._plans[name].variables)
        try:
            return union_columns(columns, variables)
        except HashCollision:
            # Terms of different shards have one id: their answers are merged as terms.
            return None

    def _merge_ticks(self, answers: AnswerBatch) -> AnswerBatch:
        """The answers of one query, merged tick by tick."""
        by_tick: dict[tuple[int, int], list[Answer]] = {}
        for part in answers.parts:
            for answer in part.iterate_unordered() if isinstance(part, AnswerColumns) else part:
                by_tick.setdefault((answer.time, answer.part), []).append(answer)
        return AnswerBatch([[self._merge_tick(by_tick[key]) for key in sorted(by_tick)]])

    def _merge_tick(self, answers: list[Answer]) -> Answer:
        """Merge the shards' answers of one query at one closing."""
        first = answers[0]
        plan = self._plans[first.query]
        groups, presenter = self._groups.get(plan.name), self._presenters.get(plan.name)
        rows = [row for one in answers for row in one.rows]
        if groups is not None:
            rows = groups.merge(rows)
        if plan.kind is QueryKind.ASK:
            verdicts = [one.boolean for one in answers if one.boolean is not None] if groups is None else [bool(rows)]
            boolean = any(verdicts) if verdicts else None
            return replace(first, kind=plan.kind, variables=(), rows=(), boolean=boolean)
        if presenter is not None:
            rows = presenter.present(rows)
        else:
            rows.sort(key=row_text)
        if plan.kind is QueryKind.CONSTRUCT:
            triples = self._templates[plan.name].instantiate(rows, first.time)
            return replace(first, kind=plan.kind, variables=(), rows=(), triples=triples)
        return replace(first, variables=tuple(v.value for v in plan.variables), rows=tuple(rows))
