"""The three-way join against re-evaluation (figure 13a of the paper).

    R(x y) ⋈ S(y z) ⋈ T(z w)      each a window

The paper has slides of one element and 10,000 values to join by, whatever the size of the windows; figure `join3-ticks`
has them, too (`kernel_ticks`). Figure `join3` is our own workload: 1 % of each window is replaced at each slide, and
there are as many values as rows. The reference is the SPARQL query on a pyoxigraph store; the time to update the store
is not counted. All sides must have equally many results.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from pyoxigraph import NamedNode, Quad, QuerySolutions, Store

from benchmarks import kernel_polars
from benchmarks.kernel_feeding import SlidingInput, distinct_pairs
from benchmarks.kernel_sizes import Sizes
from benchmarks.kernel_ticks import Reevaluation, TickingOperator, TickRates, check_ways, rows_for
from benchmarks.reporting import Figure, Findings, Points, in_turns, progress, rounded
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator

_GRAPHS = [NamedNode(f"urn:window:{name}") for name in "RST"]
_QUERY = f"""SELECT ?x ?y ?z ?w {{
  GRAPH {_GRAPHS[0]} {{ ?x <urn:r> ?y }}
  GRAPH {_GRAPHS[1]} {{ ?y <urn:s> ?z }}
  GRAPH {_GRAPHS[2]} {{ ?z <urn:t> ?w }} }}"""
_PREDICATES = [NamedNode(f"urn:{name}") for name in "rst"]
_VARIABLES = (("x", "y"), ("y", "z"), ("z", "w"))
_MOST_RESULTS_IN_POLARS = 30_000_000
_MOST_RESULTS_IN_PYOXIGRAPH = 100_000
_CHECKED_WINDOW = 500
_CHECKED_TICKS = 600


class ThreeWayJoin:
    """The three windows, the join over them, and how many results it has."""

    def __init__(self, window: int, keys: int, slides: int) -> None:
        random = np.random.default_rng(2)
        self.slide_by = max(1, window // 100)
        rows = window + self.slide_by * slides
        self.windows = [SlidingInput(variables, distinct_pairs(random, keys, rows), window) for variables in _VARIABLES]
        self.join = MultiwayJoinOperator(self.windows, ("x", "y", "z", "w"))
        self.results = 0
        self.advance()

    def slide(self) -> None:
        for one in self.windows:
            one.slide(self.slide_by)

    def advance(self) -> None:
        delta = self.join.advance()
        self.results += delta.added.shape[0] - delta.removed.shape[0]

    def reevaluate_in_polars(self) -> None:
        found = kernel_polars.chain_join(*(one.content for one in self.windows)).height
        if found != self.results:
            raise AssertionError(f"polars has {found} results, the kernel {self.results}")


def measure(sizes: Sizes) -> Findings:
    lines: dict[str, Points] = {"kernel": [], "polars, anew": [], "pyoxigraph, anew": []}
    findings = Findings()
    for window in sizes.join_windows:
        progress(f"three-way join: {window} mappings per window")
        kernel, polars = _against_polars(window, window, sizes.join_slides)
        slide, reference = _against_reference(window, sizes.reference_slides)
        findings.values |= {
            "join3_vs_reference": rounded(reference / slide),
            "join3_vs_polars": rounded(polars / kernel),
            "join3_ms_per_slide": {
                "kernel": rounded(kernel * 1e3),
                "polars": rounded(polars * 1e3),
                "reference": rounded(reference * 1e3),
            },
        }
        for name, taken in zip(lines, (kernel, polars, reference), strict=True):
            lines[name].append((window, taken * 1e3))
    window = sizes.join_windows[-1]
    kernel, polars = _against_polars(window, max(1, window // 3), max(5, sizes.join_slides // 3))
    findings.values["join3_with_3_partners_vs_polars"] = rounded(polars / kernel)
    findings.figures.append(
        Figure("join3", "Three-way join, 1 % per slide", "mappings per window", "milliseconds per slide", lines)
    )
    rates = _measure_ticks(sizes)
    findings.values["join3_mappings_per_s"] = rates.values()
    findings.figures.append(rates.figure("join3-ticks", "Three-way join", "mappings per window"))
    return findings


def _measure_ticks(sizes: Sizes) -> TickRates:
    """Windows that slide by one element, by their size."""
    check_ways(lambda: _make_ticking_join(_CHECKED_WINDOW, _CHECKED_WINDOW // 5, _CHECKED_TICKS), _CHECKED_TICKS)
    rates = TickRates()
    keys = sizes.tick_keys
    for window in sizes.tick_windows:
        progress(f"three-way join, one element per slide: {window} mappings per window")
        joined = _make_ticking_join(window, keys, sizes.ticks)
        reevaluations: dict[str, Reevaluation] = {}
        if joined.results <= _MOST_RESULTS_IN_POLARS:
            reevaluations["polars"] = lambda contents: lambda: kernel_polars.chain_join(*contents).height
        if joined.results <= _MOST_RESULTS_IN_PYOXIGRAPH:
            reevaluations["pyoxigraph"] = lambda contents: partial(_count_in_store, _make_store(contents))
        rates.add(window, joined, sizes.ticks, 2 * (window / keys) ** 2, reevaluations)
        expected = _count_results([one.content for one in joined.windows])
        if joined.results != expected:
            raise AssertionError(f"the kernel has {joined.results} results of {expected}")
    return rates


def _make_ticking_join(window: int, keys: int, ticks: int) -> TickingOperator:
    """The join over full windows. It has too many results to make them all, so its state is set to that after them."""
    random = np.random.default_rng(2)
    count = rows_for(window, len(_VARIABLES), ticks)
    windows = [SlidingInput(variables, distinct_pairs(random, keys, count), window) for variables in _VARIABLES]
    join = MultiwayJoinOperator(windows, ("x", "y", "z", "w"))
    for relation, one in zip(join._relations, windows, strict=True):
        relation.add(one.content)
    join.result_count, join._few_results = _count_results([one.content for one in windows]), None
    return TickingOperator(join, windows, join.result_count)


def _count_results(contents: Sequence[Ints]) -> int:
    """How many results the join of three windows has: for each row of the second, its partners on both sides."""
    first, second, third = contents
    return int((_count_partners(second[:, 0], first[:, 1]) * _count_partners(second[:, 1], third[:, 0])).sum())


def _count_partners(values: Ints, others: Ints) -> Ints:
    """How often each of some values is among others."""
    others = np.sort(others)
    return others.searchsorted(values, side="right") - others.searchsorted(values, side="left")


def _make_store(contents: Sequence[Ints]) -> Store:
    store = Store()
    for number, content in enumerate(contents):
        store.bulk_extend(_quads(content, number))
    return store


def _count_in_store(store: Store) -> int:
    solutions = store.query(_QUERY)
    assert isinstance(solutions, QuerySolutions)
    return sum(1 for _ in solutions)


def _against_polars(window: int, keys: int, slides: int) -> tuple[float, float]:
    """Seconds per slide of the kernel and of polars."""
    warm_up = 5
    joined = ThreeWayJoin(window, keys, slides + warm_up)
    runs = {"kernel": joined.advance, "polars": joined.reevaluate_in_polars}
    in_turns(runs, warm_up, joined.slide)
    times = in_turns(runs, slides, joined.slide)
    return times["kernel"], times["polars"]


def _against_reference(window: int, slides: int) -> tuple[float, float]:
    """Seconds per slide of the kernel and of pyoxigraph."""
    warm_up = 5
    joined = ThreeWayJoin(window, window, slides + warm_up)
    for _ in range(warm_up):
        joined.slide()
        joined.advance()
    store = _make_store([one.content for one in joined.windows])

    def reevaluate() -> None:
        found = _count_in_store(store)
        if found != joined.results:
            raise AssertionError(f"pyoxigraph has {found} results, the kernel {joined.results}")

    def slide() -> None:
        joined.slide()
        for number, one in enumerate(joined.windows):
            for quad in _quads(one.delta.removed, number):
                store.remove(quad)
            store.extend(_quads(one.delta.added, number))

    times = in_turns({"kernel": joined.advance, "reference": reevaluate}, slides, slide)
    return times["kernel"], times["reference"]


def _quads(rows: Ints, number: int) -> list[Quad]:
    term = NamedNode
    return [
        Quad(term(f"urn:k:{s}"), _PREDICATES[number], term(f"urn:k:{o}"), _GRAPHS[number]) for s, o in rows.tolist()
    ]
