"""Which variables of a plan can never stand for a literal.

The subject and the predicate of a triple are no literals, nor is the name of a graph (RDF 1.1, section 3.1). A variable
that stands there is an IRI or a blank node in every solution that binds it, also after operators that keep its value.
Such a term equals itself and nothing else (SPARQL 1.1, section 17.4.1.7), so `=` and `!=` compare ids, without looking
at terms.

    ?a :knows ?b . ?b :age ?n                  ?a and ?b; ?n may be anything
    { ?a :knows ?b } UNION { ?b :age ?n }      ?a only: the ?b of the first branch may be anything
    ?b :age ?n OPTIONAL { ?a :knows ?b }       ?a and ?b: the optional part joins on the ?b that is there
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
    QuadPattern,
    Reduced,
    Slice,
    Union,
    Values,
    Window,
    WindowGraph,
)
from headwater.algebra.scope import certain_variables, visible_variables
from headwater.language.expressions import Constant, Expression, VariableReference
from headwater.language.patterns import Path
from headwater.terms.model import NamedNode, Variable

VariableNames = frozenset[str]


@dataclass(frozen=True)
class VariableFacts:
    """Names of the variables that rows may bind, that every row binds, and that are never bound to a literal."""

    visible: VariableNames
    certain: VariableNames
    non_literal: VariableNames


def non_literal_variables(node: Node) -> VariableNames:
    """The names of the variables that are an IRI or a blank node in every solution of a node that binds them."""
    match node:
        case Bgp(triples):
            plain = (triple for triple in triples if not isinstance(triple.predicate, Path))
            return _names(term for triple in plain for term in (triple.subject, triple.predicate))
        case QuadPattern(name, triples):
            return non_literal_variables(Bgp(triples)) | _names([name])
        case Values(variables, rows):
            columns = zip(variables, zip(*rows, strict=True), strict=True) if rows else ()
            return _names(v for v, column in columns if all(isinstance(term, NamedNode | None) for term in column))
        case Join(left, right):
            return non_literals_of_join([_facts_of(left), _facts_of(right)])
        case LeftJoin(left, right, _):
            return non_literals_of_left_join(_facts_of(left), _facts_of(right))
        case Union(left, right):
            return _non_literal_in_all([_facts_of(left), _facts_of(right)])
        case Minus(inner, _) | Filter(inner, _) | Distinct(inner) | Reduced(inner) | OrderBy(inner, _) | Slice(inner):
            return non_literal_variables(inner)
        case Project(inner, variables):
            return non_literal_variables(inner) & _names(variables)
        case Extend(inner, variable, expression):
            below = non_literal_variables(inner)
            return below | {variable.value} if _is_non_literal(expression, below) else below - {variable.value}
        case Group(inner, keys, _):
            below = non_literal_variables(inner)
            return _names(v for v, e in keys if _is_non_literal(VariableReference(v) if e is None else e, below))
        case Aggregation(inner, clauses, _):
            return non_literal_variables(inner) - _names(v for v, _, _ in clauses)
        case Graph(name, inner) | WindowGraph(name, inner) | Window(_, name, inner):
            return non_literal_variables(inner) | _names([name])
    # A path of length zero leads from a literal to itself, and nothing is known of what an endpoint binds.
    return frozenset()


def non_literals_of_join(inputs: Iterable[VariableFacts]) -> VariableNames:
    """The variables of a join that are never a literal.

    What one input always binds keeps its value in the join; what it may leave unbound can come from another input.
    """
    facts = list(inputs)
    return _non_literal_in_all(facts).union(*(one.non_literal & one.certain for one in facts))


def non_literals_of_left_join(left: VariableFacts, right: VariableFacts) -> VariableNames:
    """The same for OPTIONAL: where nothing on the right is compatible, the left row stays as it is."""
    return _non_literal_in_all([left, right]) | (left.non_literal & left.certain)


def _non_literal_in_all(inputs: list[VariableFacts]) -> VariableNames:
    """The variables that no input can bind to a literal."""
    in_some: VariableNames = frozenset().union(*(one.non_literal for one in inputs))
    return in_some.difference(*(one.visible - one.non_literal for one in inputs))


def _facts_of(node: Node) -> VariableFacts:
    return VariableFacts(_names(visible_variables(node)), _names(certain_variables(node)), non_literal_variables(node))


def _is_non_literal(expression: Expression, below: VariableNames) -> bool:
    match expression:
        case VariableReference(variable):
            return variable.value in below
        case Constant(value):
            return isinstance(value, NamedNode)
    return False


def _names(terms: Iterable[object]) -> VariableNames:
    return frozenset(term.value for term in terms if isinstance(term, Variable))
