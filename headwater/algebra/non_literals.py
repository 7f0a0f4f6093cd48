"""Which variables of a plan can never stand for a literal.

The subject and the predicate of a triple are no literals, nor is the name of a graph (RDF 1.1, section 3.1). A variable
that stands there is an IRI or a blank node in every solution that binds it, and so it is wherever that value is handed
on unchanged. Such a term equals itself and nothing else (SPARQL 1.1, section 17.4.1.7), so `=` and `!=` are decided by
ids, without a look at what they stand for.

    ?a :knows ?b . ?b :age ?n                  ?a and ?b; ?n may be anything
    { ?a :knows ?b } UNION { ?b :age ?n }      ?a only: the ?b of the first branch may be anything
    ?b :age ?n OPTIONAL { ?a :knows ?b }       ?a and ?b: the optional part only agrees with the ?b that is there
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
    Reduced,
    Slice,
    Union,
    Values,
    Window,
)
from headwater.algebra.scope import certain, visible
from headwater.language.expressions import Constant, Expression, VariableReference
from headwater.language.patterns import Path
from headwater.terms.model import NamedNode, Variable

Names = frozenset[str]


@dataclass(frozen=True)
class Known:
    """The variables that some rows have, those that are bound in each row, and those that are never a literal."""

    shown: Names
    sure: Names
    resources: Names


def resources(node: Node) -> Names:
    """The names of the variables that are an IRI or a blank node in every solution of a node that binds them."""
    match node:
        case Bgp(triples):
            plain = (triple for triple in triples if not isinstance(triple.predicate, Path))
            return _names(term for triple in plain for term in (triple.subject, triple.predicate))
        case Values(variables, rows):
            columns = zip(variables, zip(*rows, strict=True), strict=True) if rows else ()
            return _names(v for v, column in columns if all(isinstance(term, NamedNode | None) for term in column))
        case Join(left, right):
            return joined_resources([_known(left), _known(right)])
        case LeftJoin(left, right, _):
            return optional_resources(_known(left), _known(right))
        case Union(left, right):
            return _on_all_sides([_known(left), _known(right)])
        case Minus(inner, _) | Filter(inner, _) | Distinct(inner) | Reduced(inner) | OrderBy(inner, _) | Slice(inner):
            return resources(inner)
        case Project(inner, variables):
            return resources(inner) & _names(variables)
        case Extend(inner, variable, expression):
            below = resources(inner)
            return below | {variable.value} if _is_resource(expression, below) else below - {variable.value}
        case Group(inner, keys, _):
            below = resources(inner)
            return _names(v for v, e in keys if _is_resource(VariableReference(v) if e is None else e, below))
        case Aggregation(inner, clauses, _):
            return resources(inner) - _names(v for v, _, _ in clauses)
        case Graph(name, inner) | Window(_, name, inner):
            return resources(inner) | _names([name])
    # A path of length zero goes from a literal to itself, and what a service says is its own business.
    return frozenset()


def joined_resources(parts: Iterable[Known]) -> Names:
    """The variables of a join that are never a literal.

    A value that one part always gives is the value; one that it may leave open can come from any other.
    """
    given = list(parts)
    return _on_all_sides(given).union(*(one.resources & one.sure for one in given))


def optional_resources(left: Known, right: Known) -> Names:
    """The same for OPTIONAL: where nothing on the right fits, the left row stays as it is."""
    return _on_all_sides([left, right]) | (left.resources & left.sure)


def _on_all_sides(parts: list[Known]) -> Names:
    """The variables that are never a literal wherever they can come from."""
    everywhere: Names = frozenset().union(*(one.resources for one in parts))
    return everywhere.difference(*(one.shown - one.resources for one in parts))


def _known(node: Node) -> Known:
    return Known(_names(visible(node)), _names(certain(node)), resources(node))


def _is_resource(expression: Expression, below: Names) -> bool:
    match expression:
        case VariableReference(variable):
            return variable.value in below
        case Constant(value):
            return isinstance(value, NamedNode)
    return False


def _names(terms: Iterable[object]) -> Names:
    return frozenset(term.value for term in terms if isinstance(term, Variable))
