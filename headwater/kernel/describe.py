"""DESCRIBE: all triples whose subject is a described resource, in the default graph and the windows (see
`reference.description`), blank nodes followed.

The described resources are the rows of an incremental result. Their triples are looked up at each answer, in the
windows as they are and in the static data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from pyoxigraph import DefaultGraph

from headwater.algebra.plan import QueryPlan
from headwater.execution.static_data import StaticData
from headwater.kernel.columns.delta import no_rows
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.model import BlankNode, NamedNode, Term, Triple, Variable
from headwater.terms.stored_forms import restore_triple


class ResourceDescriber:
    """Describes the resources of a query's solutions, whose columns are the plan's variables."""

    def __init__(self, plan: QueryPlan, static: StaticData, vocabulary: Vocabulary) -> None:
        self._written = [term for term in plan.described if isinstance(term, NamedNode)]
        self._columns = [plan.variables.index(term) for term in plan.described if isinstance(term, Variable)]
        self._graphs = plan.default_graphs or (DefaultGraph(),)
        self._static = static
        self._vocabulary = vocabulary

    def triples(self, rows: Ints, windows: Sequence[Ints]) -> list[Triple]:
        """The triples of the resources in some rows, in the order of their texts, given what each window shows."""
        waiting: list[Term | None] = list(self._written)
        waiting += map(self._vocabulary.term_of, np.unique(rows[:, self._columns]).tolist())
        if not waiting:
            return []
        shown = np.concatenate([no_rows(3), *windows])
        shown = shown[np.argsort(shown[:, 0], kind="stable")]
        seen: set[Term] = set()
        triples: set[Triple] = set()
        while waiting:
            resource = waiting.pop()
            if not isinstance(resource, NamedNode | BlankNode) or resource in seen:
                continue
            seen.add(resource)
            for triple in (*self._in_windows(resource, shown), *self._in_static_data(resource)):
                triples.add(triple)
                if isinstance(triple.object, BlankNode):
                    waiting.append(triple.object)
        return sorted(triples, key=str)

    def _in_windows(self, resource: NamedNode | BlankNode, shown: Ints) -> Iterable[Triple]:
        number = self._vocabulary.id_of(resource)
        low, high = np.searchsorted(shown[:, 0], [number, number + 1])
        for subject, predicate, object_ in self._vocabulary.terms_of_rows(shown[low:high]):
            assert isinstance(subject, NamedNode | BlankNode) and isinstance(predicate, NamedNode)
            assert object_ is not None
            yield Triple(subject, predicate, object_)

    def _in_static_data(self, resource: NamedNode | BlankNode) -> Iterable[Triple]:
        for graph in self._graphs:
            for quad in self._static.quads_for_pattern(resource, None, None, graph):
                yield restore_triple(quad.triple)
