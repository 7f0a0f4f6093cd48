"""How the answers of the shards become one.

An answer of the whole is the bag union of the shards' answers of the same tick; where the shards have parts of groups,
the groups are put together first (`group_parts`). What a query makes of its solutions as a whole (ORDER BY, DISTINCT,
LIMIT, the triples of CONSTRUCT) is made of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.presentation import Presentation
from headwater.execution.answers import Answer
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.compiled_expressions import CompiledExpression
from headwater.kernel.operators.presenter import Presenter
from headwater.language.stream_clauses import StreamOperator
from headwater.sharding.encoded_answers import learned, rows_of, rows_of_each
from headwater.sharding.group_parts import WholeGroups, plan_of_parts
from headwater.sharding.sharding import Sharding
from headwater.terms.model import Row
from headwater.values.row_order import row_text
from headwater.values.templates import Template

_OF_ROWS = (QueryKind.SELECT, QueryKind.CONSTRUCT)


def presentation_of(query: RegisteredQuery) -> Presentation | None:
    """What is made of the rows of all shards together, beyond their union."""
    is_whole = query.settings.emit is StreamOperator.RSTREAM and query.plan.kind in _OF_ROWS
    return Presentation.of_all(query.plan.root)[0] if is_whole else None


def shard_query(query: RegisteredQuery, cut: Sharding) -> RegisteredQuery:
    """What each shard answers: the rows, which are ordered, cut or made triples only when they are all together.

    Where the shards have parts of groups, these are the rows.
    """
    if query.plan.name in cut.in_parts:
        return RegisteredQuery(plan_of_parts(query.plan), query.settings)
    plan, presentation = query.plan, presentation_of(query)
    if plan.kind is QueryKind.CONSTRUCT:
        plan = replace(plan, kind=QueryKind.SELECT)
    if presentation is not None:
        root = presentation.in_part(Presentation.of_all(plan.root)[1])
        plan = replace(plan, root=root, variables=presentation.needed)
    return query if plan is query.plan else RegisteredQuery(plan, query.settings)


class Finisher:
    """Presents the rows of all shards, by the kernel's own rules."""

    def __init__(self, presentation: Presentation, base: str | None) -> None:
        self._vocabulary = Vocabulary()
        names = tuple(variable.value for variable in presentation.needed)
        self._width = len(names)
        keys = [CompiledExpression(key, names, self._vocabulary, base=base) for key, _ in presentation.keys]
        columns = [names.index(variable.value) for variable in presentation.variables]
        self._presenter = Presenter(presentation, [key.compute_values for key in keys], columns, self._vocabulary)

    def finished(self, rows: Sequence[Row]) -> list[Row]:
        """The rows that are shown, in order."""
        return self._presenter.present(self._vocabulary.ids_of_rows(rows, self._width))


class Merging:
    """Makes one answer of those that the shards gave for a tick."""

    def __init__(self, queries: Iterable[RegisteredQuery], cut: Sharding) -> None:
        self._plans: dict[str, QueryPlan] = {}
        self._templates: dict[str, Template] = {}
        self._finishers: dict[str, Finisher] = {}
        self._groups: dict[str, WholeGroups] = {}
        for query in queries:
            self._plans[query.plan.name] = query.plan
            self._templates[query.plan.name] = Template(query.plan)
            presentation = presentation_of(query)
            if presentation is not None:
                self._finishers[query.plan.name] = Finisher(presentation, query.plan.base)
            if query.plan.name in cut.in_parts:
                wanted = query.plan.variables if presentation is None else presentation.needed
                self._groups[query.plan.name] = WholeGroups(query.plan, wanted)

    def merged(self, answers: Sequence[Answer]) -> list[Answer]:
        """The answers of all shards, in the order of time and of the registration of their queries."""
        vocabulary = learned(answers)
        parts: dict[tuple[int, int, int], list[Answer]] = {}
        order = {name: number for number, name in enumerate(self._plans)}
        for answer in answers:
            parts.setdefault((answer.time, order[answer.query], answer.part), []).append(answer)
        together = [parts[key] for key in sorted(parts)]
        # Where nothing is made of the rows of a whole answer, those of all answers are put in order at once.
        plain = [
            place
            for place, (first, *_) in enumerate(together)
            if first.query not in self._groups and first.query not in self._finishers
        ]
        ordered = dict(zip(plain, rows_of_each([together[place] for place in plain], vocabulary), strict=True))
        return [self._one(some, vocabulary, ordered.get(place)) for place, some in enumerate(together)]

    def _one(self, parts: list[Answer], vocabulary: Vocabulary, ordered: list[Row] | None) -> Answer:
        first = replace(parts[0], encoded=None)
        plan = self._plans[first.query]
        groups, finisher = self._groups.get(plan.name), self._finishers.get(plan.name)
        rows = ordered
        if rows is None:
            rows = [row for one in parts for row in rows_of(one, vocabulary)]
        if groups is not None:
            rows = groups.rows(rows)
        if plan.kind is QueryKind.ASK:
            verdicts = [one.boolean for one in parts if one.boolean is not None] if groups is None else [bool(rows)]
            found = any(verdicts) if verdicts else None
            return replace(first, kind=plan.kind, variables=(), rows=(), boolean=found)
        if finisher is not None:
            rows = finisher.finished(rows)
        elif groups is not None:
            rows.sort(key=row_text)
        if plan.kind is QueryKind.CONSTRUCT:
            triples = self._templates[plan.name].instantiate(rows, first.time)
            return replace(first, kind=plan.kind, variables=(), rows=(), triples=triples)
        return replace(first, variables=tuple(v.value for v in plan.variables), rows=tuple(rows))
