"""Literals survive a store as they were written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Quad, Store

from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Triple
from headwater.terms.stored_forms import (
    is_kept,
    is_stored_form,
    restore_term,
    restore_triple,
    to_stored_quad,
    to_stored_term,
    to_stored_triple,
)
from tests.terms.strategies import lexical_forms, literals

P = NamedNode("http://example/p")
typed = st.builds(
    lambda text, name: Literal(text, datatype=NamedNode(XSD + name)),
    lexical_forms,
    st.sampled_from(["duration", "dayTimeDuration", "gYear", "byte", "unsignedInt", "negativeInteger", "anyURI"]),
)
all_literals = st.one_of(literals, typed)


def through_a_store(literal: Literal) -> object:
    store = Store()
    store.add(Quad(P, P, literal))
    (quad,) = store
    return quad.object


@given(all_literals)
def test_what_is_called_kept_comes_back(literal: Literal) -> None:
    assert is_kept(literal) == (through_a_store(literal) == literal)


@given(all_literals)
def test_every_literal_comes_back_through_its_stored_form(literal: Literal) -> None:
    form = to_stored_term(literal)
    assert isinstance(form, Literal)
    back = through_a_store(form)
    assert isinstance(back, Literal)
    assert restore_term(back) == literal
    assert is_stored_form(form) == (form != literal)


@given(all_literals, all_literals)
def test_two_terms_never_become_one(left: Literal, right: Literal) -> None:
    assert (to_stored_term(left) == to_stored_term(right)) == (left == right)


@pytest.mark.parametrize("term", [P, BlankNode("b"), Literal("x", language="en"), Literal("01")])
def test_other_terms_stay_themselves(term: NamedNode | BlankNode | Literal) -> None:
    assert to_stored_term(term) is term
    assert restore_term(term) is term


def test_triples_and_triple_terms_are_changed_inside() -> None:
    inner = Triple(P, P, Literal("01", datatype=NamedNode(XSD + "integer")))
    outer = Triple(P, P, inner)
    assert to_stored_triple(outer) != outer
    assert restore_triple(to_stored_triple(outer)) == outer
    assert to_stored_triple(Triple(P, P, P)) == Triple(P, P, P)
    quad = to_stored_quad(Quad(P, P, inner.object, P))
    assert quad.graph_name == P
    assert restore_term(quad.object) == inner.object
    assert to_stored_quad(quad) is quad
