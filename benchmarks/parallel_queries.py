"""Many queries at once: `python -m benchmarks.parallel_queries [--quick] [--in-process] [--plots FOLDER]`.

Experiment 3 of the CQELS paper: the queries Q1, Q3 and Q4 of the conference scenario in 1 to 1024 instances, each with
another author's name. An evaluation is one element until every instance has been evaluated. The paper's figure 5 has
about one second at a thousand instances. Measured in one pipeline on Spark (`parallel_pipeline`) and in one program
without it (here), where the same run compares with an evaluator for each query, as far as that goes, and checks that
both say the same.

Prints one JSON object last. Of the pipeline: `mean_s` by number of queries, for the worst of the three, `mean_s_of` by
query, `batch_s` with reading, state and delivery, and `kb_per_query`. Of the program: `in_process_mean_s` and
`in_process_kb_per_query`, with `…_of` by query, `separate_mean_s` and `speedup`. `--in-process` leaves Spark out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from benchmarks.kernel_conference import APART, STREAM, Conference, conference
from benchmarks.parallel_instances import FULL, INSTANTIATED, PAPER, QUICK, Sizes, instances, points, resident, worst
from benchmarks.reporting import (
    PLOTS,
    Figure,
    Findings,
    Points,
    demand,
    draw,
    machine,
    print_result,
    progress,
    rounded,
    seconds,
)
from headwater.execution.answers import Answer
from headwater.execution.program import Program
from headwater.execution.query_evaluators import no_families
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.evaluator_choice import make_evaluator, with_optimisation
from headwater.kernel.families.family_evaluator import FamilyEvaluator, find_families
from headwater.terms.model import Element
from headwater.windows.model import TimeWindow


def measure(sizes: Sizes) -> Findings:
    scene = conference(sizes.static_triples)
    findings = Findings({"static_triples": len(scene.store)})
    shared: dict[str, dict[str, float]] = {}
    separate: dict[str, dict[str, float]] = {}
    speedup: dict[str, float] = {}
    kilobytes: dict[str, float] = {}
    for name in INSTANTIATED:
        shared[name], separate[name] = {}, {}
        for count in sizes.instances:
            taken = _evaluations(scene, name, count, sizes.elements)
            shared[name][str(count)] = rounded(taken)
            progress(f"{name}: {count} queries as one, {taken * 1e3:.3f} ms per element")
        for count in sizes.separate:
            taken, together = _in_turns(scene, name, count, sizes.elements)
            separate[name][str(count)], speedup[name] = rounded(taken), rounded(taken / together)
            progress(f"{name}: {count} queries one by one, {taken * 1e3:.3f} ms per element, {speedup[name]} times")
        kilobytes[name] = rounded(_in_a_new_process(name, sizes))
        progress(f"{name}: {kilobytes[name]} kB per query")
    findings.values |= {
        "in_process_mean_s": worst(shared),
        "in_process_mean_s_of": shared,
        "separate_mean_s": worst(separate),
        "separate_mean_s_of": separate,
        "speedup": speedup,
        "in_process_kb_per_query": max(kilobytes.values()),
        "in_process_kb_per_query_of": kilobytes,
    }
    lines: dict[str, Points] = {name: points(shared[name]) for name in INSTANTIATED}
    lines |= {f"{name}, one evaluator each": points(separate[name]) for name in INSTANTIATED}
    lines["the paper, at the most"] = [PAPER]
    findings.figures.append(
        Figure("parallel-queries", "Queries that differ in a name", "queries", "seconds per evaluation", lines)
    )
    return findings


def _program(scene: Conference, queries: Sequence[RegisteredQuery], *, is_shared: bool) -> Program:
    families = find_families if is_shared else no_families
    return Program(queries, scene.store, 0, with_optimisation(make_evaluator), families=families, is_durable=False)


def _evaluations(scene: Conference, name: str, count: int, elements: int) -> float:
    """The mean seconds of an element once the windows are full."""
    queries = list(instances(name, count))
    running = _program(scene, queries, is_shared=True)
    if count > 1 and len(set(running.evaluators.values())) != 1:
        raise AssertionError("these queries should be one family")
    stream = _stream(scene, queries, elements)
    _fill(running, islice(stream, _warm_up(queries)))
    return seconds(lambda: _fill(running, stream)) / elements


def _in_turns(scene: Conference, name: str, count: int, elements: int) -> tuple[float, float]:
    """The mean seconds of an element with an evaluator for each query, and with one for all, which say the same."""
    queries = list(instances(name, count))
    programs = [_program(scene, queries, is_shared=is_shared) for is_shared in (False, True)]
    taken = [0.0, 0.0]
    for number, element in enumerate(_stream(scene, queries, elements)):
        said: list[list[Answer]] = []
        for place, running in enumerate(programs):
            begun = time.perf_counter()
            said.append(list(running.advance({STREAM: [element]}).answers))
            taken[place] += (time.perf_counter() - begun) * (number >= _warm_up(queries))
        if said[0] != said[1]:
            raise AssertionError(f"{name}: the answers of the family are not those of the queries alone")
    return taken[0] / elements, taken[1] / elements


def _warm_up(queries: Sequence[RegisteredQuery]) -> int:
    """How many elements fill the longest window, and some more."""
    widths = [window.width or 0 for window in queries[0].settings.windows if isinstance(window, TimeWindow)]
    return 100 + max(widths) // APART


def _stream(scene: Conference, queries: Sequence[RegisteredQuery], elements: int) -> Iterator[Element]:
    return scene.elements(_warm_up(queries) + elements)


def _in_a_new_process(name: str, sizes: Sizes) -> float:
    """What `_kilobytes` finds where no other measurement has left memory that could be used again."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_kilobytes, name, sizes).result()


def _kilobytes(name: str, sizes: Sizes) -> float:
    """How much the process grows per query, from two to many; texts, plans and windows included."""
    scene = conference(sizes.static_triples)
    few = list(instances(name, 2))
    small = _program(scene, few, is_shared=True)
    _fill(small, _stream(scene, few, sizes.elements))
    count = max(sizes.instances)
    before = resident()
    queries = list(instances(name, count))
    large = _program(scene, queries, is_shared=True)
    _fill(large, _stream(scene, queries, sizes.elements))
    grown = resident() - before
    if not isinstance(next(iter(large.evaluators.values())), FamilyEvaluator):
        raise AssertionError("these queries should be one family")
    return grown / count


def _fill(running: Program, elements: Iterable[Element]) -> None:
    for element in elements:
        running.advance({STREAM: [element]})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parallel_queries", description="Many queries at once.")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, less static data")
    parser.add_argument("--in-process", action="store_true", help="without a pipeline on Spark")
    parser.add_argument("--plots", type=Path, help=f"where the figure goes; of the full form: {PLOTS.name} in docs")
    arguments = parser.parse_args()
    demand("matplotlib")
    facts = machine()
    sizes = QUICK if arguments.quick else FULL
    findings = measure(sizes)
    if not arguments.in_process:
        from benchmarks.parallel_pipeline import measure_in_pipeline

        found = measure_in_pipeline(sizes)
        findings.values = {**found.values, **findings.values}
        findings.figures += found.figures
    folder = arguments.plots or (None if arguments.quick else PLOTS)
    if folder is not None:
        draw(findings.figures, folder)
    print_result({**findings.values, "quick": arguments.quick, "machine": facts})


if __name__ == "__main__":
    main()
