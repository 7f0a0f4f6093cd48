"""How fresh linked data is, and what that costs: `python -m benchmarks.freshness [--quick] [--triples N]`.

A bibliography (`benchmarks.dblp`) in a data set on disk, a query that joins who is seen at a conference with all papers
and names, in process. Prints one JSON object last:

- `updates_in_refreshes`: the cost of 10,000 single updates, each written to disk and applied to the view before a tick,
  in full refreshes, for which the data is reloaded and its view found again. `update_ms` and `refresh_ms` are the two,
  with the time that the tick after them takes more than the next one; `update_steps_ms` has the steps of an update
- `ticks_later`: how many ticks after the one under way an update was seen that another thread made while the stream ran
  at full rate; counts of updates by ticks. `by_rows`: the view is maintained statement by statement; `in_background`:
  it is found again. `skipped` counts ticks without an answer, `mixed` answers that mix two versions
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

from pyoxigraph import Literal, NamedNode, Quad

import headwater as hw
from benchmarks.dblp import person
from benchmarks.kernel_conference import APART, STREAM
from benchmarks.linked_data import element_to_line, load_files, make_attendance, write_files
from benchmarks.reporting import machine, print_result, progress, rounded, seconds
from headwater.datasets.dataset import DataSet

_PREFIXES = """PREFIX lv: <http://deri.org/floorplan/> PREFIX dc: <http://purl.org/dc/elements/1.1/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/> PREFIX : <http://example.org/> """
_STREAM = f"STREAM <{STREAM}> [RANGE 200ms SLIDE 10ms] {{ ?person lv:detectedAt ?room }}"
_PAPERS = f"""{_PREFIXES} SELECT ?name ?title WHERE {{ {_STREAM}
  ?paper dc:creator ?person. ?paper dc:title ?title. ?person foaf:name ?name }}"""
_VERSIONS = {
    "by_rows": f"{_PREFIXES} SELECT ?n WHERE {{ {_STREAM} ?person :by_rows ?n. ?person foaf:name ?name }}",
    "in_background": f"""{_PREFIXES} SELECT ?n WHERE {{ {_STREAM}
      {{ ?person :in_background ?n. ?person foaf:name ?name OPTIONAL {{ ?person foaf:homepage ?page }} }} }}""",
}
_CREATOR = NamedNode("http://purl.org/dc/elements/1.1/creator")
_WATCHED = NamedNode(person(0))
_REFRESHES = 5


def measure_cost(folder: Path, updates: int) -> dict[str, object]:
    """What updates and refreshes cost."""
    engine = hw.Engine(in_process=True)
    engine.dataset(folder)
    engine.stream(STREAM, hw.files("no.tnq"))
    engine.register(_PAPERS, name="papers", emit="rstream")
    program = engine._description().program()
    elements = make_attendance().elements(2 * (updates + _REFRESHES) + 101)
    writer = DataSet.open(folder)
    steps = dict.fromkeys(("write", "follow", "tick"), 0.0)

    def tick() -> float:
        element = next(elements)
        begun = time.perf_counter()
        answers = program.advance({STREAM: [element]}).answers
        assert all(answer.data_version == program.data_version for answer in answers)
        return time.perf_counter() - begun

    def update_view() -> float:
        return seconds(lambda: program.move_static_data((writer.version,)))

    for _ in range(100):
        tick()
    # From the first change on the view is maintained.
    writer.insert([Quad(NamedNode("http://localhost/updates/first"), _CREATOR, _WATCHED)])
    update_view()
    tick()
    for index in range(updates):
        quads = [Quad(NamedNode(f"http://localhost/updates/{index // 2}"), _CREATOR, NamedNode(person(index % 400)))]
        # Every second update removes what the one before added.
        quads = quads if index % 2 == 0 else [Quad(quads[0].subject, _CREATOR, NamedNode(person((index - 1) % 400)))]
        change = writer.insert if index % 2 == 0 else writer.remove
        steps["write"] += seconds(lambda change=change, quads=quads: change(quads))  # type: ignore[misc]
        steps["follow"] += update_view()
        steps["tick"] += tick() - tick()
    update = sum(steps.values()) / updates
    refresh = 0.0
    for _ in range(_REFRESHES):
        writer.compact()
        refresh += (update_view() + tick() - tick()) / _REFRESHES
    progress(f"an update takes {update * 1e3:.3f} ms, a refresh {refresh * 1e3:.1f} ms")
    return {
        "updates": updates,
        "update_ms": rounded(update * 1e3),
        "update_steps_ms": {name: rounded(taken / updates * 1e3) for name, taken in steps.items()},
        "refresh_ms": rounded(refresh * 1e3),
        "updates_in_refreshes": rounded(10_000 * update / refresh),
    }


