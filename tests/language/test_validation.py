"""Queries that the grammar allows but that cannot mean anything. `‸` marks the place of the error."""

from __future__ import annotations

import pytest

from headwater.language.errors import QueryError
from headwater.language.expressions import VariableReference
from headwater.language.parser import parse
from headwater.language.query import GroupKey, SelectQuery
from headwater.terms.model import Variable

PREFIX = "PREFIX : <http://e/> "

WRONG = [
    ("SELECT ?x { ?x a ?y BIND(1 AS ‸?y) }", "in use already"),
    ("SELECT ?x { { ?x a ?y } BIND(1 AS ‸?y) }", "in use already"),
    ("SELECT ?x { OPTIONAL { ?x a ?z BIND(1 AS ‸?z) } }", "in use already"),
    ("ASK { FILTER EXISTS { ?x a ?y BIND(1 AS ‸?y) } }", "in use already"),
    ("SELECT ‸(1 AS ?x) { ?x a ?y }", "in use already"),
    ("SELECT (1 AS ?z) ‸(2 AS ?z) { ?x a ?y }", "in use already"),
    ("SELECT ?y { ?x a ?y } GROUP BY ?y ‸(1 AS ?x)", "in use already"),
    ("SELECT ‸?x (COUNT(?y) AS ?n) { ?x a ?y }", "neither in GROUP BY"),
    ("SELECT ?x ‸?y { ?x a ?y } GROUP BY ?x", "neither in GROUP BY"),
    ("SELECT ?x ‸(STR(?y) AS ?s) { ?x a ?y } GROUP BY ?x", "neither in GROUP BY"),
    ("SELECT ‸?x { ?x a ?y } HAVING (COUNT(?y) > 1)", "neither in GROUP BY"),
    ("ASK { { SELECT ‸?x (COUNT(?y) AS ?n) { ?x a ?y } } }", "neither in GROUP BY"),
    ("‸SELECT * { ?x a ?y } GROUP BY ?x", "SELECT *"),
    ("ASK { _:a a ?y OPTIONAL { ‸_:a a ?x } }", "another basic graph pattern"),
    ("ASK { _:a a ?y { } ‸_:a a ?x }", "another basic graph pattern"),
    ("ASK { _:a a ?y FILTER NOT EXISTS { ‸_:a a ?x } }", "another basic graph pattern"),
    ("ASK { VALUES (?x ‸?x) { } }", "twice"),
    ("ASK FROM NAMED WINDOW :w ON :s [NOW] { ‸WINDOW :v { } }", "<http://e/w>"),
    ("ASK { ‸WINDOW :v { } }", "none"),
    ("ASK FROM NAMED WINDOW :w ON :s [NOW] { FILTER EXISTS { ‸WINDOW :v { } } }", "no window has the name"),
    ("ASK FROM NAMED WINDOW :w ON :s [NOW] ‸FROM NAMED WINDOW :w ON :t [NOW] { }", "two windows"),
    ("SELECT * { ?x a ?y } AGGREGATE { (‸?y, COUNT, {?x}) }", "not new"),
    ("SELECT * { ?x a ?y } AGGREGATE { (?n, COUNT, {?x}) (‸?n, COUNT, {?y}) }", "not new"),
    ("SELECT * { ?x a ?y } AGGREGATE { (?n, SUM(‸?z), {?x}) }", "does not occur in WHERE"),
    ("SELECT * { ?x a ?y } AGGREGATE { (?n, SUM(?y), {‸?z}) }", "does not occur in WHERE"),
    ("SELECT * { ?x a ?y } AGGREGATE { (?n, ‸SUM, {?x}) }", "needs a variable"),
]


@pytest.mark.parametrize(("marked", "message"), WRONG)
def test_wrong_meaning_is_found_at_the_mark(marked: str, message: str) -> None:
    text = PREFIX + marked.replace("‸", "")
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert message in caught.value.message
    assert text[: caught.value.offset] + "‸" + text[caught.value.offset :] == PREFIX + marked


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x { BIND(1 AS ?y) ?x a ?y }",
        "SELECT ?x { MINUS { ?x a ?y } BIND(1 AS ?y) }",
        "SELECT ?x { FILTER(?y > 1) BIND(1 AS ?y) }",
        "SELECT (COUNT(?x) AS ?n) (?n + 1 AS ?m) { ?x a ?y }",
        "SELECT ?text (COUNT(?x) AS ?n) { ?x a ?y } GROUP BY (STR(?y) AS ?text)",
        "SELECT (MAX(?y) AS ?m) { ?x a ?y } GROUP BY ?x ORDER BY ?y",
        "SELECT ?x { ?x a ?y } GROUP BY ?x HAVING (?y > 1)",
        "ASK { _:a a ?y FILTER(true) _:a a ?x }",
        "CONSTRUCT { _:a a ?y } WHERE { _:a a ?y }",
        "SELECT * { { SELECT ?x { ?x a ?y } } BIND(1 AS ?y) }",
        "ASK { WINDOW ?w { } }",
    ],
)
def test_allowed_close_to_the_rules(text: str) -> None:
    parse(PREFIX + text)


def test_a_query_over_streams_groups_by_what_it_projects() -> None:
    query = parse(PREFIX + "SELECT ?x (COUNT(?y) AS ?n) FROM STREAM :s [NOW] { ?x a ?y }")
    assert isinstance(query.form, SelectQuery)
    assert query.form.modifiers.group_by == (GroupKey(VariableReference(Variable("x"))),)
    alone = parse(PREFIX + "SELECT (COUNT(?y) AS ?n) FROM STREAM :s [NOW] { ?x a ?y }")
    assert alone.form.modifiers.group_by == ()
