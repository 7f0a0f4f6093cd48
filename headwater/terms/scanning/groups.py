"""From lines to elements, compiled: consecutive lines with one time and graph name are one element.

The same rule as in `headwater.terms.tnq`: an element belongs to the range in which it begins, a broken line does not
end the element around it, and the lines before the first new key of a range belong to the range before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.scanning.lines import BAD_LINE


class ElementGroups(NamedTuple):
    """One row per element, as arrays that compiled code fills."""

    times: Any
    graphs: Any
    positions: Any
    """The offset of the element's first line."""
    first_rows: Any
    sizes: Any
    """How many triples the element has, wanted or not."""
    graph_spans: Any

    @classmethod
    def empty(cls, count: int) -> ElementGroups:
        return cls(
            times=np.empty(count, dtype=np.int64),
            graphs=np.empty(count, dtype=np.int64),
            positions=np.empty(count, dtype=np.int64),
            first_rows=np.empty(count, dtype=np.int64),
            sizes=np.empty(count, dtype=np.int64),
            graph_spans=np.zeros((count, 2), dtype=np.int32),
        )


@compiled(nogil=True)
def group_lines(rows, count, end, has_key, key_time, key_graph, key_check, breaks, groups):  # type: ignore[no-untyped-def]
    """Group scanned lines of equal time and graph into elements (`groups`), and keep the lines that a pattern matches.

    `rows` has the columns of `count` lines; those kept move to the front. No element goes on across one of the offsets
    in `breaks`, which ascend. Gives how many lines are kept, how many
    elements there are, and whether the text behind these lines may continue the last element.
    """
    # Taken out of their tuples once: each time they are, references are counted.
    times, graphs, positions, triples, spans, graph_spans, marks, checks, graph_checks = rows
    group_times, group_graphs, group_positions, first_rows, sizes, group_graph_spans = groups
    has_spans = spans.shape[0] > 0
    has_checks = checks.shape[0] > 0
    kept = 0
    elements = 0
    owned = False
    passed = 0
    for row in range(count):
        mark = marks[row]
        if mark == BAD_LINE:
            continue
        time = times[row]
        graph = graphs[row]
        position = positions[row]
        while passed < breaks.shape[0] and breaks[passed] <= position:
            passed += 1
            has_key = False
        if has_key and time == key_time and graph == key_graph and graph_checks[row] == key_check:
            if not owned:
                continue
        else:
            if position >= end:
                return kept, elements, False
            has_key, owned = True, True
            key_time, key_graph, key_check = time, graph, graph_checks[row]
            group_times[elements] = time
            group_graphs[elements] = graph
            group_positions[elements] = position
            first_rows[elements] = kept
            sizes[elements] = 0
            if has_spans:
                group_graph_spans[elements, 0] = graph_spans[row, 0]
                group_graph_spans[elements, 1] = graph_spans[row, 1]
            elements += 1
        sizes[elements - 1] += 1
        if mark:
            if kept != row:
                marks[kept] = mark
                for place in range(3):
                    triples[kept, place] = triples[row, place]
                    if has_checks:
                        checks[kept, place] = checks[row, place]
                    if has_spans:
                        spans[kept, place, 0] = spans[row, place, 0]
                        spans[kept, place, 1] = spans[row, place, 1]
            kept += 1
    return kept, elements, owned
