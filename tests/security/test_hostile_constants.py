"""Terms that functions of ours compute with are no part of the text that pyoxigraph parses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pyoxigraph import Store

from headwater.algebra import pyoxigraph_expressions
from headwater.algebra.pyoxigraph_expressions import FUNCTIONS
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Term, Triple
from headwater.values.checked_functions import CheckedFunctions
from headwater.values.query_guard import QueryGuard

HOSTILE = [
    "(" * 100_000,
    "{ SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
    '") AS ?value) } #',
    "\\u0022) AS ?value } #",
    "\\",
    "'''\"\"\"",
    "\x00\x01\x7f",
    "\n\r\t\u2028\u0085",
    "\U0010ffff",
    "x" * 1_000_000,
]


class RecordingStore:
    """Asks pyoxigraph, and keeps the texts."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def query(self, text: str, custom_functions: Mapping[NamedNode, Callable[..., Any]]) -> object:
        self.texts.append(text)
        return Store().query(text, custom_functions=dict(custom_functions))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> RecordingStore:
    recording = RecordingStore()
    monkeypatch.setattr(pyoxigraph_expressions, "_EMPTY_STORE", recording)
    return recording


def test_checked_functions(store: RecordingStore) -> None:
    functions = {name.value.rpartition(":")[2]: one for name, one in CheckedFunctions(QueryGuard()).functions.items()}
    for text in HOSTILE:
        found = functions["CONCAT"](Literal(text), Literal("!"))
        assert isinstance(found, Literal) and found.value == text + "!"
        replaced = functions["REPLACE"](Literal(text + "!"), Literal("!"), Literal(text[:1000].replace("$", "")))
        assert replaced is None or isinstance(replaced, Literal)
    assert len(set(store.texts)) == 2
    many = [Literal(str(place % 10)) for place in range(5_000)]
    joined = functions["CONCAT"](*many)
    assert isinstance(joined, Literal) and len(joined.value) == 5_000


def test_quotients_and_members(store: RecordingStore) -> None:
    pyoxigraph_expressions._compute.cache_clear()
    hostile: list[Term] = [*map(Literal, HOSTILE), *(Literal(one, datatype=NamedNode("urn:t")) for one in HOSTILE)]
    nested: Term = BlankNode("b")
    for _ in range(60):
        nested = Triple(NamedNode("urn:s"), NamedNode("urn:p"), nested)
    hostile += [nested, *(Literal(one, datatype=NamedNode(XSD + "dateTime")) for one in HOSTILE)]
    for function in FUNCTIONS.values():
        for term in hostile:
            function(term, hostile[0])
            function(hostile[0], term)
    assert len(set(store.texts)) == 2, "one text for / and one for ="
    pyoxigraph_expressions._compute.cache_clear()
