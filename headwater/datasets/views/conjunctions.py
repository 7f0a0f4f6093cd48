"""Conjunctions: the static parts that are evaluated on columns, triple patterns and conditions that must all hold.

    ?paper dc:creator ?auth . GRAPH <people> { ?auth foaf:name ?n } FILTER (?n != "Ann")

    Conjunction(patterns = (- ?paper dc:creator ?auth), (<people> ?auth foaf:name ?n); conditions = ?n != "Ann")

A condition whose variables the patterns bind gives the same before and after the join. VALUES of one variable that the
patterns bind is such a condition, too. Other static parts (OPTIONAL, UNION, MINUS, paths, sub-queries) are no
conjunctions; they are evaluated by `static_tables`, `kernel_views` or the definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from headwater.algebra.nodes import Bgp, Filter, Graph, Join, Node, Unit, Values
from headwater.algebra.plan import QueryPlan
from headwater.algebra.query_families import ConstantTerm
from headwater.algebra.scope import expression_variables, visible_variables
from headwater.kernel.expressions.compiled_expressions import can_evaluate
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.language.patterns import TriplePattern
from headwater.optimizer.rewrites.bind_equalities import is_equal_only_to_itself
from headwater.optimizer.rewrites.narrow_static_parts import MAX_LISTED
from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import Literal, NamedNode, Variable

PatternTerm = int | str
"""The id of a constant, or the name of a variable."""


@dataclass(frozen=True, slots=True)
class ColumnPattern:
    """A triple pattern, and the graphs whose merge it is matched against (`NO_TERM` is the default graph)."""

    graphs: tuple[int, ...]
    subject: PatternTerm
    predicate: PatternTerm
    object: PatternTerm

    @property
    def variables(self) -> tuple[str, ...]:
        terms = (self.subject, self.predicate, self.object)
        return tuple(dict.fromkeys(term for term in terms if isinstance(term, str)))


@dataclass(frozen=True)
class Conjunction:
    """Patterns and conditions, and the variables of the solutions in the order of the columns."""

    patterns: tuple[ColumnPattern, ...]
    conditions: tuple[Expression, ...]
    variables: tuple[str, ...]
    base: str | None = None

    @classmethod
    def of(cls, plan: QueryPlan, part: Node) -> Conjunction | None:
        """The conjunction that a part of a plan is; None if it is something else."""
        default = (NO_TERM,) if plan.default_graphs is None else tuple(map(encode, plan.default_graphs))
        collector = _Collector(plan)
        if not collector.collect(part, default):
            return None
        variables = tuple(variable.value for variable in visible_variables(part))
        if collector.listed - {name for pattern in collector.patterns for name in pattern.variables}:
            return None
        return cls(tuple(dict.fromkeys(collector.patterns)), tuple(collector.conditions), variables, plan.base)

    @property
    def shortest_list(self) -> tuple[str, tuple[ConstantTerm, ...]] | None:
        """The variable to which a condition leaves the fewest terms, with these terms; None if none is restricted."""
        bound = {name for pattern in self.patterns for name in pattern.variables}
        lists = [one for one in map(terms_allowed_by, self.conditions) if one is not None and one[0].value in bound]
        if not lists:
            return None
        variable, terms = min(lists, key=lambda one: len(one[1]))
        return variable.value, terms


def one_of_condition(variable: Variable, terms: Sequence[ConstantTerm]) -> Expression:
    """The condition that a variable is the same term as one of these."""
    tests: list[Expression] = [
        FunctionCall("SAMETERM", (VariableReference(variable), Constant(term))) for term in terms
    ]
    return reduce(lambda left, right: Operation("||", (left, right)), tests)


def terms_allowed_by(condition: Expression) -> tuple[Variable, tuple[ConstantTerm, ...]] | None:
    """The variable of a condition and the only terms for which it can hold; None if it does not list them."""
    match condition:
        case FunctionCall("SAMETERM", (VariableReference(variable), Constant(value))):
            return variable, (value,)
        case Operation("IN", (VariableReference(variable), *listed)):
            terms = tuple(
                one.value for one in listed if isinstance(one, Constant) and is_equal_only_to_itself(one.value)
            )
            return (variable, terms) if len(terms) == len(listed) else None
        case Operation("||", (left, right)):
            one, other = terms_allowed_by(left), terms_allowed_by(right)
            if one is not None and other is not None and one[0] == other[0]:
                return one[0], (*one[1], *other[1])
    return None


class _Collector:
    """Collects the patterns and conditions of a plan node."""

    def __init__(self, plan: QueryPlan) -> None:
        self._plan = plan
        self.patterns: list[ColumnPattern] = []
        self.conditions: list[Expression] = []
        self.listed: set[str] = set()
        """The variables of VALUES, each of which a pattern has to bind."""

    def collect(self, node: Node, graphs: tuple[int, ...]) -> bool:
        """Collect the patterns and conditions of a node; gives whether there is nothing else in it."""
        match node:
            case Unit():
                return True
            case Join(left, right):
                return self.collect(left, graphs) and self.collect(right, graphs)
            case Bgp(triples):
                return all(self._collect_pattern(triple, graphs) for triple in triples)
            case Graph(NamedNode() as name, inner):
                named = self._plan.named_graphs
                return self.collect(inner, (encode(name),) if named is None or name in named else ())
            case Filter(inner, condition) if can_evaluate(condition) and expression_variables(condition) <= set(
                visible_variables(inner)
            ):
                self.conditions.append(condition)
                return self.collect(inner, graphs)
            case Values((variable,), rows):
                terms = [term for (term,) in rows if term is not None]
                self.listed.add(variable.value)
                self.conditions += [one_of_condition(variable, terms)] if terms else []
                # A term that is listed twice would double the solutions.
                return 0 < len(terms) <= MAX_LISTED and len(set(terms)) == len(rows)
        return False

    def _collect_pattern(self, triple: TriplePattern, graphs: tuple[int, ...]) -> bool:
        terms: list[PatternTerm] = []
        for term in (triple.subject, triple.predicate, triple.object):
            if isinstance(term, Variable):
                terms.append(term.value)
            elif isinstance(term, NamedNode | Literal):
                terms.append(encode(term))
            else:
                return False
        self.patterns.append(ColumnPattern(graphs, *terms))
        return True
