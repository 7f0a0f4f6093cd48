"""What a computed condition costs: `python -m benchmarks.expressions [--rows N]`.

Each condition is tested on rows of numbers that were not seen before, by the kernel and by pyoxigraph (all rows in a
few queries), which must agree. Prints one JSON object last:

- `ns_per_row`: by condition and type of the numbers
- `vs_general`: how many times as fast as pyoxigraph
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from benchmarks.reporting import machine, print_result, progress, rounded
from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Filter, Node
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.comparison import TRUE
from headwater.kernel.expressions.compiled_expressions import CompiledExpression
from headwater.kernel.expressions.pyoxigraph_evaluation import PyoxigraphExpression, boolean_value_of
from headwater.language.expressions import Expression
from headwater.language.parser import parse
from headwater.terms.model import XSD, Literal, NamedNode, Row, Variable

Found = TypeVar("Found")

_ROWS = 20_000
_NAMES = ("a", "b")
CONDITIONS = (
    "?a > 200",
    "?a - ?b > 2.5",
    "ABS(?a - ?b) > 2.5",
    "?a / ?b > 1.5",
    "?a * 1.8 + 32 > 100",
    "ROUND(?a) = ROUND(?b)",
)
TYPES = ("integer", "decimal", "float", "double")


def condition_of(text: str) -> Expression:
    node: Node = plan_query(parse(f"SELECT ?a ?b {{ ?s ?a ?b FILTER({text}) }}")).root
    while not isinstance(node, Filter):
        (node,) = node.children
    return node.condition


def numbers(kind: str, rows: int) -> list[Row]:
    """Pairs of readings between 0 and 400, with two digits after the point where the type has some."""
    datatype = NamedNode(XSD + kind)
    drawn = np.random.default_rng(len(kind)).integers(0, 40_000, (rows, 2)).tolist()
    texts = ((str(n) if kind == "integer" else f"{n / 100:.2f}" for n in pair) for pair in drawn)
    return [tuple(Literal(text, datatype=datatype) for text in pair) for pair in texts]


def time_run(run: Callable[[], Found]) -> tuple[float, Found]:
    """The seconds of one run, since the second would know the values, and what it found."""
    begun = time.perf_counter()
    found = run()
    return time.perf_counter() - begun, found


def compare_speeds(condition: Expression, kind: str, rows: int) -> tuple[float, float]:
    """The seconds of the kernel and of pyoxigraph."""
    vocabulary = Vocabulary()
    ids = vocabulary.ids_of_rows(numbers(kind, rows), len(_NAMES))
    compiled = CompiledExpression(condition, _NAMES, vocabulary)
    fallback = PyoxigraphExpression(boolean_value_of(condition), [Variable(name) for name in _NAMES], vocabulary, None)
    ours, held = time_run(partial(compiled.test_rows, ids))
    pyoxigraph, truths = time_run(partial(fallback.compute_truths, list(ids.T), rows))
    assert ((truths == TRUE) == held).all(), "the kernel and pyoxigraph differ"
    return ours, pyoxigraph


def measure(rows: int) -> dict[str, object]:
    spent: dict[str, dict[str, object]] = {}
    against: dict[str, dict[str, object]] = {}
    # What is made once in a process is no cost of a row.
    compare_speeds(condition_of(CONDITIONS[0]), TYPES[0], 10)
    for text in CONDITIONS:
        progress(text)
        for kind in TYPES:
            ours, pyoxigraph = compare_speeds(condition_of(text), kind, rows)
            spent.setdefault(text, {})[kind] = rounded(ours / rows * 1e9)
            against.setdefault(text, {})[kind] = rounded(pyoxigraph / ours)
    return {"ns_per_row": spent, "vs_general": against, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.expressions", description="What a condition costs.")
    parser.add_argument("--rows", type=int, default=_ROWS, help="how many rows each condition is tested on")
    arguments = parser.parse_args()
    print_result({**measure(arguments.rows), "machine": machine()})


if __name__ == "__main__":
    main()
