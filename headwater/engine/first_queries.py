"""Small queries whose evaluation compiles what most queries need; the second process of a first use runs them."""

from __future__ import annotations

import os
from itertools import product

from headwater.engine.engine import Engine
from headwater.running.compiling_process import evaluation_code
from headwater.sources.files import memory
from headwater.terms.durable_files import lock_file
from headwater.terms.model import Element, Literal, NamedNode, Triple

_PATTERN = "FROM STREAM <s> [RANGE 10s STEP 5s] WHERE {{ ?s <urn:p> ?v {more} }}"
_QUERIES = (
    "SELECT ?s (AVG(?v) AS ?mean) (COUNT(*) AS ?n) " + _PATTERN.format(more="") + " GROUP BY ?s",
    "SELECT ?s ?v ?w " + _PATTERN.format(more=". ?s <urn:p> ?w FILTER(?v < ?w)"),
    "SELECT ?s (MAX(?v) AS ?most) (MIN(?v) AS ?least) " + _PATTERN.format(more=". ?s <urn:q> ?w") + " GROUP BY ?s",
)
_ELEMENTS = 200
_SECOND = 1_000_000


def main() -> None:
    """Evaluate the queries one after the other, unless another process does so already."""
    folder = evaluation_code()
    if folder is None:
        return
    try:
        lock = lock_file(folder / "compiling.lock")
    except OSError:
        return
    for emit, text in product(("rstream", "istream"), _QUERIES):
        engine = Engine(in_process=True)
        engine.stream("s", memory(_element(number) for number in range(_ELEMENTS)))
        engine.register(text, emit=emit)
        engine.run()
    os.close(lock)


def _element(number: int) -> Element:
    sensor = NamedNode(f"urn:s{number % 7}")
    value = Literal(str(number), datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer"))
    triples = tuple(Triple(sensor, NamedNode(f"urn:{name}"), value) for name in "pq")
    return Element(number * _SECOND, triples, None, (number,))
