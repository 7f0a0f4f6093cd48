"""Plans with SERVICE, made into operators: everything else is compiled by the kernel.

In a join, what can be joined without the endpoints is joined first, in groups that share variables. Then each SERVICE
takes its keys from the group that binds most of what it shares, one that a stream touches before one that is static,
and joins with all groups that share a variable with it. `OPTIONAL { SERVICE … }` takes its keys from what stands before
it. A SERVICE that stands alone, as in a branch of UNION, has one key, the empty one: all that its pattern finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headwater.algebra.nodes import Filter, LeftJoin, Node, Service
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import certain, conjuncts, visible
from headwater.execution.static_data import StaticData
from headwater.federation.service_rows import Rhythm, ServiceRows
from headwater.federation.services import Services
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.compiler import Compiler
from headwater.kernel.compiling.join_inputs import UNIT, Input, joined
from headwater.kernel.compiling.static_parts import Placed, connected
from headwater.kernel.compiling.unsupported import NotForTheKernel
from headwater.kernel.operators.constant import ConstantOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.triple_patterns import SharedOperator
from headwater.language.expressions import Expression
from headwater.terms.model import NamedNode, Variable
from headwater.windows.settings import QuerySettings


@dataclass(frozen=True)
class _Group:
    """Parts of a join that are one already, and whether a stream touches them."""

    input: Input
    flows: bool

    def shared_with(self, node: Service) -> int:
        """How many variables of a SERVICE it always binds."""
        return len({variable.value for variable in visible(node)} & self.input.sure)

    def can_ask(self, node: Service) -> bool:
        """Whether it says whom to ask."""
        return not isinstance(node.endpoint, Variable) or node.endpoint.value in self.input.sure


class ServiceCompiler(Compiler):
    """Compiles one plan. `clauses` are the operators of its SERVICE clauses, in the order in which they work.

    `seconds_spent` says how long the evaluation of the present tick has taken so far.
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
        self._rhythm = Rhythm(settings)
        self._services = services
        self._seconds_spent = seconds_spent
        self._terms = vocabulary

    def _node(self, node: Node, graph: NamedNode) -> Operator:
        match node:
            case Service():
                return self._remote(Input(ConstantOperator((), UNIT), frozenset()), node, graph).operator
            case LeftJoin(left, right, condition) if service_of(right) is not None:
                before = self._readable_twice(self.input(left, graph))
                return self.left_joined(before, self._remote(before, right, graph), condition, graph)
        return super()._node(node, graph)

    def _join(self, node: Node, graph: NamedNode) -> Operator:
        parts = list(self._parts(node, graph))
        remote = [part for part in parts if service_of(part[0]) is not None]
        if not remote:
            return super()._join(node, graph)
        others = [part for part in parts if part not in remote]
        return self._with_remote([self._group_of(group) for group in connected(others)], remote)

    def _group_of(self, parts: list[Placed]) -> _Group:
        return _Group(self.joined_parts(parts), not all(self.static_parts.holds(*part) for part in parts))

    def _with_remote(self, groups: list[_Group], remote: list[Placed]) -> Operator:
        waiting = list(remote)
        while waiting:
            if not groups:
                groups = [_Group(Input(ConstantOperator((), UNIT), frozenset()), False)]
            part, group = self._next(waiting, groups)
            waiting.remove(part)
            before = self._readable_twice(group.input)
            found = self._remote(before, *part)
            shown = set(found.operator.variables)
            near = [one for one in groups if one is not group and shown & set(one.input.operator.variables)]
            merged = joined([before, found, *(one.input for one in near)])
            groups = [one for one in groups if one is not group and one not in near]
            groups.append(_Group(merged, True))
        return joined([group.input for group in groups]).operator

    def _next(self, waiting: Iterable[Placed], groups: Iterable[_Group]) -> tuple[Placed, _Group]:
        """The SERVICE that has most of its keys already, and the group that has them."""
        choices = [
            (group.shared_with(node), group.flows, part, group)
            for part in waiting
            for group in groups
            if (node := service_of(part[0])) is not None and group.can_ask(node)
        ]
        if not choices:
            raise NotForTheKernel("SERVICE with a variable that the rest of its group does not always bind")
        best = max(choices, key=lambda choice: (choice[1] and choice[0] > 0, choice[0]))
        return best[2], best[3]

    def _readable_twice(self, given: Input) -> Input:
        return Input(SharedOperator(given.operator, self.clock), given.sure)

    def _remote(self, before: Input, part: Node, graph: NamedNode) -> Input:
        """The rows of a SERVICE, and of the filters around it, for the keys of what stands before it."""
        node = service_of(part)
        assert node is not None
        keys = tuple(variable for variable in visible(node) if variable.value in before.sure)
        if isinstance(node.endpoint, Variable) and node.endpoint not in keys:
            raise NotForTheKernel("SERVICE with a variable that the rest of its group does not always bind")
        clause = self._services.clause(node, keys, self._rhythm.slide)
        rows = ServiceRows(before.operator, clause, self._rhythm, self.clock, self._terms, self._seconds_spent)
        self.clauses.append(rows)
        sure = frozenset(variable.value for variable in (*certain(node), *keys))
        found = Input(rows, sure)
        for condition in _conditions(part):
            found = Input(self.filtered(found, condition, graph), sure)
        return found


def service_of(node: Node) -> Service | None:
    """The SERVICE that a node is, whatever filters are around it."""
    while isinstance(node, Filter):
        node = node.inner
    return node if isinstance(node, Service) else None


def _conditions(node: Node) -> Iterable[Expression]:
    while isinstance(node, Filter):
        yield from conjuncts(node.condition)
        node = node.inner
