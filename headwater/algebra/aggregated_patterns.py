"""Triple patterns whose copies an aggregate would count: AVG, SUM, COUNT, GROUP_CONCAT and own ones without DISTINCT.

    SELECT (AVG(?v) AS ?mean) { ?sensor a :Thermometer ; :value ?v }         ?sensor :value ?v

Where equal triples collapse to one, such an aggregate has fewer values than came. Of the patterns that bind what is
aggregated (for COUNT(*): of all) those are meant that have a variable of their own: a class or a unit that comes again
with every reading is counted by nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from headwater.algebra.nodes import Aggregation, Bgp, Extend, Group, Node
from headwater.algebra.scope import expression_variables, nodes_of
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
        for pattern in _patterns_behind(aggregate, node.inner)
    )


def _aggregates_of(node: Group | Aggregation) -> Iterator[Aggregate]:
    if isinstance(node, Group):
        yield from (aggregate for _, aggregate in node.aggregates)
    else:
        yield from (aggregate for _, aggregate, _ in node.clauses)


def _patterns_behind(aggregate: Aggregate, inner: Node) -> list[TriplePattern]:
    """The patterns that give an aggregate its values."""
    patterns = [triple for node in nodes_of(inner) if isinstance(node, Bgp) for triple in node.triples]
    if aggregate.argument is not None:
        wanted = set(expression_variables(aggregate.argument))
        for node in nodes_of(inner):
            # Parents come first: what a BIND computes from is wanted, too.
            if isinstance(node, Extend) and node.variable in wanted:
                wanted |= expression_variables(node.expression)
        bound_by = [triple for triple in patterns if variables_of(triple) & wanted]
    else:
        bound_by = patterns
    uses = Counter(variable for triple in patterns for variable in variables_of(triple))
    return [triple for triple in bound_by if any(uses[one] == 1 for one in variables_of(triple))] or bound_by


def variables_of(triple: TriplePattern) -> frozenset[Variable]:
    """The variables of a triple pattern."""
    terms = (triple.subject, triple.predicate, triple.object)
    return frozenset(term for term in terms if isinstance(term, Variable))
