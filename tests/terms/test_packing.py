"""What travels between processes arrives as it was."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BaseDirection

from headwater.algebra.plan import QueryKind
from headwater.execution.answer_bytes import pack_answers, unpack_answers
from headwater.execution.answers import Answer
from headwater.sources.feed import Chunk
from headwater.spark.chunk_bytes import pack_chunk, unpack_chunk
from headwater.terms.element_columns import ElementColumns
from headwater.terms.model import XSD, BadElement, BlankNode, Element, Literal, NamedNode, Term, Triple
from headwater.terms.packing import pack, unpack

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
IRIS = st.sampled_from(["http://ex/a", "http://ex/ü", "urn:x:1"]).map(NamedNode)
BLANKS = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True).map(BlankNode)
LITERALS = st.one_of(
    TEXT.map(Literal),
    TEXT.map(lambda text: Literal(text, language="en")),
    TEXT.map(lambda text: Literal(text, language="ar", direction=BaseDirection.RTL)),
    TEXT.map(lambda text: Literal(text, datatype=NamedNode(XSD + "integer"))),
)
TRIPLES = st.builds(Triple, st.one_of(IRIS, BLANKS), IRIS, st.one_of(IRIS, BLANKS, LITERALS))
NESTED = st.builds(Triple, IRIS, IRIS, TRIPLES)
TERMS: st.SearchStrategy[Term] = st.one_of(IRIS, BLANKS, LITERALS, TRIPLES, NESTED)
ELEMENTS = st.builds(
    Element,
    st.integers(-(10**17), 10**17),
    st.lists(st.one_of(TRIPLES, NESTED), max_size=4).map(tuple),
    st.none(),
    st.tuples(st.integers(0, 9), st.integers(0, 10**12)),
)


@given(st.lists(st.tuples(TERMS, st.integers(), st.none() | TERMS)))
def test_terms_of_any_kind_survive_inside_other_objects(value: list[object]) -> None:
    assert unpack(pack(value)) == value


@given(st.lists(ELEMENTS, max_size=6).map(tuple), st.booleans())
def test_a_chunk_survives(elements: tuple[Element, ...], ended: bool) -> None:
    bad = (BadElement("why", "te\nxt", "file", (0, 3), 7),)
    chunk = Chunk("http://ex/s", 3, "file.tnq", elements, bad, ended)
    copy = unpack_chunk(pack_chunk(chunk))
    assert isinstance(copy.elements, ElementColumns)
    assert tuple(copy.elements.elements()) == elements
    assert replace(copy, elements=elements) == chunk


def test_an_answer_survives_with_what_it_was_made_from() -> None:
    answer = Answer("q", -5, QueryKind.SELECT, variables=("x", "y"), rows=((Literal("1"), None),), watermark=9)
    (copy,) = unpack_answers(pack_answers([answer]))
    assert copy == answer
    assert copy.watermark == 9


def test_the_chunk_that_only_says_that_a_run_began_survives() -> None:
    copy = unpack_chunk(pack_chunk(Chunk(None)))
    assert len(copy.elements) == 0
    assert replace(copy, elements=()) == Chunk(None)
