"""A static input of a join keeps only rows that some stream row can join with, as far as the plan alone tells.

    Join(Window(w, Filter({?x :at ?v}, c(?v))), {?v :name ?n})     →  Join(…, Filter({?v :name ?n}, c(?v)))
    Join(Window(w, {?v :at ?g}), {?x :owner ?v})                   →  Join(…, Filter({?x :owner ?v}, !isLITERAL(?v)))
    Join(Window(w, Join({?x :at ?v}, Values(?v, :a :b))), …)       →  Join(…, Filter(…, ?v IN (:a, :b)))

An *implied condition* of the stream side is true on all its solutions and reads only variables that all of them bind.
A solution of the static side that always binds these variables, and on which the condition is not true, joins with
nothing. So the static side can be filtered by it: its view gets smaller, and other rules move the filter further.
Conditions are implied by filters, VALUES, constants, and the places of a triple: no subject is a literal, every
predicate is an IRI.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headwater.algebra.active_graphs import ActiveGraph
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
    OrderBy,
    Project,
    Reduced,
    Slice,
    Union,
    Values,
    Window,
)
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import certain_variables, conjuncts_of, expression_variables
from headwater.algebra.translate import conjunction_of
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.language.patterns import TriplePattern
from headwater.optimizer.dependencies import has_exists, has_stream_pattern, patterns_with_graphs
from headwater.optimizer.joins import join_operands, join_plans
from headwater.optimizer.rewrites.bind_equalities import equality_of, is_equal_only_to_itself
from headwater.optimizer.rewrites.filter_static_parts import is_static
from headwater.optimizer.rewrites.push_filters import can_move
from headwater.optimizer.rule import NodeContext, Rule, rewrite_plan
from headwater.optimizer.statistics import Statistics
from headwater.terms.model import Literal, NamedNode, Term, Variable

Conditions = tuple[Expression, ...]
MAX_LISTED = 64
"""The longest list of terms that is worth a filter with IN."""


def narrow_static_parts(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    """Filter static inputs of joins by the conditions that the stream inputs imply."""

    def change(node: Node, context: NodeContext) -> Node:
        # Inside EXISTS any variable may have its value from outside.
        if not isinstance(node, Join) or context.is_correlated:
            return node
        inputs, graph = join_operands(node), context.active_graph
        streams = [one for one in inputs if has_stream_pattern(plan, one, graph)]
        conditions = tuple(dict.fromkeys(condition for one in streams for condition in implied_conditions(one)))
        if not conditions:
            return node
        input_filter = _StaticInputFilter(plan, conditions, statistics)
        narrowed = [input_filter.filter_input(one, graph) if is_static(plan, one, graph) else one for one in inputs]
        if all(new is old for new, old in zip(narrowed, inputs, strict=True)):
            return node
        return join_plans(narrowed)

    return rewrite_plan(plan, change)


@dataclass(frozen=True)
class _StaticInputFilter:
    """Filters static inputs by the conditions that the stream side implies."""

    plan: QueryPlan
    conditions: Conditions
    statistics: Statistics | None

    def filter_input(self, node: Node, graph: ActiveGraph) -> Node:
        """A static input without solutions that join with no stream solution."""
        known = implied_conditions(node)
        for condition in self.conditions:
            is_new = condition not in known and has_all_variables(node, condition)
            if is_new and self._is_useful(node, condition, known, graph):
                node = Filter(node, condition)
        return node

    def _is_useful(self, node: Node, condition: Expression, known: Conditions, graph: ActiveGraph) -> bool:
        """Tests of the kind of term are added only where they can drop a row, and only the strictest of them."""
        variable = _term_kind_variable(condition)
        if variable is None:
            return True
        is_weaker = condition != _is_iri(variable) and _is_iri(variable) in (*known, *self.conditions)
        return not is_weaker and self._can_be_literal(node, variable, graph)

    def _can_be_literal(self, node: Node, variable: Variable, graph: ActiveGraph) -> bool:
        """Whether the input may bind a variable to literals, by the statistics."""
        is_object = False
        for pattern, active_graph in patterns_with_graphs(self.plan, node, graph):
            for triple in pattern.triples if isinstance(pattern, Bgp) else ():
                if triple.object != variable:
                    continue
                is_object = True
                if not self._has_literals(triple.predicate, active_graph):
                    return False
        return is_object

    def _has_literals(self, predicate: object, graph: ActiveGraph) -> bool:
        if self.statistics is None or not isinstance(predicate, NamedNode):
            return True
        return self.statistics.counts(self.plan, graph, predicate).has_literals


def has_all_variables(node: Node, condition: Expression) -> bool:
    """Whether each solution of the input binds all variables of the condition, so that a join compares them."""
    return expression_variables(condition) <= certain_variables(node)


def implied_conditions(node: Node) -> Conditions:
    """Conditions that are true on every solution of a node, over variables that are bound in every one."""
    match node:
        case Bgp(triples):
            return tuple(one for triple in triples for one in _term_kind_conditions(triple))
        case Values(variables, rows):
            columns = zip(variables, zip(*rows, strict=True), strict=True) if rows else ()
            return tuple(one for variable, terms in columns for one in _membership(variable, terms))
        case Filter(inner, condition):
            implied = [one for one in conjuncts_of(condition) if is_implied_by_filter(inner, one)]
            return (*implied_conditions(inner), *(one for condition in implied for one in _as_membership(condition)))
        case Join(left, right):
            return (*implied_conditions(left), *implied_conditions(right))
        case LeftJoin(left, _, _) | Minus(left, _):
            return implied_conditions(left)
        case Union(left, right):
            return conditions_of_union(implied_conditions(left), implied_conditions(right))
        case Extend(inner, variable, Constant(value)) if is_equal_only_to_itself(value):
            return (*implied_conditions(inner), *_membership(variable, [value]))
        case Project(inner, variables):
            return project_conditions(implied_conditions(inner), variables)
        case Group(inner, keys, _):
            return project_conditions(
                implied_conditions(inner), [variable for variable, expression in keys if expression is None]
            )
        case (
            Extend(inner, _, _)
            | Aggregation(inner, _, _)
            | Graph(_, inner)
            | Window(_, _, inner)
            | Distinct(inner)
            | Reduced(inner)
            | OrderBy(inner, _)
            | Slice(inner)
        ):
            return implied_conditions(inner)
    return ()


def is_implied_by_filter(inner: Node, condition: Expression) -> bool:
    """Whether a filter gives a condition that depends on nothing but variables that are always bound."""
    return (
        can_move(condition)
        and not has_exists(condition)
        and expression_variables(condition) <= certain_variables(inner)
    )


def project_conditions(conditions: Conditions, variables: Iterable[Variable]) -> Conditions:
    """The conditions that read only variables that the projection keeps."""
    shown = frozenset(variables)
    return tuple(one for one in conditions if expression_variables(one) <= shown)


def conditions_of_union(left: Conditions, right: Conditions) -> Conditions:
    """The conditions that both branches imply; for a single variable also the disjunction of both branches."""
    both = tuple(one for one in left if one in right)
    mine, others = _single_variable_conditions(left, both), _single_variable_conditions(right, both)
    shared = [variable for variable in mine if variable in others]
    return (*both, *(Operation("||", (conjunction_of(mine[one]), conjunction_of(others[one]))) for one in shared))


def _single_variable_conditions(conditions: Conditions, without: Conditions) -> dict[Variable, list[Expression]]:
    """The conditions that read one variable, by variable; without those on the kind of term."""
    by_variable: dict[Variable, list[Expression]] = {}
    for one in conditions:
        read = expression_variables(one)
        if len(read) == 1 and one not in without and _term_kind_variable(one) is None:
            by_variable.setdefault(next(iter(read)), []).append(one)
    return by_variable


def _as_membership(condition: Expression) -> Conditions:
    """An equality as IN with one term: a constant in its patterns would keep a view from following single changes."""
    equality = equality_of(condition)
    return (condition,) if equality is None else _membership(equality[0], [equality[1]]) or (condition,)


def _membership(variable: Variable, terms: Sequence[Term | None]) -> Conditions:
    """`?v IN (…)` for a short list of terms, provided that each of them equals only itself."""
    listed = tuple(Constant(one) for one in dict.fromkeys(terms) if isinstance(one, NamedNode | Literal))
    if None in terms or len(listed) > MAX_LISTED or not all(is_equal_only_to_itself(one.value) for one in listed):
        return ()
    return (Operation("IN", (VariableReference(variable), *listed)),)


def _term_kind_conditions(triple: TriplePattern) -> Conditions:
    """What RDF guarantees: a subject is no literal, a predicate is an IRI."""
    conditions: list[Expression] = []
    if isinstance(triple.subject, Variable):
        conditions.append(_is_no_literal(triple.subject))
    if isinstance(triple.predicate, Variable):
        conditions += [_is_no_literal(triple.predicate), _is_iri(triple.predicate)]
    return tuple(conditions)


def _is_no_literal(variable: Variable) -> Expression:
    return Operation("!", (FunctionCall("ISLITERAL", (VariableReference(variable),)),))


def _is_iri(variable: Variable) -> Expression:
    return FunctionCall("ISIRI", (VariableReference(variable),))


def _term_kind_variable(condition: Expression) -> Variable | None:
    """The variable of a condition that tests only the kind of its term; None for other conditions."""
    read = expression_variables(condition)
    if len(read) != 1:
        return None
    (variable,) = read
    return variable if condition in (_is_no_literal(variable), _is_iri(variable)) else None


RULE = Rule(
    "narrow static parts",
    "the stream side has no solution on which the condition is not true, and both sides bind its variables for sure",
    narrow_static_parts,
)
