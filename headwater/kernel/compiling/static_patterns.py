"""The patterns of a merged default graph that only static data matches so far (CS9).

    FROM <city.rdf>  FROM STREAM <gates> [RANGE 10m STEP 5m]      the default graph is the merge of data and window
    { ?gate :registers ?car . ?gate :placedIn ?street . ?district :contains ?street }
                              └──────── city.rdf has these, the stream brought none: one view ────────┘

By definition any triple of a window may match any of these patterns. A pattern that some static triple matches and no
window triple yet is read from the static data alone, as if it stood in a graph of its own. That is exact: the matches
in the windows are none. Every triple that comes is compared with these patterns before a tick can see it. Once one
matches, the pattern is read from both, for good, and the evaluator compiles its plan again.
"""

from __future__ import annotations

import numpy as np
from pyoxigraph import DefaultGraph

from headwater.algebra.nodes import (
    Bgp,
    Distinct,
    ExistsPlan,
    Extend,
    Filter,
    Join,
    LeftJoin,
    Minus,
    Node,
    Project,
    Reduced,
    Union,
    Unit,
    Values,
)
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import expressions_of, nodes_of, sub_expressions
from headwater.execution.static_data import StaticData
from headwater.kernel.columns.ring_index import Ints
from headwater.language.patterns import TriplePattern
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import Literal, NamedNode, Variable
from headwater.terms.stored_forms import to_stored_term

_COMPILED = Bgp | Distinct | Extend | Filter | Join | LeftJoin | Minus | Project | Reduced | Union | Unit | Values
"""Nodes that the kernel evaluates over windows, too: a part of others could not be compiled again."""

_FEW_TRIPLES = 64
"""Up to so many triples, a set of predicates is faster than a comparison of columns."""

_IdPattern = tuple[int | None, int, int | None]
"""The ids of subject, predicate and object; None for a variable."""


class StaticPatterns:
    """Says which patterns of the default graph of a plan are static, and notices when one no longer is.

    An evaluator keeps it from one compilation of its plan to the next.
    """

    def __init__(self, plan: QueryPlan, static: StaticData) -> None:
        self._graphs = [DefaultGraph()] if plan.default_graphs is None else list(plan.default_graphs)
        self._static = static
        self._is_static: dict[_IdPattern, bool] = {}
        """Each pattern is decided once, so that a change of the data does not change how a plan is compiled."""
        self._static_patterns: dict[int, set[_IdPattern]] = {}
        """The static patterns by predicate."""

    def is_static(self, part: Node) -> bool:
        """Whether all patterns of a part that is matched in the default graph are static."""
        for node in nodes_of(part):
            parts = (one for expression in expressions_of(node) for one in sub_expressions(expression))
            if not isinstance(node, _COMPILED) or any(isinstance(one, ExistsPlan) for one in parts):
                return False
        triples = [triple for node in nodes_of(part) if isinstance(node, Bgp) for triple in node.triples]
        return all(map(self._is_static_pattern, triples))

    def _is_static_pattern(self, triple: TriplePattern) -> bool:
        terms: list[int | None] = []
        for term in (triple.subject, triple.predicate, triple.object):
            if isinstance(term, NamedNode | Literal):
                terms.append(encode(term))
            elif isinstance(term, Variable):
                terms.append(None)
            else:
                return False
        subject, predicate, object_ = terms
        if predicate is None:
            return False
        pattern = subject, predicate, object_
        if pattern not in self._is_static:
            self._is_static[pattern] = self.has_static_match(triple)
            if self._is_static[pattern]:
                self._static_patterns.setdefault(predicate, set()).add(pattern)
        return self._is_static[pattern]

    def has_static_match(self, triple: TriplePattern) -> bool:
        """Whether the static default graph may have a triple that matches."""
        subject, predicate, object_ = (
            None if isinstance(part, Variable) else part for part in (triple.subject, triple.predicate, triple.object)
        )
        if isinstance(subject, Literal) or isinstance(predicate, Literal):
            return False
        value = to_stored_term(object_) if isinstance(object_, Literal) else object_
        found = (self._static.quads_for_pattern(subject, predicate, value, graph) for graph in self._graphs)
        return any(next(quads, None) is not None for quads in found)

    def observe(self, triples: Ints) -> bool:
        """Take note of triples that come into windows; whether some pattern is no longer static."""
        if not self._static_patterns:
            return False
        predicates = triples[:, 1]
        if triples.shape[0] <= _FEW_TRIPLES:
            known = self._static_patterns.keys() & set(predicates.tolist())
        else:
            known = {one for one in self._static_patterns if (predicates == one).any()}
        matched = [one for predicate in known for one in self._static_patterns[predicate] if _matches(one, triples)]
        for pattern in matched:
            self._static_patterns[pattern[1]].remove(pattern)
            self._is_static[pattern] = False
        return bool(matched)


def _matches(pattern: _IdPattern, triples: Ints) -> bool:
    """Whether one of the triples has the constants of a pattern."""
    is_match = np.ones(triples.shape[0], dtype=np.bool_)
    for place, term_id in enumerate(pattern):
        if term_id is not None:
            is_match &= triples[:, place] == term_id
    return bool(is_match.any())
