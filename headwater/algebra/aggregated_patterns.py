"""Triple patterns whose copies an aggregate would count: AVG, SUM, COUNT, GROUP_CONCAT and own ones without DISTINCT.

    SELECT (AVG(?v) AS ?mean) { ?sensor a :Thermometer ; :value ?v }         ?sensor :value ?v

Where equal triples collapse to one, such an aggregate has fewer values than came. Of the patterns that bind what is
aggregated (for COUNT(*): of all) those are meant that have a variable of their own: a class or a unit that comes again
with every reading is counted by nobody. The steps of a path are patterns, too. Below DISTINCT and groups, and inside
MINUS and EXISTS, copies count for nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from headwater.algebra.nodes import Aggregation, Bgp, Distinct, Extend, Group, Minus, Node, PathMatch, Reduced, Service
from headwater.algebra.scope import expression_variables, nodes_of
from headwater.algebra.unrolled_paths import unroll_for_readers
from headwater.language.expressions import Aggregate
from headwater.language.patterns import TriplePattern
from headwater.terms.model import Variable
from headwater.terms.own_functions import own_aggregate

_COUNTING = frozenset({"COUNT", "SUM", "AVG", "GROUP_CONCAT", "PARTIAL_SUM"})


def aggregated_patterns(root: Node) -> frozenset[TriplePattern]:
    """The patterns of a plan whose copies some aggregate would count."""
    return frozenset(
        pattern
        for node in nodes_of(root)
        if isinstance(node, Group | Aggregation)
        for aggregate in _aggregates_of(node)
        if (aggregate.function in _COUNTING or own_aggregate(aggregate.function)) and not aggregate.distinct
        for pattern in patterns_behind(
            node.inner, None if aggregate.argument is None else expression_variables(aggregate.argument)
        )
    )


def _aggregates_of(node: Group | Aggregation) -> Iterator[Aggregate]:
    if isinstance(node, Group):
        yield from (aggregate for _, aggregate in node.aggregates)
    else:
        yield from (aggregate for _, aggregate, _ in node.clauses)


def patterns_behind(node: Node, variables: Iterable[Variable] | None) -> list[TriplePattern]:
    """The patterns whose copies give more solutions of a node, with these variables; with None, with any."""
    nodes = list(_multiplying_nodes(node))
    patterns = [triple for one in nodes if isinstance(one, Bgp) for triple in one.triples]
    if variables is not None:
        wanted = set(variables)
        for one in nodes:
            # Parents come first: what a BIND computes from is wanted, too.
            if isinstance(one, Extend) and one.variable in wanted:
                wanted |= expression_variables(one.expression)
        bound_by = [triple for triple in patterns if variables_of(triple) & wanted]
    else:
        bound_by = patterns
    uses = Counter(variable for triple in patterns for variable in variables_of(triple))
    return [triple for triple in bound_by if any(uses[one] == 1 for one in variables_of(triple))] or bound_by


def _multiplying_nodes(node: Node) -> Iterator[Node]:
    """The nodes below one, parents first, of which a solution more is a solution more of that one."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        match one:
            case Distinct() | Reduced() | Group() | Service():
                continue
            case Minus(left, _):
                waiting.append(left)
            case PathMatch():
                unrolled = unroll_for_readers(one)
                waiting.extend([] if unrolled == one else [unrolled])
            case _:
                waiting.extend(reversed(one.children))


def variables_of(triple: TriplePattern) -> frozenset[Variable]:
    """The variables of a triple pattern."""
    terms = (triple.subject, triple.predicate, triple.object)
    return frozenset(term for term in terms if isinstance(term, Variable))
