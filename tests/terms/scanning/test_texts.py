"""The dictionary of a scan: each hashed id once, with its text; two texts with one id are reported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.ids.hash_collisions import HashCollision
from headwater.terms.ids.term_ids import encode, is_inline, term_text
from headwater.terms.model import Element, NamedNode, Term
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.scanner import scan
from headwater.terms.tnq import read_tnq
from tests.terms.scanning.comparing import timed, words
from tests.terms.scanning.line_strategies import texts
from tests.terms.strategies import terms


@given(texts, st.sampled_from(["", "s", "po", "spo", "og", "spog"]))
def test_the_texts_of_the_places_that_were_asked_for(text: bytes, places: str) -> None:
    expected: dict[int, str] = {}
    for element in read_tnq(text, ""):
        if not isinstance(element, Element):
            continue
        for triple in element.triples:
            for place, term in zip("spo", (triple.subject, triple.predicate, triple.object), strict=True):
                if place in places and not is_inline(encode(term)):
                    expected[encode(term)] = term_text(term)
        if "g" in places and element.graph is not None:
            name = element.graph if element.graph.startswith("_:") else f"<{element.graph}>"
            expected[scan(f"{name} <a:p> <a:o> .".encode(), LineFormat.N_TRIPLES).subjects.tolist()[0]] = name
    found = scan(text, texts=places).texts()
    assert {term_id: text.decode() for term_id, text in found.items()} == expected
    assert len(found) == len(expected)


@given(st.lists(terms, max_size=20))
def test_terms_come_back(found: list[Term]) -> None:
    document = "".join(f"<a:s> <a:p> {term_text(term)} .\n" for term in found).encode()
    scanned = scan(document, LineFormat.N_TRIPLES, texts="o")
    known = scanned.texts().terms()
    assert [known[encode(term)] for term in found if not is_inline(encode(term))] == [
        term for term in found if not is_inline(encode(term))
    ]


def test_texts_of_some_rows() -> None:
    scanned = scan(timed("<a:1> <a:p> <a:o> <a:g1> .", "<a:2> <a:p> <a:é> <a:g2> .", "<a:3> <a:p> <a:o> <a:g3> ."))
    by_mask = scanned.texts(np.array([True, True, False]))
    names = words("<a:1> <a:p> <a:o> <a:2> <a:é> <a:g1> <a:g2>")
    assert [text.decode() for _, text in by_mask.items()] == names
    by_number = scanned.texts(np.array([2]))
    assert [text for _, text in by_number.items()] == [b"<a:3>", b"<a:p>", b"<a:o>", b"<a:g3>"]
    assert scanned.text_at(1, 2).decode() == "<a:é>"
    assert scanned.text_at(2, 0) == b"<a:3>"


def test_many_different_texts() -> None:
    scanned = scan(timed(*(f"<a:s{n % 5000}> <a:p> <a:o{n}> ." for n in range(20_000))))
    found = dict(scanned.texts().items())
    assert len(found) == len(scanned.texts()) == 25_001
    assert all(encode(NamedNode(text.decode()[1:-1])) == term_id for term_id, text in list(found.items())[::97])


@pytest.mark.parametrize("other", ["<a:other>", "<a:longer-than-the-other>", "<a:\\u00e9>"])
def test_two_texts_with_one_id_are_reported(other: str) -> None:
    scanned = scan(timed("<a:first> <a:p> <a:o> .", "<a:between> <a:p> <a:o> .", f"{other} <a:p> <a:o> ."))
    for rows in ([0, 2], [2, 0], [0, 1, 2]):
        triples = scanned.triples[rows].copy()
        triples[[0, -1], 0] = 7
        confused = replace(scanned, triples=triples, spans=scanned.spans[rows], marks=scanned.marks[rows])
        with pytest.raises(HashCollision, match=r"<a:first>.*id 7|id 7") as caught:
            confused.texts()
        assert {str(caught.value.known), str(caught.value.other)} == {"<a:first>", other.replace("\\u00e9", "é")}
