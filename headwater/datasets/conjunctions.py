"""The static parts that are evaluated on columns: triple patterns and conditions, all of which must hold.

    ?paper dc:creator ?auth . GRAPH <people> { ?auth foaf:name ?n } FILTER (?n != "Ann")

    Conjunction(patterns = (- ?paper dc:creator ?auth), (<people> ?auth foaf:name ?n); conditions = ?n != "Ann")

A condition over variables that the patterns around it bind says the same after the join as before it. Everything else
(OPTIONAL, UNION, MINUS, paths, sub-queries) is found by definition.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.algebra.nodes import Bgp, Filter, Graph, Join, Node, Unit
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import mentioned, visible
from headwater.kernel.expressions import can_evaluate
from headwater.language.expressions import Expression
from headwater.language.patterns import TriplePattern
from headwater.terms.ids import encode
from headwater.terms.inline_layout import NO_TERM
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
        return cls(tuple(dict.fromkeys(found.patterns)), tuple(found.conditions), variables, plan.base)


class _Collector:
    def __init__(self, plan: QueryPlan) -> None:
        self._plan = plan
        self.patterns: list[Pattern] = []
        self.conditions: list[Expression] = []

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
