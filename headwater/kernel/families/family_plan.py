"""One plan for all members of a family: its parameters are variables, joined with the table of the members.

    member 1:  ?p foaf:name "Ann"                ?p foaf:name ?p0  ⋈  │ ?m  ?p0   │
    member 2:  ?p foaf:name "Bob"          →                          │ 1   "Ann" │
                                                                      │ 2   "Bob" │

A part of the plan in which a parameter stands is *lifted*: its solutions are those of all members together, each with
the number ?m of its member. Parts without parameters are the same for all and stay as they are. The operators follow:

    join, OPTIONAL, MINUS     where both sides are lifted they agree on ?m, so members never meet
    UNION                     both branches are lifted, or neither
    FILTER, BIND              the parameters that the expression reads are joined to its rows first
    EXISTS                    the pattern is lifted like any other, and sees the ?m of its row
    GROUP BY, AGGREGATE       ?m is one more key; without GROUP BY each member has its group, even of nothing
    SELECT                    ?m is one more variable, so DISTINCT is each member's own
    ORDER BY, LIMIT           of the whole query: done for each member's rows by themselves

A parameter in a pattern need not be joined with the table at once. As long as only joins, windows and graphs, and row
by row operators are around it, the pattern with a variable in that place is a part like any other (in particular a
static part that is evaluated by itself); the table comes in at the end of the join.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce

from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    Distinct,
    ExistsPlan,
    Extend,
    Filter,
    Graph,
    Group,
    LeftJoin,
    Minus,
    Node,
    OrderBy,
    Project,
    Reduced,
    Slice,
    Union,
    Unit,
    Values,
    Window,
)
from headwater.algebra.nodes import Join as JoinNode
from headwater.algebra.query_families import ConstantTerm, Family, placeholder
from headwater.algebra.scope import (
    certain_variables,
    expression_variables,
    map_expression,
    sub_expressions,
    visible_variables,
)
from headwater.algebra.translate import join_nodes
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.language.expressions import Aggregate, Constant, Expression, FunctionCall, Timestamp, VariableReference
from headwater.language.patterns import PatternTerm, TriplePattern
from headwater.terms.model import Literal, NamedNode, Variable
from headwater.values.aggregates import aggregate as aggregate_of


@dataclass(frozen=True, slots=True)
class MemberTable(Window):
    """The table of the members: a window on no stream, whose rows come and go with the queries.

    `inner` lists the columns: the number of the member, then the parameters whose places are `parameters`.
    """

    parameters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FamilyPlan:
    """The plan of a family: `member` is the variable of the number, `parameters` are in the order of the family's."""

    root: Node
    member: Variable
    parameters: tuple[Variable, ...]


def family_plan(family: Family, prefix: str) -> FamilyPlan:
    """The plan whose solutions are those of all members; `prefix` begins names that no query of the family has."""
    lifting = _Lifting(family, prefix)
    return FamilyPlan(lifting.lift_query(family.form.root), lifting.member, tuple(lifting.variables.values()))


@dataclass(frozen=True, slots=True)
class _Lifted:
    """A part of the plan: whether it has the number of its member, and the parameters still to be joined to it."""

    node: Node
    has_member: bool = False
    waiting: frozenset[int] = frozenset()

    @property
    def is_member_specific(self) -> bool:
        """Whether the part differs from member to member."""
        return self.has_member or bool(self.waiting)


@dataclass(frozen=True, slots=True)
class _LiftedExpression:
    """An expression, the parameters that it reads, and whether it differs from member to member by EXISTS."""

    expression: Expression
    reads: frozenset[int]
    has_lifted_pattern: bool

    @property
    def is_member_specific(self) -> bool:
        return self.has_lifted_pattern or bool(self.reads)


