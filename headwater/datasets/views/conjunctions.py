"""The static parts that are evaluated on columns: triple patterns and conditions, all of which must hold.

    ?paper dc:creator ?auth . GRAPH <people> { ?auth foaf:name ?n } FILTER (?n != "Ann")

    Conjunction(patterns = (- ?paper dc:creator ?auth), (<people> ?auth foaf:name ?n); conditions = ?n != "Ann")

A condition over variables that the patterns around it bind says the same after the join as before it. VALUES of one
variable that the patterns bind is such a condition, too. Everything else (OPTIONAL, UNION, MINUS, paths, sub-queries)
is found by definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from headwater.algebra.nodes import Bgp, Filter, Graph, Join, Node, Unit, Values
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import mentioned, visible
from headwater.kernel.expressions.compiled_expressions import can_evaluate
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.language.patterns import TriplePattern
from headwater.optimizer.rewrites.bind_equalities import Fixed, equal_means_same
from headwater.optimizer.rewrites.narrow_static_parts import MOST_LISTED
from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import Literal, NamedNode, Variable

Part = int | str
"""The id of a constant, or the name of a variable."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A triple pattern, and the graphs whose merge it is matched against (`NO_TERM` is the default graph)."""

    graphs: tuple[int, ...]
    subject: Part
    predicate: Part
    object: Part

    @property
    def variables(self) -> tuple[str, ...]:
        parts = (self.subject, self.predicate, self.object)
        return tuple(dict.fromkeys(part for part in parts if isinstance(part, str)))


@dataclass(frozen=True)
class Conjunction:
    """Patterns and conditions, and the variables of the solutions in the order of the columns."""

    patterns: tuple[Pattern, ...]
    conditions: tuple[Expression, ...]
    variables: tuple[str, ...]
    base: str | None = None

    @classmethod
    def of(cls, plan: QueryPlan, part: Node) -> Conjunction | None:
        """A part of a plan in the default graph; None where it is something else."""
        default = (NO_TERM,) if plan.default_graphs is None else tuple(map(encode, plan.default_graphs))
        found = _Collector(plan)
        if not found.take(part, default):
            return None
        variables = tuple(variable.value for variable in visible(part))
        if found.listed - {name for pattern in found.patterns for name in pattern.variables}:
            return None
        return cls(tuple(dict.fromkeys(found.patterns)), tuple(found.conditions), variables, plan.base)

    @property
    def fewest(self) -> tuple[str, tuple[Fixed, ...]] | None:
        """A variable that can only be one of a few terms; None where there is none."""
        bound = {name for pattern in self.patterns for name in pattern.variables}
        found = [one for one in map(listed_by, self.conditions) if one is not None and one[0].value in bound]
        if not found:
            return None
        variable, terms = min(found, key=lambda one: len(one[1]))
        return variable.value, terms


def is_one_of(variable: Variable, terms: Sequence[Fixed]) -> Expression:
    """The condition that a variable is one of these very terms."""
    tests: list[Expression] = [
        FunctionCall("SAMETERM", (VariableReference(variable), Constant(term))) for term in terms
    ]
    return reduce(lambda left, right: Operation("||", (left, right)), tests)


def listed_by(condition: Expression) -> tuple[Variable, tuple[Fixed, ...]] | None:
    """The variable and the terms of a condition that holds for no others."""
    match condition:
        case FunctionCall("SAMETERM", (VariableReference(variable), Constant(value))):
            return variable, (value,)
        case Operation("IN", (VariableReference(variable), *listed)):
            terms = tuple(one.value for one in listed if isinstance(one, Constant) and equal_means_same(one.value))
            return (variable, terms) if len(terms) == len(listed) else None
        case Operation("||", (left, right)):
            one, other = listed_by(left), listed_by(right)
            if one is not None and other is not None and one[0] == other[0]:
                return one[0], (*one[1], *other[1])
    return None


class _Collector:
    def __init__(self, plan: QueryPlan) -> None:
        self._plan = plan
        self.patterns: list[Pattern] = []
        self.conditions: list[Expression] = []
        self.listed: set[str] = set()
        """The variables of VALUES, which some pattern has to bind."""

    def take(self, node: Node, graphs: tuple[int, ...]) -> bool:
        """Whether a node is made of patterns and conditions alone."""
        match node:
            case Unit():
                return True
            case Join(left, right):
                return self.take(left, graphs) and self.take(right, graphs)
            case Bgp(triples):
                return all(self._pattern(triple, graphs) for triple in triples)
            case Graph(NamedNode() as name, inner):
                named = self._plan.named_graphs
                return self.take(inner, (encode(name),) if named is None or name in named else ())
            case Filter(inner, condition) if can_evaluate(condition) and mentioned(condition) <= set(visible(inner)):
                self.conditions.append(condition)
                return self.take(inner, graphs)
            case Values((variable,), rows):
                terms = [term for (term,) in rows if term is not None]
                self.listed.add(variable.value)
                self.conditions += [is_one_of(variable, terms)] if terms else []
                # A term that stands there twice doubles what it meets.
                return 0 < len(terms) <= MOST_LISTED and len(set(terms)) == len(rows)
        return False

    def _pattern(self, triple: TriplePattern, graphs: tuple[int, ...]) -> bool:
        parts: list[Part] = []
        for term in (triple.subject, triple.predicate, triple.object):
            if isinstance(term, Variable):
                parts.append(term.value)
            elif isinstance(term, NamedNode | Literal):
                parts.append(encode(term))
            else:
                return False
        self.patterns.append(Pattern(graphs, *parts))
        return True