def measure_lateness(name: str, folder: Path, stream: Path, updates: int) -> dict[str, object]:
    """How many ticks later updates are seen that another thread makes while the stream runs."""
    engine = hw.Engine(in_process=True)
    data = engine.dataset(folder)

    def version_quads(version: int) -> list[Quad]:
        return [Quad(_WATCHED, NamedNode(f"http://example.org/{name}"), Literal(str(version)))]

    first = data.insert(version_quads(data.version + 1))
    engine.stream(STREAM, hw.files(stream))
    engine.register(_VERSIONS[name], name=name, emit="rstream")
    answers: list[tuple[int, int, set[str]]] = []
    made: list[tuple[int, int]] = []

    def write() -> None:
        writer = DataSet.open(folder)
        while len(made) < updates and not engine_done.is_set():
            writer.change(version_quads(writer.version + 1), version_quads(writer.version))
            made.append((writer.version, len(answers)))
            engine_done.wait(0.01)

    def on_answer(answer: hw.Answer) -> None:
        assert answer.data_version is not None
        answers.append((answer.time, answer.data_version[0], {str(row[0].value) for row in answer.rows if row[0]}))  # type: ignore[union-attr]

    engine_done = threading.Event()
    other = threading.Thread(target=write)
    other.start()
    try:
        summary = engine.run(on_answer=on_answer)
    finally:
        engine_done.set()
        other.join()
    versions = [version for _, version, _ in answers]
    later: Counter[int] = Counter()
    for version, before in made:
        seen = next((tick for tick in range(before, len(versions)) if versions[tick] >= version), None)
        if seen is not None:
            # The tick with the index `before` was under way.
            later[seen - before] += 1
    progress(f"{name}: {len(made)} updates in {len(answers)} ticks, {summary.rate:,.0f} elements/s, {dict(later)}")
    instants = [instant for instant, _, _ in answers]
    assert versions[0] >= first
    return {
        "ticks_later": {str(ticks): count for ticks, count in sorted(later.items())},
        "ticks": len(answers),
        "skipped": sum(b - a != APART for a, b in pairwise(instants)),
        "mixed": sum(bool(shown) and shown != {str(version)} for _, version, shown in answers),
        "elements_per_s": rounded(summary.rate),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.freshness", description="How fresh linked data is.")
    parser.add_argument("--quick", action="store_true", help="10^5 triples, fewer updates")
    parser.add_argument("--triples", type=int, default=10_000_000, help="the size of the data set")
    arguments = parser.parse_args()
    triples, updates, ticks = (100_000, 1_000, 3_000) if arguments.quick else (arguments.triples, 10_000, 20_000)
    facts = machine()
    folder = Path(tempfile.mkdtemp(prefix="headwater-freshness-"))
    try:
        files, _, _ = load_files(write_files(triples, folder), folder)
        assert files.dataset is not None
        stream = folder / "rfid.tnq"
        stream.write_text("".join(map(element_to_line, make_attendance().elements(ticks))))
        costs = measure_cost(files.dataset, updates)
        late = {name: measure_lateness(name, files.dataset, stream, updates) for name in _VERSIONS}
    finally:
        shutil.rmtree(folder)
    keys = ("ticks_later", "skipped", "mixed", "ticks", "elements_per_s")
    by_key = {key: {name: one[key] for name, one in late.items()} for key in keys}
    print_result({**costs, **by_key, "triples": triples, "quick": arguments.quick, "machine": facts})


if __name__ == "__main__":
    main()
