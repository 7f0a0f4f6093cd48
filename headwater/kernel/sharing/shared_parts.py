"""Equal parts of several plans over the same windows, and the operators that evaluate each of them once.

    q1   AVG(?v) by ?s  of  { ?o :by ?s ; :value ?v  FILTER(?v > 3) }   ┐ one operator for the pattern with its filter,
    q2   COUNT(*)       of  { ?x :by ?y ; :value ?z  FILTER(?z > 3) }   ┘ whose columns have own names in each

Parts are equal where they are once their variables are numbered (`optimizer.shared_subplans`). Those that change from
one evaluation to the next, such as RAND(), are evaluated for each query by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Project,
    Reduced,
    Union,
    Window,
)
from headwater.algebra.placed_patterns import PlacedPattern
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.execution.static_data import StaticData
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.compiler import Compiler
from headwater.kernel.compiling.pattern_inputs import PatternCompiler, PatternOperators
from headwater.kernel.compiling.row_expressions import RowExpressions
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.projection import ProjectionOperator
from headwater.kernel.operators.triple_patterns import TRIPLE, RenameOperator, SharedOperator, TickClock
from headwater.optimizer.dependencies import is_deterministic_plan
from headwater.optimizer.shared_subplans import CanonicalNames
from headwater.terms.model import NamedNode, Variable
from headwater.values.query_guard import QueryGuard
from headwater.windows.settings import QuerySettings

CollapseCounters = dict[PlacedPattern, Callable[[], int]]
"""For patterns over a set, how many triples have come while an equal one was there."""

_Term = TypeVar("_Term")

_PARTS = Aggregation | Bgp | Distinct | Extend | Filter | Group | Join | LeftJoin | Minus | Project | Reduced | Union
"""Nodes that may be evaluated once for several plans."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a plan: the number of all parts that are equal to it, and its variables in the order of theirs."""

    number: int
    variables: tuple[str, ...]


@dataclass
class PartNumbers:
    """Numbers the parts of plans: equal ones alike. `counts` says how often each number was given.

    Plans are kept, so that a node is known by its place in memory.
    """

    counts: Counter[int] = field(default_factory=Counter)
    _numbers: dict[Node, int] = field(default_factory=dict)
    _parts: dict[int, _Part] = field(default_factory=dict)
    _plans: list[QueryPlan] = field(default_factory=list)

    def add(self, plan: QueryPlan) -> None:
        """Number the parts of a plan."""
        self._plans.append(plan)
        for node in nodes_of(plan.root):
            is_part = isinstance(node, _PARTS) and not (isinstance(node, Bgp) and len(node.triples) < 2)
            if is_part and id(node) not in self._parts and is_deterministic_plan(node):
                names = CanonicalNames()
                number = self._numbers.setdefault(names.rename(node), len(self._numbers))
                self._parts[id(node)] = _Part(number, tuple(variable.value for variable in names.variables))
                self.counts[number] += 1

    def part(self, node: Node) -> _Part | None:
        """The number of a part that occurs several times; None for others."""
        found = self._parts.get(id(node))
        return None if found is None or self.counts[found.number] < 2 else found


class SharedParts:
    """The operators that several plans over the same windows read."""

    def __init__(self, numbers: PartNumbers, windows: int, guard: QueryGuard) -> None:
        self.numbers = numbers
        self.clock = TickClock(guard)
        self.patterns = PatternOperators.over(windows, TRIPLE, self.clock)
        self.operators: dict[tuple[int, NamedNode], tuple[SharedOperator, _Part, CollapseCounters]] = {}


class SharingCompiler(Compiler):
    """Compiles one of several plans: parts that others have, too, become operators of all."""

    def __init__(
        self,
        plan: QueryPlan,
        settings: QuerySettings,
        static: StaticData,
        vocabulary: Vocabulary,
        shared: SharedParts,
    ) -> None:
        super().__init__(plan, settings, static, vocabulary)
        self.clock = shared.clock
        self._shared = shared
        self._pattern_compiler = PatternCompiler(
            plan, settings, self.static_parts, vocabulary, self.clock, self._prefix, shared.patterns
        )
        self._expressions = RowExpressions(self, plan, vocabulary, self._pattern_compiler.times)
        self._above: Node | None = None

    def _compile_node(self, node: Node, graph: NamedNode) -> Operator:
        above = self._above
        self._above = above if isinstance(node, Window | Graph) else node
        # A join takes in the comparisons of the filter above it.
        is_merged = isinstance(node, Join | Bgp) and isinstance(above, Filter)
        part = None if is_merged or self.static_parts.is_static(node, graph) else self._shared.numbers.part(node)
        compiled = super()._compile_node(node, graph) if part is None else self._compile_part(node, graph, part)
        self._above = above
        return compiled

    def _compile_part(self, node: Node, graph: NamedNode, part: _Part) -> Operator:
        """A part of several plans, with the names that its variables have in this one."""
        outer = self._pattern_compiler.collapse_counters
        known = self._shared.operators.get((part.number, graph))
        if known is None:
            counters = self._pattern_compiler.collapse_counters = {}
            operator = _without_helpers(super()._compile_node(node, graph), part)
            self._pattern_compiler.collapse_counters = outer
            known = self._shared.operators[part.number, graph] = SharedOperator(operator, self.clock), part, counters
        shared, first, counters = known
        names = dict(zip(first.variables, part.variables, strict=True))
        for pattern, counter in counters.items():
            outer.setdefault(_rename_pattern(pattern, names), counter)
        return RenameOperator(shared, tuple(names[variable] for variable in shared.variables))


def _rename_pattern(pattern: PlacedPattern, names: Mapping[str, str]) -> PlacedPattern:
    """A pattern with other names of its variables."""

    def rename(term: _Term) -> _Term:
        return type(term)(names.get(term.value, term.value)) if isinstance(term, Variable) else term

    triple = pattern.triple
    renamed = replace(
        triple, subject=rename(triple.subject), predicate=rename(triple.predicate), object=rename(triple.object)
    )
    return pattern._replace(triple=renamed)


def _without_helpers(operator: Operator, part: _Part) -> Operator:
    """The rows without columns that are no variables of the part."""
    shown = tuple(variable for variable in operator.variables if variable in part.variables)
    return operator if shown == operator.variables else ProjectionOperator(operator, shown)
