"""Joins of inputs of any kind: one multiway join for those that always bind what they share, pairs for the others.

A multiway join compares ids, so a shared variable must be bound in every row of each input that has it. An input that
may leave one unbound (the result of an OPTIONAL, a UNION of different patterns, UNDEF) comes last, by compatibility.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwater.algebra.non_literals import VariableFacts, non_literals_of_join
from headwater.kernel.operators.compatible_join import CompatibleJoinOperator
from headwater.kernel.operators.constant import ConstantOperator
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator
from headwater.kernel.operators.operator import Operator

UNIT = np.zeros((1, 0), dtype=np.int64)
"""The one empty solution."""

_MOST_INPUTS = 32
"""Inputs of one multiway join. It weighs every input against every other, and calls itself for each of them."""


@dataclass(frozen=True)
class JoinInput:
    """An input of a join, the variables that are bound in each of its rows, and those that are never a literal."""

    operator: Operator
    always_bound: frozenset[str]
    resources: frozenset[str] = frozenset()

    @property
    def known(self) -> VariableFacts:
        """What the plan says of the rows."""
        return VariableFacts(frozenset(self.operator.variables), self.always_bound, self.resources)


def join_all(inputs: Sequence[JoinInput]) -> JoinInput:
    """The join of some inputs; its columns are all variables, in the order of their first appearance."""
    if not inputs:
        return JoinInput(ConstantOperator((), UNIT), frozenset())
    times = Counter(variable for one in inputs for variable in one.operator.variables)
    shared = {variable for variable, n in times.items() if n > 1}
    is_plain = [shared & set(one.operator.variables) <= one.always_bound for one in inputs]
    plain = [one.operator for one, plainly in zip(inputs, is_plain, strict=True) if plainly]
    others = [one.operator for one, plainly in zip(inputs, is_plain, strict=True) if not plainly]
    groups = _group_by_shared_variables(plain) if others else [plain]
    result, *rest = [*(join_multiway(group) for group in groups if group), *others]
    while rest:
        # A join without a shared variable multiplies its inputs, so it is left for the end.
        nearest = max(rest, key=lambda one: len(set(one.variables) & set(result.variables)))
        rest.remove(nearest)
        result = CompatibleJoinOperator(result, nearest)
    always_bound: frozenset[str] = frozenset().union(*(one.always_bound for one in inputs))
    return JoinInput(result, always_bound, non_literals_of_join(one.known for one in inputs))


def join_multiway(inputs: Sequence[Operator]) -> Operator:
    """One multiway join of inputs that always bind what they share; of many inputs, a join of such joins."""
    parts = list(inputs)
    while len(parts) > _MOST_INPUTS:
        clusters = _cluster_by_shared_variables(parts)
        if len(clusters) == len(parts):
            clusters = [parts[i : i + _MOST_INPUTS] for i in range(0, len(parts), _MOST_INPUTS)]
        parts = list(map(join_multiway, clusters))
    if len(parts) == 1:
        return parts[0]
    return MultiwayJoinOperator(parts, tuple(dict.fromkeys(variable for one in parts for variable in one.variables)))


def _cluster_by_shared_variables(inputs: Sequence[Operator]) -> list[list[Operator]]:
    """The inputs in clusters that one join can take, each connected by variables."""
    waiting = dict.fromkeys(range(len(inputs)))
    users: dict[str, list[int]] = {}
    for number, one in enumerate(inputs):
        for variable in one.variables:
            users.setdefault(variable, []).append(number)
    clusters: list[list[Operator]] = []
    while waiting:
        near = dict.fromkeys([next(iter(waiting))])
        followed: set[str] = set()
        cluster: list[Operator] = []
        while near and len(cluster) < _MOST_INPUTS:
            number = next(iter(near))
            del near[number], waiting[number]
            cluster.append(inputs[number])
            for variable in (one for one in inputs[number].variables if one not in followed):
                near |= dict.fromkeys(other for other in users[variable] if other in waiting)
            followed.update(inputs[number].variables)
        clusters.append(cluster)
    return clusters


def _group_by_shared_variables(inputs: list[Operator]) -> list[list[Operator]]:
    """The inputs in groups that share no variable with each other."""
    groups: list[list[Operator]] = []
    for one in inputs:
        mine = [group for group in groups if any(set(one.variables) & set(other.variables) for other in group)]
        groups = [group for group in groups if group not in mine]
        groups.append([*(other for group in mine for other in group), one])
    return groups
