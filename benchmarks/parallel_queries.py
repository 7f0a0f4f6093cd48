"""Many queries at once: `python -m benchmarks.parallel_queries [--quick] [--spark] [--plots FOLDER]`.

Experiment 3 of the CQELS paper: the queries Q1, Q3 and Q4 of the conference scenario in 1, 2, 4 … 1024 instances, each
with another author's name, in one program. An evaluation is one element until every instance has been evaluated. The
paper's figure 5 has about one second at a thousand instances. The same run compares with an evaluator for each query,
as far as that goes, and checks that both say the same. Memory is how much the
process grows from two queries to the most.

Prints one JSON object last: `mean_s` and `kb_per_query` are those of the worst of the three queries, `mean_s_of` and
`kb_per_query_of` tell them apart. With `--spark` the most instances also run in one pipeline.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from benchmarks.kernel_conference import APART, QUERIES, STREAM, Conference, conference
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
from headwater.algebra import plan_query
from headwater.kernel.choice import fastest_evaluator
from headwater.kernel.families import FamilyEvaluator, families_of
from headwater.language import parse
from headwater.reference import Answer, Program, Registered
from headwater.reference.program import no_families
from headwater.terms.model import MILLISECOND, Element
from headwater.windows import TimeWindow, settle

INSTANTIATED = ("Q1", "Q3", "Q4")
_PAPER = (1024.0, 1.0)
"""What figure 5 of the paper shows for CQELS at the right end, in seconds."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many queries, and how many elements are measured once the windows are full."""

    instances: tuple[int, ...] = tuple(1 << m for m in range(11))
    separate: tuple[int, ...] = (1, 4, 16)
    elements: int = 400
    static_triples: int = 100_000
    spark_elements: int = 6000


FULL = Sizes()
QUICK = Sizes(instances=(1, 32, 1024), separate=(1, 4), elements=150, static_triples=20_000, spark_elements=3000)


def instances(name: str, count: int) -> Iterator[Registered]:
    """So many queries that differ in the author's name."""
    for number in range(count):
        text = QUERIES[name].replace('"Author 0"', f'"Author {number}"')
        plan = plan_query(parse(text), name=f"{name}-{number}")
        yield Registered(plan, settle(plan))


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
        "mean_s": _worst(shared),
        "mean_s_of": shared,
        "separate_mean_s": _worst(separate),
        "separate_mean_s_of": separate,
        "speedup": speedup,
        "kb_per_query": max(kilobytes.values()),
        "kb_per_query_of": kilobytes,
    }
    lines: dict[str, Points] = {name: _points(shared[name]) for name in INSTANTIATED}
    lines |= {f"{name}, one evaluator each": _points(separate[name]) for name in INSTANTIATED}
    lines["the paper, at the most"] = [_PAPER]
    findings.figures.append(
        Figure("parallel-queries", "Queries that differ in a name", "queries", "seconds per evaluation", lines)
    )
    return findings


def _points(by_count: dict[str, float]) -> Points:
    return [(float(count), taken) for count, taken in by_count.items()]


def _worst(by_query: dict[str, dict[str, float]]) -> dict[str, float]:
    counts = next(iter(by_query.values()))
    return {count: max(taken[count] for taken in by_query.values()) for count in counts}


def _program(scene: Conference, queries: Sequence[Registered], *, is_shared: bool) -> Program:
    families = families_of if is_shared else no_families
    return Program(queries, scene.store, 0, fastest_evaluator, families=families, is_durable=False)


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
            said.append(running.advance({STREAM: [element]}).answers)
            taken[place] += (time.perf_counter() - begun) * (number >= _warm_up(queries))
        if said[0] != said[1]:
            raise AssertionError(f"{name}: the answers of the family are not those of the queries alone")
    return taken[0] / elements, taken[1] / elements


def _warm_up(queries: Sequence[Registered]) -> int:
    """How many elements fill the longest window, and some more."""
    widths = [window.width or 0 for window in queries[0].settings.windows if isinstance(window, TimeWindow)]
    return 100 + max(widths) // APART


def _stream(scene: Conference, queries: Sequence[Registered], elements: int) -> Iterator[Element]:
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
    before = _resident()
    queries = list(instances(name, count))
    large = _program(scene, queries, is_shared=True)
    _fill(large, _stream(scene, queries, sizes.elements))
    grown = _resident() - before
    if not isinstance(next(iter(large.evaluators.values())), FamilyEvaluator):
        raise AssertionError("these queries should be one family")
    return grown / count


def _fill(running: Program, elements: Iterable[Element]) -> None:
    for element in elements:
        running.advance({STREAM: [element]})


def _resident() -> float:
    """The resident memory of this process in kilobytes."""
    gc.collect()
    status = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in status if line.startswith("VmRSS:")).split()[1])


def measure_on_spark(sizes: Sizes) -> Findings:
    """The most instances of each query in one pipeline: seconds per evaluation, once it runs steadily."""
    import headwater as hw

    scene = conference(sizes.static_triples)
    count = max(sizes.instances)
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rfid.tnq"
        path.write_text("".join(_line(element) for element in scene.elements(sizes.spark_elements)))
        for name in INSTANTIATED:
            engine = hw.Engine(shards=1, batch_bytes=path.stat().st_size // 6)
            engine.stream(STREAM, hw.files(path))
            engine.dataset(scene.store)
            for query in instances(name, count):
                engine.register(query.plan.text, name=query.plan.name)
            batches: list[tuple[float, int]] = []
            engine.run(on_progress=lambda p: batches.append((time.perf_counter(), p.elements)))  # noqa: B023
            # The first batch makes the evaluators.
            (begun, before), (ended, after) = batches[0], batches[-1]
            found[name] = rounded((ended - begun) / (after - before))
            progress(f"{name}: {count} queries on Spark, {found[name] * 1e3:.3f} ms per element")
    return Findings({"spark_mean_s": {str(count): max(found.values())}, "spark_mean_s_of": found})


def _line(element: Element) -> str:
    return "".join(f"{element.time // MILLISECOND}\t{triple} .\n" for triple in element.triples)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parallel_queries", description="Many queries at once.")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, less static data")
    parser.add_argument("--spark", action="store_true", help="in one pipeline on Spark, too")
    parser.add_argument("--plots", type=Path, help=f"where the figure goes; of the full form: {PLOTS.name} in docs")
    arguments = parser.parse_args()
    demand("matplotlib")
    facts = machine()
    sizes = QUICK if arguments.quick else FULL
    findings = measure(sizes)
    if arguments.spark:
        findings.values |= measure_on_spark(sizes).values
    folder = arguments.plots or (None if arguments.quick else PLOTS)
    if folder is not None:
        draw(findings.figures, folder)
    print_result({**findings.values, "quick": arguments.quick, "machine": facts})


if __name__ == "__main__":
    main()