class _Lifting:
    def __init__(self, family: Family, prefix: str) -> None:
        self.member = Variable(f"{prefix}m")
        self.variables = {number: Variable(f"{prefix}p{place}") for place, number in enumerate(family.parameters)}
        self._places = {number: place for place, number in enumerate(family.parameters)}
        self._fixed = family.fixed
        self._numbers = {placeholder(number): number for number in range(len(family.fixed))}
        self._prefix = prefix
        self._fresh = 0

    def lift_query(self, root: Node) -> Node:
        """The whole query: ORDER BY and LIMIT stay around it, and it is lifted whatever is in it."""
        match root:
            case Slice(inner, _, _) | Distinct(inner) | Reduced(inner):
                return root.with_children(self.lift_query(inner))
            case Project(OrderBy(inner, keys), variables):
                below, lifted = self._lift_with_expressions(inner, [key for key, _ in keys])
                descends = [down for _, down in keys]
                ordered = OrderBy(self._join_members(below, tag=True), tuple(zip(lifted, descends, strict=True)))
                return Project(ordered, (self.member, *variables))
            case Project(inner, variables):
                return self._project(self._lift_node(inner), variables)
        raise UnsupportedByKernel(f"a query that is no selection but {type(root).__name__}")

    def _lift_node(self, node: Node) -> _Lifted:
        """A part of the plan for all members at once, over parameters in place of their constants."""
        match node:
            case Bgp(triples):
                return self._lift_bgp(triples)
            case Values():
                return self._lift_values(node)
            case JoinNode(left, right):
                first, second = self._lift_node(left), self._lift_node(right)
                tagged = first.has_member or second.has_member
                return _Lifted(JoinNode(first.node, second.node), tagged, first.waiting | second.waiting)
            case Graph(NamedNode(), inner) | Window(_, None, inner):
                below = self._lift_node(inner)
                return replace(below, node=node.with_children(below.node))
            case Filter(inner, condition):
                below, (test,) = self._lift_with_expressions(inner, [condition])
                return replace(below, node=Filter(below.node, test))
            case Extend(inner, variable, expression):
                below, (value,) = self._lift_with_expressions(inner, [expression])
                return replace(below, node=Extend(below.node, variable, value))
            case LeftJoin(left, right, condition):
                return self._lift_left_join(left, right, condition)
            case Minus(left, right):
                return self._lift_minus(left, right)
            case Union(left, right):
                branches = [self._lift_node(branch) for branch in (left, right)]
                if not any(branch.is_member_specific for branch in branches):
                    return _Lifted(Union(*(branch.node for branch in branches)))
                return _Lifted(Union(*(self._join_members(branch, tag=True) for branch in branches)), has_member=True)
            case Project(inner, variables):
                below = self._lift_node(inner)
                if below.is_member_specific:
                    return _Lifted(self._project(below, variables), has_member=True)
                return _Lifted(Project(below.node, variables))
            case Group(inner, keys, aggregates):
                return self._lift_group(inner, keys, aggregates)
            case Aggregation():
                return self._lift_aggregation(node)
            case OrderBy(inner, keys):
                below, lifted = self._lift_with_expressions(inner, [key for key, _ in keys])
                if below.is_member_specific:
                    # The solutions of a sub-query have no order, and a LIMIT is refused.
                    return self._lift_node(inner)
                descends = [down for _, down in keys]
                return _Lifted(OrderBy(below.node, tuple(zip(lifted, descends, strict=True))))
        return self._lift_other(node)

    def _lift_other(self, node: Node) -> _Lifted:
        """Operators over one input that look at more than a row, and those without a parameter below."""
        below = [self._lift_node(child) for child in node.children]
        if not any(child.is_member_specific for child in below):
            return _Lifted(node.with_children(*(child.node for child in below)))
        if isinstance(node, Distinct | Reduced | Graph | Window):
            return _Lifted(node.with_children(self._join_members(below[0])), has_member=True)
        what = "LIMIT or OFFSET in a sub-query" if isinstance(node, Slice) else type(node).__name__
        raise UnsupportedByKernel(f"{what} over a part that differs from query to query")

    def _join_members(self, part: _Lifted, reads: frozenset[int] = frozenset(), *, tag: bool = False) -> Node:
        """A part with what it waits for, some parameters more and, where it is asked for, the member's number."""
        asked = sorted(part.waiting | reads)
        if not asked and (part.has_member or not tag):
            return part.node
        return join_nodes(part.node, self._members([self.variables[number] for number in asked], asked))

    def _members(self, variables: Iterable[Variable], numbers: Iterable[int]) -> MemberTable:
        columns = Values((self.member, *variables), ())
        return MemberTable((), None, columns, tuple(self._places[number] for number in numbers))

    def _project(self, below: _Lifted, variables: tuple[Variable, ...]) -> Node:
        return Project(self._join_members(below, tag=True), (self.member, *variables))

    def _lift_bgp(self, triples: tuple[TriplePattern, ...]) -> _Lifted:
        """Triple patterns with variables in place of the constants that differ, which wait for the member table."""
        waiting: set[int] = set()

        def fill_placeholder(term: PatternTerm) -> PatternTerm:
            number = self._numbers.get(term) if isinstance(term, NamedNode) else None
            if number is None:
                return term
            fixed = self._fixed[number]
            if fixed is not None:
                return fixed
            waiting.add(number)
            return self.variables[number]

        patterns = tuple(
            TriplePattern(fill_placeholder(t.subject), t.predicate, fill_placeholder(t.object)) for t in triples
        )
        return _Lifted(Bgp(patterns), waiting=frozenset(waiting))

    def _lift_values(self, node: Values) -> _Lifted:
        """VALUES: a cell that differs is read from the table under the name of its column."""
        numbers = [[None if cell is None else self._placeholder_number(cell) for cell in row] for row in node.rows]
        cells = [[None if n is None else self._fixed[n] for n in row] for row in numbers]
        is_open = [[n is not None and self._fixed[n] is None for n in row] for row in numbers]
        if not any(map(any, is_open)):
            return _Lifted(Values(node.variables, tuple(map(tuple, cells))))
        branches: list[Node] = []
        for row, known, opened in zip(numbers, cells, is_open, strict=True):
            named = [(v, n) for v, n, o in zip(node.variables, row, opened, strict=True) if o and n is not None]
            rest = [(v, cell) for v, cell, o in zip(node.variables, known, opened, strict=True) if not o]
            written = Values(tuple(v for v, _ in rest), (tuple(cell for _, cell in rest),)) if rest else Unit()
            branches.append(join_nodes(self._members([v for v, _ in named], [n for _, n in named]), written))
        return _Lifted(reduce(Union, branches), has_member=True)

    def _placeholder_number(self, cell: ConstantTerm) -> int:
        """The number of the constant that a placeholder in VALUES stands for."""
        assert isinstance(cell, NamedNode)
        return self._numbers[cell]

    def _lift_left_join(self, left: Node, right: Node, condition: Expression | None) -> _Lifted:
        first, second = self._lift_node(left), self._lift_node(right)
        test = None if condition is None else self._lift_expression(condition)
        lifted = None if test is None else test.expression
        if not second.is_member_specific and (test is None or not test.is_member_specific):
            return replace(first, node=LeftJoin(first.node, second.node, lifted))
        kept = self._join_members(first, frozenset() if test is None else test.reads, tag=True)
        return _Lifted(LeftJoin(kept, self._join_members(second), lifted), has_member=True)

    def _lift_minus(self, left: Node, right: Node) -> _Lifted:
        first, second = self._lift_node(left), self._lift_node(right)
        if not second.is_member_specific:
            return replace(first, node=Minus(first.node, second.node))
        if not set(visible_variables(left)) & set(visible_variables(right)):
            # Solutions that share no variable remove nothing; the number must not make them share one.
            return first
        if not certain_variables(left) & certain_variables(right):
            raise UnsupportedByKernel("MINUS over parts that may share no variable and differ from query to query")
        return _Lifted(Minus(self._join_members(first, tag=True), self._join_members(second)), has_member=True)

    def _lift_group(
        self,
        inner: Node,
        keys: tuple[tuple[Variable, Expression | None], ...],
        aggregates: tuple[tuple[Variable, Aggregate], ...],
    ) -> _Lifted:
        """GROUP BY with the member as one more key; without keys, a group for each member."""
        calls: list[Expression] = [call for _, call in aggregates]
        below, lifted = self._lift_with_expressions(inner, [*(key for _, key in keys if key is not None), *calls])
        own = iter(lifted)
        named = tuple((v, None if key is None else next(own)) for v, key in keys)
        called = [(v, call) for (v, _), call in zip(aggregates, own, strict=True) if isinstance(call, Aggregate)]
        if not below.is_member_specific:
            return _Lifted(Group(below.node, named, tuple(called)))
        rows = self._join_members(below)
        if any(call.distinct and call.argument is None for _, call in called):
            rows = self._without_parameters(rows, inner, lifted)
        if named:
            return _Lifted(Group(rows, ((self.member, None), *named), tuple(called)), has_member=True)
        return _Lifted(self._one_group_each(rows, called), has_member=True)

    def _without_parameters(self, rows: Node, inner: Node, expressions: list[Expression]) -> Node:
        """Rows for COUNT(DISTINCT *), which must not see the parameters that only a branch of a UNION has."""
        if any(isinstance(part, Timestamp) for expression in expressions for part in sub_expressions(expression)):
            raise UnsupportedByKernel(
                "COUNT(DISTINCT *) beside timestamp() over a part that differs from query to query"
            )
        read = frozenset().union(*map(expression_variables, expressions))
        kept = [variable for variable in self.variables.values() if variable in read]
        return Project(rows, (self.member, *visible_variables(inner), *kept))

    def _one_group_each(self, rows: Node, aggregates: list[tuple[Variable, Aggregate]]) -> Node:
        """A group for each member: the one that it has, or that of nothing."""
        size = self._new_variable()
        inside = {variable: self._new_variable() for variable, _ in aggregates}
        counted = [(size, Aggregate("COUNT", None)), *((inside[v], call) for v, call in aggregates)]
        groups = Group(rows, ((self.member, None),), tuple(counted))
        groups_of_all: Node = LeftJoin(self._members([], []), groups)
        for variable, call in aggregates:
            of_nothing = aggregate_of(call.function, {}, distinct=call.distinct, separator=call.separator)
            there = VariableReference(inside[variable])
            if of_nothing is None:
                groups_of_all = Extend(groups_of_all, variable, there)
                continue
            assert isinstance(of_nothing, Literal)
            is_there = FunctionCall("BOUND", (VariableReference(size),))
            groups_of_all = Extend(groups_of_all, variable, FunctionCall("IF", (is_there, there, Constant(of_nothing))))
        return Project(groups_of_all, (self.member, *(variable for variable, _ in aggregates)))

    def _lift_aggregation(self, node: Aggregation) -> _Lifted:
        calls: list[Expression] = [call for _, call, _ in node.clauses]
        below, lifted = self._lift_with_expressions(node.inner, [*calls, *node.conditions])
        conditions = tuple(lifted[len(calls) :])
        if not below.is_member_specific:
            return _Lifted(Aggregation(below.node, node.clauses, conditions))
        rows = self._join_members(below)
        clauses = tuple((variable, call, (self.member, *group)) for variable, call, group in node.clauses)
        return _Lifted(Aggregation(rows, clauses, conditions), has_member=True)

    def _new_variable(self) -> Variable:
        self._fresh += 1
        return Variable(f"{self._prefix}g{self._fresh}")

    def _lift_with_expressions(self, inner: Node, expressions: list[Expression]) -> tuple[_Lifted, list[Expression]]:
        """An input with all that some expressions read, and the expressions."""
        below = self._lift_node(inner)
        lifted = [self._lift_expression(expression) for expression in expressions]
        if any(one.is_member_specific for one in lifted):
            reads = frozenset().union(*(one.reads for one in lifted))
            below = _Lifted(self._join_members(below, reads, tag=True), has_member=True)
        return below, [one.expression for one in lifted]

    def _lift_expression(self, expression: Expression) -> _LiftedExpression:
        """An expression with variables in place of the constants that differ, in EXISTS, too."""
        reads: set[int] = set()
        has_lifted_pattern = False

        def change(part: Expression) -> Expression | None:
            nonlocal has_lifted_pattern
            match part:
                case Constant(NamedNode() as value):
                    number = self._numbers[value]
                    fixed = self._fixed[number]
                    if fixed is not None:
                        return Constant(fixed)
                    reads.add(number)
                    return VariableReference(self.variables[number])
                case ExistsPlan(plan, _):
                    pattern = self._lift_node(plan)
                    has_lifted_pattern |= pattern.is_member_specific
                    return replace(part, plan=self._join_members(pattern))
            return None

        return _LiftedExpression(map_expression(expression, change), frozenset(reads), has_lifted_pattern)
