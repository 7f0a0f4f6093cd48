"""Property paths that may be empty, such as `:p*`, between a variable and a term (SPARQL 1.1, section 18.4).

An empty path leads from a term to itself even when the term stands nowhere in the graph. pyoxigraph starts from the
terms of the graph, so the one solution that it may miss is added; these paths are sets, so nothing is counted twice.

    ?s :p* :o    →    { SELECT DISTINCT ?s { { ?s :p* :o } UNION { VALUES ?s { :o } } } }
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.algebra.nodes import Distinct, Node, PathMatch, Project, Union, Unit, Values
from headwater.algebra.translate import join
from headwater.language.patterns import Alternative, Inverse, OneOrMore, Path, Sequence, ZeroOrMore, ZeroOrOne
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
