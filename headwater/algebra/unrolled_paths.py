"""Property paths as patterns, and what pyoxigraph needs to be told about the others (SPARQL 1.1, section 18.4).

Paths of fixed length are joins and unions of bags, where pyoxigraph takes alternatives for sets. A step along none of
some predicates is a set of pairs, where pyoxigraph counts triples or not, as it happens. So both are written out:

    ?x ^:a/(:b|:c) ?y    →    { ?m :a ?x } { { ?m :b ?y } UNION { ?m :c ?y } }
    ?x !:a ?y            →    { SELECT DISTINCT ?x ?y { ?x ?p ?y FILTER(?p NOT IN (:a)) } }

An empty path, such as `:p*` allows, leads from a term to itself even when the term stands nowhere in the graph.
pyoxigraph starts from the terms of the graph, so the one solution that it may miss is added; these paths are sets, so
nothing is counted twice.

    ?s :p* :o    →    { SELECT DISTINCT ?s { { ?s :p* :o } UNION { VALUES ?s { :o } } } }
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.algebra.nodes import Bgp, Distinct, Filter, Node, PathMatch, Project, Union, Unit, Values
from headwater.algebra.scope import visible
from headwater.algebra.translate import join
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


def may_be_empty(path: Path) -> bool:
    """Whether a path can lead from a term to itself in no step."""
    match path:
        case ZeroOrMore() | ZeroOrOne():
            return True
        case Alternative(left, right):
            return may_be_empty(left) or may_be_empty(right)
        case Sequence(left, right):
            return may_be_empty(left) and may_be_empty(right)
        case Inverse(inner) | OneOrMore(inner):
            return may_be_empty(inner)
    return False


def excludes_steps(path: Path) -> bool:
    """Whether a path has a step along none of some predicates somewhere."""
    match path:
        case NegatedSet():
            return True
        case Alternative(left, right) | Sequence(left, right):
            return excludes_steps(left) or excludes_steps(right)
        case Inverse(inner) | OneOrMore(inner) | ZeroOrMore(inner) | ZeroOrOne(inner):
            return excludes_steps(inner)
    return False


def unrolled(match: PathMatch, fresh: Callable[[], Variable]) -> Node:
    """The pattern of a path, `fresh` making the variables in between. What stays a path inside it is of any length."""
    subject, object_ = match.subject, match.object
    match match.path:
        case Link(iri):
            return Bgp((TriplePattern(subject, iri, object_),))
        case Inverse(inner):
            return unrolled(PathMatch(object_, inner, subject), fresh)
        case Sequence(left, right):
            middle = fresh()
            first = unrolled(PathMatch(subject, left, middle), fresh)
            return join(first, unrolled(PathMatch(middle, right, object_), fresh))
        case Alternative(left, right):
            first = unrolled(PathMatch(subject, left, object_), fresh)
            return Union(first, unrolled(PathMatch(subject, right, object_), fresh))
        case NegatedSet(forward, inverse) if inverse:
            back = unrolled(PathMatch(object_, NegatedSet(inverse, ()), subject), fresh)
            there = PathMatch(subject, NegatedSet(forward, ()), object_)
            return Union(unrolled(there, fresh), back) if forward else back
        case NegatedSet(forward, _):
            predicate = fresh()
            steps = Bgp((TriplePattern(subject, predicate, object_),))
            others = Operation("NOT IN", (VariableReference(predicate), *map(Constant, forward)))
            return Distinct(Project(Filter(steps, others), visible(match)))
    return match


def complete_path(match: PathMatch, fresh: Callable[[], Variable]) -> Node:
    """The path with the solution that pyoxigraph may miss; the path itself where it misses none."""
    subject, path, object_ = match.subject, match.path, match.object
    ends = (subject, object_)
    if not may_be_empty(path) or all(isinstance(end, Variable) for end in ends):
        return match
    match path:
        case Alternative(left, right):
            branches = (complete_path(PathMatch(subject, p, object_), fresh) for p in (left, right))
            return Union(*branches)
        case Sequence(left, right):
            middle = fresh()
            first = complete_path(PathMatch(subject, left, middle), fresh)
            return join(first, complete_path(PathMatch(middle, right, object_), fresh))
        case Inverse(inner):
            return complete_path(PathMatch(object_, inner, subject), fresh)
    (variable, constant) = ends if isinstance(subject, Variable) else (object_, subject)
    if isinstance(variable, Variable) and isinstance(constant, NamedNode | Literal):
        itself = Values((variable,), ((constant,),))
        return Distinct(Project(Union(match, itself), (variable,)))
    return Unit() if subject == object_ else match
