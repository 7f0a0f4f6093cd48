"""What the names of graphs add to the triples of elements, for queries that read names.

:g1 { :s :p 1 }  at 12:00      →      (:s :p 1) in :g1      (:g1 prov:generatedAtTime "…T12:00:00Z") in no graph
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headwater.algebra.plan import QueryPlan
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.element_columns import ElementColumns
from headwater.terms.model import XSD, Literal, NamedNode
from headwater.terms.timed_graphs import GENERATED_AT_TIME
from headwater.terms.timestamps import format_time

_DATE_TIME = NamedNode(XSD + "dateTime")


@dataclass(frozen=True)
class GraphRows:
    """Adds to triples the names of their graphs as a column, and the statements that give the times of graphs."""

    vocabulary: Vocabulary
    has_names: bool
    has_times: bool

    @classmethod
    def of(cls, plan: QueryPlan, vocabulary: Vocabulary) -> GraphRows | None:
        """What a plan needs; None where it reads no names."""
        has_names, has_times = plan.reads_window_graphs, plan.reads_graph_times
        return cls(vocabulary, has_names, has_times) if has_names or has_times else None

    def add_to(self, elements: ElementColumns) -> ElementColumns:
        """The elements with what the plan needs of the names of their graphs."""
        # Terms were compared when they were admitted; the checks would not fit to the rows that are added here.
        elements = replace(elements, checks=None)
        graphs = elements.graphs
        if not graphs.shape[0]:
            graphs = np.full(len(elements), UNBOUND, dtype=np.int64)
        names = np.repeat(graphs, np.diff(elements.starts))
        if self.has_times:
            elements, names = self._with_times(elements, graphs, names)
        return replace(elements, triples=np.column_stack((elements.triples, names))) if self.has_names else elements

    def _with_times(self, elements: ElementColumns, graphs: Ints, names: Ints) -> tuple[ElementColumns, Ints]:
        """The elements, each with its time as the last triple unless it says that itself; and the names of triples."""
        property_id = self.vocabulary.id_of(GENERATED_AT_TIME)
        triples, starts = elements.triples, elements.starts
        is_own_time = (triples[:, 1] == property_id) & (triples[:, 0] == names)
        lacks_time = graphs != UNBOUND
        lacks_time[np.repeat(np.arange(len(elements)), np.diff(starts))[is_own_time]] = False
        places = np.flatnonzero(lacks_time)
        if not places.shape[0]:
            return elements, names
        times = [self._time_id(time) for time in elements.times[places].tolist()]
        rows = np.column_stack((graphs[places], np.full(len(times), property_id), times))
        ends = starts[places + 1]
        shifted = starts + np.append(0, np.cumsum(lacks_time))
        extended = replace(elements, triples=np.insert(triples, ends, rows, axis=0), starts=shifted)
        return extended, np.insert(names, ends, UNBOUND)

    def _time_id(self, time: int) -> int:
        return self.vocabulary.id_of(Literal(format_time(time), datatype=_DATE_TIME))
