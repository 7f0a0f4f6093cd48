"""Whatever the text, `parse` answers with a tree or a `QueryError`, in linear time and without a surprise."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.language.errors import QueryError
from headwater.language.iris import resolve_iri
from headwater.language.lexer import tokenize
from headwater.language.parser import parse
from headwater.terms.durations import read_duration
from tests.language import paper_queries

WORD_TEXT = """
SELECT CONSTRUCT ASK DESCRIBE WHERE FILTER OPTIONAL UNION MINUS GRAPH SERVICE BIND VALUES STREAM WINDOW FROM NAMED ON
REGISTER QUERY AS COMPUTED EVERY RANGE STEP TRIPLES NOW ALL AGGREGATE COUNT SUM GROUP BY HAVING ORDER LIMIT a NOT IN
EXISTS ISTREAM DISTINCT * ?x ?y $z :p x:q <http://i> <rel> 'text' ``q`` 1 2.5 1e3 10m PT1H @en @:p ^^
{ } ( ) [ ] . ; , = != < > + - / | ^ ! ? && || timestamp(?x) true UNDEF _:b PREFIX : BASE word
"""
WORDS = WORD_TEXT.split()


@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join))
@settings(max_examples=400, deadline=None)
def test_any_sequence_of_tokens(text: str) -> None:
    try:
        parse("PREFIX : <http://e/> " + text)
    except QueryError as error:
        assert 0 <= error.offset <= len(error.text)
        assert str(error)


@given(st.text(max_size=40), st.sampled_from(sorted(paper_queries.PRINTED)), st.floats(0, 1))
@settings(max_examples=300, deadline=None)
def test_any_text_inside_a_query(piece: str, name: str, where: float) -> None:
    text = paper_queries.PRINTED[name]
    place = int(where * len(text))
    try:
        parse(text[:place] + piece + text[place:])
    except QueryError as error:
        assert 0 <= error.offset <= len(error.text)


@given(st.sampled_from(sorted(paper_queries.PRINTED)))
@settings(max_examples=20, deadline=None)
def test_tokens_cover_the_text(name: str) -> None:
    text = paper_queries.PRINTED[name]
    for token in tokenize(text).tokens:
        assert text[token.start : token.end] == token.text


@given(st.integers(1, 10**6), st.sampled_from(["ms", "s", "m", "h", "d"]), st.sampled_from(["", " ", "\n"]))
def test_durations_scale_with_their_unit(count: int, unit: str, blank: str) -> None:
    factor = {"ms": 10**3, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}[unit]
    text = f"{count}{blank}{unit}]"
    assert read_duration(text, 0, frozenset()) == (count * factor, len(text) - 1)


@pytest.mark.parametrize(
    ("reference", "absolute"),
    [
        ("g:h", "g:h"),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        ("./g/.", "http://a/b/c/g/"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/../y", "http://a/b/c/y"),
    ],
)
def test_resolution_follows_the_examples_of_rfc_3986(reference: str, absolute: str) -> None:
    assert resolve_iri("http://a/b/c/d;p?q", reference) == absolute


def test_an_unclosed_string_takes_linear_time() -> None:
    text = "ASK { ?x ?p '''" + "a''\\'" * 20_000
    started = time.perf_counter()
    with pytest.raises(QueryError):
        parse(text)
    assert time.perf_counter() - started < 2


def test_a_typical_query_parses_in_under_two_milliseconds() -> None:
    text = paper_queries.PRINTED["C-SPARQL section 2.6, full streets"]
    best = min(_seconds(text) for _ in range(30))
    assert best < 0.002


def _seconds(text: str) -> float:
    started = time.perf_counter()
    parse(text)
    return time.perf_counter() - started
