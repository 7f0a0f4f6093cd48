"""`python -m headwater.kernel.precompile`: has numba compile the kernel and the scanner once, into its cache on disk.

A process that finds the cache starts answering at once; one that does not waits some seconds for the compiler.
"""

from __future__ import annotations

from itertools import product

from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.model import SECOND, Element, Literal, NamedNode, Triple
from headwater.terms.scanning import precompile_scanner as scanner
from headwater.windows.settings import Options, resolve_settings

_STREAM = "urn:headwater:warm"
_WINDOW = f"STREAM <{_STREAM}> [RANGE 4s SLIDE 2s]"
_QUERIES = (
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
    # Tick by tick, and many ticks in one step.
    for text, emit, size in product(_QUERIES, (StreamOperator.ISTREAM, StreamOperator.RSTREAM), (1, len(elements))):
        plan = plan_query(parse(text), streams=[_STREAM])
        evaluator = KernelEvaluator(plan, resolve_settings(plan, Options(emit=emit)), Store())
        for low in range(0, len(elements), size):
            some = elements[low : low + size]
            answers += len(evaluator.advance({key: some for key in evaluator.keys}, some[-1].time))
        answers += len(evaluator.advance({}, None, ended=True))
    return answers


if __name__ == "__main__":
    scanner.precompile_scanner()
    precompile_kernel()
