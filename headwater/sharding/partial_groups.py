"""Groups that are spread over shards (CS10): what each shard gives of them, and how they are merged.

    SELECT (AVG(?v) AS ?mean) (COUNT(*) AS ?n)      on two shards, divided by a variable that is no key of GROUP BY

    shard 1:   1, 2        PARTIAL_SUM 3 of 2 numbers, COUNT 2   ┐   SUM of the counts: 4
    shard 2:   0.5, 4      PARTIAL_SUM 4.5 of 2,       COUNT 2   ┘   AVG of the partial sums: 7.5 / 4 = 1.875

SELECT and HAVING are evaluated on the merged groups, with the kernel's expressions. A shard without solutions gives
no row. Without GROUP BY there is one group all the same, and COUNT is 0 where no shard has solutions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from headwater.algebra.nodes import Extend, Filter, Node, Project
from headwater.algebra.outer_grouping import OuterGrouping
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.compiled_expressions import CompiledExpression
from headwater.language.expressions import Aggregate, Constant, Operation, VariableReference
from headwater.optimizer.distribution import AggregateSplit, NotDistributable, split_aggregates
from headwater.terms.model import Row, Term, Variable
from headwater.values.aggregates import aggregate
from headwater.values.numeric import integer_literal

Step = Callable[[Ints], Ints]


def split_grouping(plan: QueryPlan) -> tuple[OuterGrouping, tuple[AggregateSplit, ...]]:
    """The outermost grouping of a plan, and its aggregates in two steps; `shard_planning` checked that they exist."""
    outer = OuterGrouping.of(plan.root)
    splits = None if outer is None else split_aggregates(outer.group)
    if outer is None or splits is None or isinstance(splits, NotDistributable):
        raise ValueError(f"{plan.name} has no groups that could be put together from parts")
    return outer, splits


def make_partial_plan(plan: QueryPlan, *, has_whole_groups: bool = False) -> QueryPlan:
    """The plan that each shard evaluates: its groups, with partial aggregates (for AVG a sum and a count) to be merged.

    With `has_whole_groups` most groups are in one shard, and the row has the aggregates themselves, too.
    """
    outer, splits = split_grouping(plan)
    partial = tuple((one.variable, one.partial) for one in splits)
    if has_whole_groups:
        whole = [one for one in splits if one.partial != one.aggregate]
        partial += tuple((_make_variable(plan, f"hw_whole_{one.variable.value}"), one.aggregate) for one in whole)
    root: Node = replace(outer.group, aggregates=partial)
    if not outer.group.keys:
        solutions = _make_variable(plan, "hw_solutions")
        counted = replace(outer.group, aggregates=(*partial, (solutions, Aggregate("COUNT", None))))
        root = Filter(counted, Operation(">", (VariableReference(solutions), Constant(integer_literal(0)))))
    variables = tuple(variable for variable, _ in (*outer.group.keys, *partial))
    return replace(plan, kind=QueryKind.SELECT, root=Project(root, variables), variables=variables, template=())


def _make_variable(plan: QueryPlan, name: str) -> Variable:
    """A new variable, of a name that the query does not have."""
    while name in plan.text:
        name += "_"
    return Variable(name)


class GroupMerger:
    """Merges the partial groups of the shards, applies SELECT and HAVING, and projects to `variables`.

    With `has_whole_groups` the rows are those of such a `make_partial_plan`: a group that one shard alone has is taken
    as it is.
    """

    def __init__(self, plan: QueryPlan, variables: Sequence[Variable], *, has_whole_groups: bool = False) -> None:
        outer, splits = split_grouping(plan)
        self._keys = len(outer.group.keys)
        self._wholes: list[int] | None = None
        if has_whole_groups and self._keys:
            behind = iter(range(self._keys + len(splits), self._keys + 2 * len(splits)))
            self._wholes = [
                place if one.partial == one.aggregate else next(behind) for place, one in enumerate(splits, self._keys)
            ]
        self._merges = [one.merge for one in splits]
        self._vocabulary = Vocabulary(gives_other_ids=True)
        names = tuple(variable.value for variable in outer.variables)
        self._width = len(names)
        self._steps: list[Step] = []
        for step in outer.steps:
            expression = step.expression if isinstance(step, Extend) else step.condition
            compiled = CompiledExpression(expression, names, self._vocabulary, base=plan.base)
            if isinstance(step, Extend):
                names = (*names, step.variable.value)
            self._steps.append(_extend_step(compiled) if isinstance(step, Extend) else _filter_step(compiled))
        # A variable that nothing binds is looked up behind the last column.
        self._columns = [names.index(one.value) if one.value in names else len(names) for one in variables]

    def merge(self, partial_rows: Iterable[Row]) -> list[Row]:
        """The solutions of the query, from the rows of all shards."""
        by_key: dict[Row, list[Row]] = {} if self._keys else {(): []}
        for row in partial_rows:
            by_key.setdefault(row[: self._keys], []).append(row)
        groups = [(*key, *self._merge_group(rows)) for key, rows in by_key.items()]
        table = self._vocabulary.ids_of_rows(groups, self._width)
        for step in self._steps:
            table = step(table)
        table = np.column_stack((table, np.full(table.shape[0], UNBOUND, dtype=np.int64)))
        return self._vocabulary.terms_of_rows(table[:, self._columns])

    def _merge_group(self, rows: Sequence[Row]) -> list[Term | None]:
        """The aggregates of a group, from the rows that shards have of it."""
        if self._wholes is not None and len(rows) == 1:
            return [rows[0][place] for place in self._wholes]
        partial = (Counter(row[place] for row in rows) for place in range(self._keys, self._keys + len(self._merges)))
        return list(map(aggregate, self._merges, partial))


def _extend_step(expression: CompiledExpression) -> Step:
    return lambda table: np.column_stack((table, expression.compute_values(table)))


def _filter_step(expression: CompiledExpression) -> Step:
    return lambda table: table[expression.test_rows(table)]
