"""Compiles plans with SERVICE into operators; the kernel compiles all other nodes.

In a join, all parts without an endpoint are joined first, in groups that share variables. Then each SERVICE takes its
keys from the group that binds most of the shared variables, one with a stream before a static one, and is joined with
all groups that share a variable with it. `OPTIONAL { SERVICE … }` takes its keys from the pattern before it. A SERVICE
of its own, as in a branch of UNION, has one key, the empty one: all rows of its pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headwater.algebra.nodes import Filter, LeftJoin, Node, Service
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import certain_variables, conjuncts_of, visible_variables
from headwater.execution.static_data import StaticData
from headwater.federation.service_rows import ServiceRows, TickSchedule
from headwater.federation.services import Services
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.compiler import Compiler
from headwater.kernel.compiling.join_inputs import UNIT, JoinInput, join_all
from headwater.kernel.compiling.static_parts import PlacedPart, group_by_shared_variables
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.operators.constant import ConstantOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.triple_patterns import SharedOperator
from headwater.language.expressions import Expression
from headwater.terms.model import NamedNode, Variable
from headwater.windows.settings import QuerySettings


@dataclass(frozen=True)
class _Group:
    """Parts of a join that are joined already; `is_streaming` if one of them reads a stream."""

    input: JoinInput
    is_streaming: bool

    def shared_with(self, node: Service) -> int:
        """How many variables of a SERVICE it always binds."""
        return len({variable.value for variable in visible_variables(node)} & self.input.always_bound)

    def has_endpoint_of(self, node: Service) -> bool:
        """Whether the endpoint of a SERVICE is known: an IRI, or a variable that this group always binds."""
        return not isinstance(node.endpoint, Variable) or node.endpoint.value in self.input.always_bound


class ServiceCompiler(Compiler):
    """Compiles one plan. `clauses` are the operators of its SERVICE clauses, in the order of evaluation.

    `seconds_spent` gives the seconds that the evaluation of the present tick has taken so far.
    """

    def __init__(
        self,
        plan: QueryPlan,
        settings: QuerySettings,
        static: StaticData,
        vocabulary: Vocabulary,
        services: Services,
        seconds_spent: Callable[[], float],
    ) -> None:
        super().__init__(plan, settings, static, vocabulary)
        self.clauses: list[ServiceRows] = []
        # The rows of a SERVICE are kept by the keys that a group gives: the groups have to stay as they are.
        self.static_parts.assumes_static_patterns = False
        self._schedule = TickSchedule(settings)
        self._services = services
        self._seconds_spent = seconds_spent
        self._terms = vocabulary

    def _compile_node(self, node: Node, graph: NamedNode) -> Operator:
        match node:
            case Service():
                return self._compile_service(JoinInput(ConstantOperator((), UNIT), frozenset()), node, graph).operator
            case LeftJoin(left, right, condition) if service_of(right) is not None:
                before = self._share_input(self.input(left, graph))
                return self.left_join(before, self._compile_service(before, right, graph), condition, graph)
        return super()._compile_node(node, graph)

    def _compile_join(self, node: Node, graph: NamedNode) -> Operator:
        parts = list(self._split_join(node, graph))
        remote = [part for part in parts if service_of(part[0]) is not None]
        if not remote:
            return super()._compile_join(node, graph)
        others = [part for part in parts if part not in remote]
        return self._join_services([self._join_group(group) for group in group_by_shared_variables(others)], remote)

    def _join_group(self, parts: list[PlacedPart]) -> _Group:
        """Join parts without SERVICE into one group."""
        return _Group(self.join_parts(parts), not all(self.static_parts.is_static(*part) for part in parts))

    def _join_services(self, groups: list[_Group], remote: list[PlacedPart]) -> Operator:
        """Join the SERVICE clauses to the local groups one by one, in the order of `_next_service`."""
        waiting = list(remote)
        while waiting:
            if not groups:
                groups = [_Group(JoinInput(ConstantOperator((), UNIT), frozenset()), False)]
            part, group = self._next_service(waiting, groups)
            waiting.remove(part)
            before = self._share_input(group.input)
            remote_rows = self._compile_service(before, *part)
            columns = set(remote_rows.operator.variables)
            sharing = [one for one in groups if one is not group and columns & set(one.input.operator.variables)]
            merged = join_all([before, remote_rows, *(one.input for one in sharing)])
            groups = [one for one in groups if one is not group and one not in sharing]
            groups.append(_Group(merged, True))
        return join_all([group.input for group in groups]).operator

    def _next_service(self, waiting: Iterable[PlacedPart], groups: Iterable[_Group]) -> tuple[PlacedPart, _Group]:
        """The SERVICE that shares the most variables with a group, and that group."""
        choices = [
            (group.shared_with(node), group.is_streaming, part, group)
            for part in waiting
            for group in groups
            if (node := service_of(part[0])) is not None and group.has_endpoint_of(node)
        ]
        if not choices:
            raise UnsupportedByKernel("SERVICE with a variable that the rest of its group does not always bind")
        best = max(choices, key=lambda choice: (choice[1] and choice[0] > 0, choice[0]))
        return best[2], best[3]

    def _share_input(self, given: JoinInput) -> JoinInput:
        return JoinInput(SharedOperator(given.operator, self.clock), given.always_bound)

    def _compile_service(self, before: JoinInput, part: Node, graph: NamedNode) -> JoinInput:
        """Compile a SERVICE and the filters around it; its keys come from the input before it."""
        node = service_of(part)
        assert node is not None
        keys = tuple(variable for variable in visible_variables(node) if variable.value in before.always_bound)
        if isinstance(node.endpoint, Variable) and node.endpoint not in keys:
            raise UnsupportedByKernel("SERVICE with a variable that the rest of its group does not always bind")
        clause = self._services.make_clause(node, keys, self._schedule.slide)
        rows = ServiceRows(before.operator, clause, self._schedule, self.clock, self._terms, self._seconds_spent)
        self.clauses.append(rows)
        always_bound = frozenset(variable.value for variable in (*certain_variables(node), *keys))
        filtered = JoinInput(rows, always_bound)
        for condition in _conditions(part):
            filtered = JoinInput(self.filter_rows(filtered, condition, graph), always_bound)
        return filtered


def service_of(node: Node) -> Service | None:
    """The SERVICE of a node, below any filters; None if there is none."""
    while isinstance(node, Filter):
        node = node.inner
    return node if isinstance(node, Service) else None


def _conditions(node: Node) -> Iterable[Expression]:
    while isinstance(node, Filter):
        yield from conjuncts_of(node.condition)
        node = node.inner
