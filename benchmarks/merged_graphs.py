"""C-SPARQL's own form with large static data: `python -m benchmarks.merged_graphs [--triples N] [--rounds N]`.

The same query is asked in two forms over one data set. In C-SPARQL's own form (`own`) the default graph is the merge of
`FROM <data>` and the windows of `FROM STREAM`, so that by definition any pattern may match both. In the other form
(`graph`) the static patterns stand in `GRAPH <data>`. Each round gives each form a copy of the data without views, and
both have to give the same answers. Prints one JSON object last, with medians over the rounds, in milliseconds:

- `first_answer_ms`: from the plan to the first answer, with views that are found and indexed
- `tick_after_first_change_ms`: a statement is added, followed, and a tick answered; views have deltas from then on
- `tick_after_change_ms`: the same for a later change
- `own_vs_graph`: how many times as long the own form takes, for each of these
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyoxigraph import NamedNode, Quad

from benchmarks.reporting import machine, print_result, progress, rounded
from headwater.algebra.build import plan_query
from headwater.datasets.dataset import DataSet
from headwater.datasets.linked_data import LinkedData
from headwater.execution.answers import Answer
from headwater.execution.evaluator import Evaluator
from headwater.kernel.evaluator_choice import make_evaluator, with_optimisation
from headwater.language.parser import parse
from headwater.terms.model import SECOND, Element, Triple
from headwater.windows.settings import resolve_settings

EX = "http://ex/"
DATA = NamedNode(EX + "city")
_HEAD = f"PREFIX : <{EX}> SELECT ?district ?car"
_STREAM = "FROM STREAM :gates [RANGE 10s STEP 1s]"
_STATIC = "?gate :placedIn ?street . ?district :contains ?street"
FORMS = {
    "own": f"{_HEAD} FROM :city {_STREAM} WHERE {{ ?gate :registers ?car . {_STATIC} }}",
    "graph": f"{_HEAD} FROM NAMED :city {_STREAM} WHERE {{ ?gate :registers ?car . GRAPH :city {{ {_STATIC} }} }}",
}
MEASURES = ("first_answer_ms", "tick_after_first_change_ms", "tick_after_change_ms")
_CHANGES = 4


def node(name: str) -> NamedNode:
    return NamedNode(EX + name)


def load_city(triples: int, folder: Path) -> Path:
    """Load gates in streets in districts, half of the triples each, into a data set."""
    file, into = folder / "city.nq", folder / "city"
    with file.open("w") as stream:
        for number in range(triples // 2):
            stream.write(f"<{EX}gate{number}> <{EX}placedIn> <{EX}street{number // 2}> {DATA} .\n")
            stream.write(f"<{EX}district{number % 1000}> <{EX}contains> <{EX}street{number}> {DATA} .\n")
    command = [sys.executable, "-m", "headwater", "load", str(file), "--into", str(into)]
    subprocess.run(command, check=True, stdout=sys.stderr)
    file.unlink()
    return into


def passages(second: int, gates: int) -> list[Element]:
    """Ten passages of the second before an instant."""
    numbers = range(10 * second, 10 * second + 10)
    return [
        Element((n - 9) * SECOND // 10, (Triple(node(f"gate{n * 7919 % gates}"), node("registers"), node(f"car{n}")),))
        for n in numbers
    ]


def answer_tick(evaluator: Evaluator, second: int, gates: int) -> list[Answer]:
    return list(evaluator.advance({evaluator.keys[0]: passages(second, gates)}, second * SECOND + 1))


def measure_form(text: str, city: Path, work: Path, gates: int) -> tuple[tuple[float, ...], list[list[str]]]:
    """The seconds of each of the measures, and the answers."""
    shutil.copytree(city, work)
    try:
        data, writer = LinkedData([DataSet.open(work)]), DataSet.open(work)
        plan = plan_query(parse(text), name="Q")
        begun = time.perf_counter()
        evaluator = with_optimisation(make_evaluator, data.statistics())(plan, resolve_settings(plan), data)
        answers = answer_tick(evaluator, 1, gates)
        taken = [time.perf_counter() - begun]
        for change in range(_CHANGES):
            second = 2 + change
            gate = node(f"gate{10 * second * 7919 % gates}")
            writer.insert([Quad(gate, node("placedIn"), node(f"street{change}"), DATA)])
            begun = time.perf_counter()
            evaluator.prepare_static_change()
            data.move(data.latest())
            evaluator.apply_static_change()
            answers += answer_tick(evaluator, second, gates)
            taken.append(time.perf_counter() - begun)
        first, after_first, *others = taken
        return (first, after_first, statistics.median(others)), [sorted(map(str, one.rows)) for one in answers]
    finally:
        shutil.rmtree(work)


def measure(triples: int, rounds: int, folder: Path) -> dict[str, object]:
    city = load_city(triples, folder)
    taken: dict[str, list[tuple[float, ...]]] = {name: [] for name in FORMS}
    for number in range(rounds + 1):
        found = {name: measure_form(text, city, folder / "work", triples // 2) for name, text in FORMS.items()}
        if found["own"][1] != found["graph"][1] or not all(found["own"][1]):
            raise AssertionError("both forms must give the same answers, and some")
        for name, (times, _) in found.items():
            # The first round compiles code.
            if number:
                taken[name].append(times)
                progress(f"{name}: " + ", ".join(f"{one * 1e3:.1f} ms" for one in times))
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in taken.items()}
    values: dict[str, object] = {
        measure: {name: rounded(times[place] * 1e3) for name, times in medians.items()}
        for place, measure in enumerate(MEASURES)
    }
    ratios = {m: rounded(own / other) for m, own, other in zip(MEASURES, medians["own"], medians["graph"], strict=True)}
    return {"triples": triples, **values, "own_vs_graph": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.merged_graphs", description="C-SPARQL's own form.")
    parser.add_argument("--triples", type=int, default=1_000_000, help="how many static triples")
    parser.add_argument("--rounds", type=int, default=5, help="how often each form is measured")
    arguments = parser.parse_args()
    facts = machine()
    folder = Path(tempfile.mkdtemp(prefix="headwater-merged-graphs-"))
    try:
        values = measure(arguments.triples, arguments.rounds, folder)
    finally:
        shutil.rmtree(folder)
    print_result({**values, "machine": facts})


if __name__ == "__main__":
    main()
