"""Property paths written out as patterns, where pyoxigraph deviates from SPARQL 1.1 (section 18.4).

Paths of fixed length are joins and unions of bags, but pyoxigraph evaluates alternatives as sets. A negated property
set is a set of pairs, but pyoxigraph may count triples. So both are written out:

    ?x ^:a/(:b|:c) ?y    →    { ?m :a ?x } { { ?m :b ?y } UNION { ?m :c ?y } }
    ?x !:a ?y            →    { SELECT DISTINCT ?x ?y { ?x ?p ?y FILTER(?p NOT IN (:a)) } }

A path of length zero, as in `:p*`, leads from a term to itself even if the term does not occur in the graph. pyoxigraph
starts from the terms of the graph, so the one solution that it may miss is added. These paths are sets, so nothing is
counted twice.

    ?s :p* :o    →    { SELECT DISTINCT ?s { { ?s :p* :o } UNION { VALUES ?s { :o } } } }
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from headwater.algebra.nodes import Bgp, Distinct, Filter, Node, PathMatch, Project, Union, Unit, Values
from headwater.algebra.scope import nodes_of, visible_variables
from headwater.algebra.translate import join_nodes
from headwater.language.expressions import Constant, Operation, VariableReference
from headwater.language.patterns import (
    Alternative,
    Inverse,
    Link,
    NegatedSet,
    OneOrMore,
    Path,
    Sequence,
    TriplePattern,
    ZeroOrMore,
    ZeroOrOne,
)
from headwater.terms.model import Literal, NamedNode, Variable


def can_be_empty(path: Path) -> bool:
    """Whether a path can have length zero."""
    match path:
        case ZeroOrMore() | ZeroOrOne():
            return True
        case Alternative(left, right):
            return can_be_empty(left) or can_be_empty(right)
        case Sequence(left, right):
            return can_be_empty(left) and can_be_empty(right)
        case Inverse(inner) | OneOrMore(inner):
            return can_be_empty(inner)
    return False


def has_negated_set(path: Path) -> bool:
    """Whether a negated property set stands anywhere in a path."""
    match path:
        case NegatedSet():
            return True
        case Alternative(left, right) | Sequence(left, right):
            return has_negated_set(left) or has_negated_set(right)
        case Inverse(inner) | OneOrMore(inner) | ZeroOrMore(inner) | ZeroOrOne(inner):
            return has_negated_set(inner)
    return False


def unroll_path(match: PathMatch, fresh: Callable[[], Variable]) -> Node:
    """A path as joins and unions of triple patterns over `fresh` variables; one of unbounded length stays a path."""
    subject, object_ = match.subject, match.object
    match match.path:
        case Link(iri):
            return Bgp((TriplePattern(subject, iri, object_),))
        case Inverse(inner):
            return unroll_path(PathMatch(object_, inner, subject), fresh)
        case Sequence(left, right):
            middle = fresh()
            first = unroll_path(PathMatch(subject, left, middle), fresh)
            return join_nodes(first, unroll_path(PathMatch(middle, right, object_), fresh))
        case Alternative(left, right):
            first = unroll_path(PathMatch(subject, left, object_), fresh)
            return Union(first, unroll_path(PathMatch(subject, right, object_), fresh))
        case NegatedSet(forward, inverse) if inverse:
            back = unroll_path(PathMatch(object_, NegatedSet(inverse, ()), subject), fresh)
            there = PathMatch(subject, NegatedSet(forward, ()), object_)
            return Union(unroll_path(there, fresh), back) if forward else back
        case NegatedSet(forward, _):
            predicate = fresh()
            steps = Bgp((TriplePattern(subject, predicate, object_),))
            others = Operation("NOT IN", (VariableReference(predicate), *map(Constant, forward)))
            return Distinct(Project(Filter(steps, others), visible_variables(match)))
    return match


def unroll_for_readers(match: PathMatch) -> Node:
    """The unrolled path, where the places between its steps have the same names each time."""
    numbers = count(1)
    return unroll_path(match, lambda: Variable(f"hw_step{next(numbers)}"))


def triples_of(node: Node) -> tuple[TriplePattern, ...]:
    """The triple patterns of a plan, in the order in which they are written."""
    return tuple(triple for one in nodes_of(node) if isinstance(one, Bgp) for triple in one.triples)


def complete_path(match: PathMatch, fresh: Callable[[], Variable]) -> Node:
    """The path with the solution that pyoxigraph may miss; the path itself if it misses none."""
    subject, path, object_ = match.subject, match.path, match.object
    ends = (subject, object_)
    if not can_be_empty(path) or all(isinstance(end, Variable) for end in ends):
        return match
    match path:
        case Alternative(left, right):
            branches = (complete_path(PathMatch(subject, p, object_), fresh) for p in (left, right))
            return Union(*branches)
        case Sequence(left, right):
            middle = fresh()
            first = complete_path(PathMatch(subject, left, middle), fresh)
            return join_nodes(first, complete_path(PathMatch(middle, right, object_), fresh))
        case Inverse(inner):
            return complete_path(PathMatch(object_, inner, subject), fresh)
    (variable, constant) = ends if isinstance(subject, Variable) else (object_, subject)
    if isinstance(variable, Variable) and isinstance(constant, NamedNode | Literal):
        itself = Values((variable,), ((constant,),))
        return Distinct(Project(Union(match, itself), (variable,)))
    return Unit() if subject == object_ else match
