"""Groups that are spread over shards (CS10): what each shard gives of them, and how they are merged.

    SELECT (AVG(?v) AS ?mean) (COUNT(*) AS ?n)      on two shards, divided by a variable that is no key of GROUP BY

    shard 1:   1, 2        PARTIAL_SUM 3 of 2 numbers, COUNT 2   ┐   SUM of the counts: 4
    shard 2:   0.5, 4      PARTIAL_SUM 4.5 of 2,       COUNT 2   ┘   AVG of the partial sums: 7.5 / 4 = 1.875

SELECT and HAVING are evaluated on the merged groups, with the kernel's expressions. A shard without solutions gives
no row. Without GROUP BY there is one group all the same, and COUNT is 0 where no shard has solutions.
"""

from __future__ import annotations

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


def partial_plan_of(plan: QueryPlan) -> QueryPlan:
    """The plan of a shard: a row for each group of which it has solutions, with the partial aggregates."""
    outer, splits = split_grouping(plan)
    partial = tuple((one.variable, one.partial) for one in splits)
    root: Node = replace(outer.group, aggregates=partial)
    if not outer.group.keys:
        solutions = Variable("hw_solutions")
        while solutions.value in plan.text:
            solutions = Variable(solutions.value + "_")
        counted = replace(outer.group, aggregates=(*partial, (solutions, Aggregate("COUNT", None))))
        root = Filter(counted, Operation(">", (VariableReference(solutions), Constant(integer_literal(0)))))
    variables = outer.variables
    return replace(plan, kind=QueryKind.SELECT, root=Project(root, variables), variables=variables, template=())


class GroupMerger:
    """Merges the partial groups of the shards, applies SELECT and HAVING, and projects to `variables`."""

    def __init__(self, plan: QueryPlan, variables: Sequence[Variable]) -> None:
        outer, splits = split_grouping(plan)
        self._keys = len(outer.group.keys)
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
        values: dict[Row, list[dict[Term | None, int]]] = {} if self._keys else {(): self._no_values()}
        for row in partial_rows:
            key = row[: self._keys]
            counts_of_key = values.get(key)
            if counts_of_key is None:
                counts_of_key = values[key] = self._no_values()
            for counts, value in zip(counts_of_key, row[self._keys :], strict=True):
                counts[value] = counts.get(value, 0) + 1
        groups = [(*key, *map(aggregate, self._merges, counts)) for key, counts in values.items()]
        table = self._vocabulary.ids_of_rows(groups, self._width)
        for step in self._steps:
            table = step(table)
        table = np.column_stack((table, np.full(table.shape[0], UNBOUND, dtype=np.int64)))
        return self._vocabulary.terms_of_rows(table[:, self._columns])

    def _no_values(self) -> list[dict[Term | None, int]]:
        """For each aggregate how often each partial value was given: none yet."""
        return [{} for _ in self._merges]


def _extend_step(expression: CompiledExpression) -> Step:
    return lambda table: np.column_stack((table, expression.compute_values(table)))


def _filter_step(expression: CompiledExpression) -> Step:
    return lambda table: table[expression.test_rows(table)]
