"""`python -m headwater.kernel.precompile`: has numba compile the kernel and the scanner once, into its cache on disk.

A process that finds the cache starts answering at once; one that does not waits some seconds for the compiler. With
`--kernel-only` the scanner is left out: a run that finds nothing compiled begins such a process, and compiles the
scanner itself meanwhile (`running.compiling_process`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.kernel import columns
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.compiled_code import code_folder
from headwater.terms.durable_files import lock_file
from headwater.terms.model import SECOND, Element, Literal, NamedNode, Triple
from headwater.terms.scanning import precompile_scanner as scanner
from headwater.windows.settings import Options, resolve_settings

KERNEL_ONLY = "--kernel-only"
_STREAM = "urn:headwater:warm"
_WINDOW = f"STREAM <{_STREAM}> [RANGE 4s SLIDE 2s]"
_QUERIES = (
    # What many queries need comes first.
    f"SELECT ?x (AVG(?v) AS ?a) (COUNT(*) AS ?n) WHERE {{ {_WINDOW} {{ ?x <urn:v> ?v }} }} GROUP BY ?x",
    f"SELECT ?x ?v ?w WHERE {{ {_WINDOW} {{ ?x <urn:v> ?v . ?x <urn:v> ?w FILTER(?v < ?w) }} }}",
    f"""SELECT ?x (COUNT(*) AS ?n) (SUM(?v) AS ?s) (AVG(?d) AS ?a) (MIN(?v) AS ?m) (COUNT(DISTINCT ?v) AS ?k) WHERE {{
          {_WINDOW} {{ ?x <urn:v> ?v . ?x <urn:d> ?d FILTER(?v > 1 && ?v + 1 < 90 && ?d < 9.5 && ?x != <urn:y>) }} }}
        GROUP BY ?x""",
    f"""SELECT DISTINCT ?x ?w WHERE {{ {_WINDOW} {{ ?x <urn:v> ?v }} OPTIONAL {{ {_WINDOW} {{ ?x <urn:d> ?w }} }}
          MINUS {{ {_WINDOW} {{ ?x <urn:none> ?z }} }} FILTER NOT EXISTS {{ {_WINDOW} {{ ?x <urn:no> ?z }} }} }}""",
)


def precompile_kernel() -> int:
    """Run small queries that use every compiled operator; gives how many answers they had."""
    # Numbers that are equal and yet two terms, because MIN has to decide between them.
    integer, int_ = (NamedNode(f"http://www.w3.org/2001/XMLSchema#{name}") for name in ("integer", "int"))
    elements = [
        Element(
            second * SECOND,
            (
                Triple(NamedNode(f"urn:x{second % 3}"), NamedNode("urn:v"), Literal(str(second), datatype=integer)),
                Triple(NamedNode(f"urn:x{second % 3}"), NamedNode("urn:v"), Literal(str(second), datatype=int_)),
                Triple(NamedNode(f"urn:x{second % 3}"), NamedNode("urn:d"), Literal(second / 8)),
            ),
        )
        for second in range(1, 24)
    ]
    answers = 0
    # Many ticks in one step, and tick by tick.
    for size, emit, text in product((len(elements), 1), (StreamOperator.RSTREAM, StreamOperator.ISTREAM), _QUERIES):
        plan = plan_query(parse(text), streams=[_STREAM])
        evaluator = KernelEvaluator(plan, resolve_settings(plan, Options(emit=emit)), Store())
        for low in range(0, len(elements), size):
            some = elements[low : low + size]
            answers += len(evaluator.advance({key: some for key in evaluator.keys}, some[-1].time))
        answers += len(evaluator.advance({}, None, ended=True))
    return answers


def kernel_code() -> Path | None:
    """The folder of the compiled code of windows and indexes; None where code is not kept."""
    return code_folder(Path(str(columns.__file__)).parent)


def main(options: Sequence[str]) -> None:
    """Compile what the options say; nothing where another process does so at this time."""
    folder = kernel_code()
    if folder is None:
        return
    try:
        lock = lock_file(folder / "compiling.lock")
    except OSError:
        return
    if KERNEL_ONLY not in options:
        scanner.precompile_scanner()
    precompile_kernel()
    os.close(lock)


if __name__ == "__main__":
    main(sys.argv[1:])
