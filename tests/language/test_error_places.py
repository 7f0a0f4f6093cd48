"""Errors stand where a person would look, and say what to do. `‸` marks the expected place in each text."""

from __future__ import annotations

import pickle

import pytest

from headwater.language.errors import QueryError
from headwater.language.parser import parse
from headwater.language.stream_clauses import Dialect

PREFIX = "PREFIX : <http://e/> "

CASES = [
    ("‸SELCT ?x WHERE { ?x a ?y }", "did you mean SELECT?"),
    ("SELECT ?x ‸WERE { ?x a ?y }", "did you mean WHERE?"),
    ("SELECT ?x { ?x a ?y . ‸OPTINAL { ?x a ?z } }", "did you mean OPTIONAL?"),
    ("SELECT ?x { ?x a ?y } ‸GROUPBY ?x", "did you mean GROUP BY?"),
    ("SELECT ?x { ?x a ?y ‸GROUP BY ?x }", "belongs after the closing }"),
    ("SELECT ?x WHERE ‸{ ?x a ?y ", "this { is never closed"),
    ("SELECT ?x WHERE { ?x a ?y FILTER‸(?y > 3 }", "this ( is never closed"),
    ("SELECT ?x WHERE { ?x a ?y FILTER‸(?y > 3] }", "] at line 1, column 40"),
    ("SELECT ?x WHERE { ?x a ?y ‸FILTER(?y > 3)) }", ") at line 1, column 41 closes nothing"),
    ("SELECT ?x WHERE ‸{ ?x a ?y } }", "} at line 1, column 29 closes nothing"),
    ("SELECT ?x ‸{ { ?x a ?y } ?y a ?z } ?z a ?w }", "closes nothing"),
    (PREFIX + "ASK { ?x :p ‸'abc . }", "this string is never closed"),
    (PREFIX + 'ASK { ?x :p ‸"""abc" . }', 'this string is never closed: """'),
    (PREFIX + "ASK { ?x :p ?y . ‸(?y > 3) }", "did you mean FILTER"),
    (PREFIX + "ASK { ?x :p ?y ‸(?y > 3) }", "did you mean FILTER"),
    (PREFIX + "ASK { ?x :p ?y . ‸(regex(?y, 'a')) }", "did you mean FILTER"),
    ("ASK { ?x a ‸ex:T }", "write PREFIX ex:"),
    ("ASK { ?x a ‸loc2 }", "did you mean ?loc2"),
    ("ASK { ‸?x ?p }", "no object"),
    ("ASK { ?x ‸?x ?p ?o }", "twice"),
    ("ASK { ‸?x ?p ?o ?z }", "three parts"),
    ("ASK { ?x ?p ?o ‸?y ?q ?r }", "cannot stand here"),
    ("ASK { ?x a ‸<http://a b> }", "begins no IRI"),
    ("ASK { ?x a ‸<http://%zz> }", "not a valid IRI"),
    ("ASK { ?x a 'a‸\\qb' }", "no escape"),
    ("ASK { ?x a 'a'‸@en-abcdefghijkl }", "not a valid language tag"),
    ("ASK { ?x ?y ‸${VALUE} }", "placeholder"),
    ("ASK { FILTER(?x ‸& ?y) }", "did you mean &&"),
    ("ASK { FILTER(‸STRLN(?x)) }", "did you mean STRLEN?"),
    ("ASK { FILTER(‸IF(?x, 1)) }", "takes 3 arguments, not 2"),
    ("ASK { FILTER(‸BOUND(1)) }", "takes one variable"),
    ("ASK { FILTER(‸COUNT(?x) > 1) }", "aggregates belong"),
    ("ASK { FILTER‸(?x, ?y) }", "needs a function before"),
    ("ASK { FILTER(?x ‸>) }", "right side"),
    ("ASK { ‸FILTER(?x + 1 AS ?y) }", "did you mean BIND"),
    ("ASK { ‸BIND(?x + 1) }", "needs a name"),
    ("ASK { FILTER ‸?x }", "brackets"),
    ("SELECT (‸SUM(COUNT(?x)) AS ?y) { ?x a ?z }", "do not nest"),
    ("SELECT ‸COUNT(?x) AS ?y { ?x a ?z }", "(expression AS ?name)"),
    ("SELECT ?x‸, ?y { ?x a ?y }", "cannot stand here"),
    ("SELECT ?x { ?x a ?y } LIMIT ‸many", "cannot stand here"),
    ("SELECT ?x { ?x a ?y } LIMIT ‸" + "9" * 5000, "too large"),
    ("SELECT ?x { VALUES (?x ?y) { (1 2) ‸(3) } }", "1 values for 2"),
    ("SELECT ?x { VALUES ‸(?x ?y) { (1) (3) } }", "every row has 1"),
    ("‸", "ends too early"),
    ("REGISTER ‸QUERY AS SELECT * { ?s ?p ?o }", "needs a name"),
    ("SELECT ?x FROM STREAM ‸<http://s> { ?x a ?y }", "has no window"),
    ("SELECT ?x FROM ‸<http://s> [RANGE 1s] { ?x a ?y }", "did you mean FROM STREAM?"),
    ("SELECT ?x FROM STREAM <http://s> [RANGE 10m STEP ‸0s] { ?x a ?y }", "longer than zero"),
    ("SELECT ?x FROM STREAM <http://s> [RANGE 1h ‸30m] { ?x a ?y }", "cannot stand here"),
    ("SELECT ?x FROM STREAM <http://s> [RANGE 1h‸30] { ?x a ?y }", "no unit"),
    ("SELECT ?x FROM STREAM <http://s> [RANGE 10 ‸parsecs] { ?x a ?y }", "no unit of time"),
    ("SELECT ?x FROM STREAM <http://s> [RANGE ‸P1M] { ?x a ?y }", "no fixed length"),
    ("SELECT ?x FROM STREAM <http://s> [TRIPLES ‸10s] { ?x a ?y }", "not a duration"),
    ("SELECT ?x FROM STREAM <http://s> [TRIPLES ‸0] { ?x a ?y }", "more than zero"),
    ("SELECT ?x { STREAM ‸<http://s> { ?x a ?y } }", "has no window"),
    ("SELECT ?x { STREAM ‸[NOW] { ?x a ?y } }", "has no name"),
    ("SELECT ?x { ‸GRAPH <http://s> [NOW] { ?x a ?y } }", "did you mean STREAM?"),
    (PREFIX + "ASK FROM NAMED WINDOW ‸ON :s [NOW] { ?x a ?y }", "has no name"),
    (PREFIX + "ASK FROM ‸WINDOW :w ON :s [NOW] { ?x a ?y }", "always named"),
    (PREFIX + "ASK FROM NAMED WINDOW :w ON :s [FROM ‸NOW-1h TO NOW-2h] { ?x a ?y }", "ends before it begins"),
    (PREFIX + "ASK FROM NAMED WINDOW :w ON :s [FROM ‸'yesterday' TO NOW] { ?x a ?y }", "not a date"),
    ("SELECT ?x { ?x a ?y } AGGREGATE { (?z, COUNT, {?x}) ‸(?z > 3) }", "needs FILTER"),
    ("REGISTER ISTREAM s AS SELECT ‸RSTREAM ?x { ?x a ?y }", "contradicts"),
    ("CONSTRUCT ‸{ FILTER(1) } WHERE { ?x a ?y }", "triples only"),
    ("‸CONSTRUCT { ?x a ?y }", "has no WHERE"),
    ("‸ASK { ?x a ?y } WHERE { ?x a ?y }", "did you mean CONSTRUCT?"),
    ("SELECT ?x { ?x a ?y } ‸SERVICE <http://e> { ?x a ?z }", "cannot stand here"),
    ("SELECT ?x { ‸UNION { ?x a ?z } }", "between two groups"),
    ("ASK ‸{ ?x a ?y } }", "closes nothing"),
]


@pytest.mark.parametrize(("marked", "message"), CASES)
def test_error_stands_at_the_mark(marked: str, message: str) -> None:
    text = marked.replace("‸", "")
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert message in caught.value.message
    assert text[: caught.value.offset] + "‸" + text[caught.value.offset :] == marked


def test_line_column_and_caret() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT ?x\nWHERE {\n\t?x a ?y .\n\t?x b ?z\n}")
    error = caught.value
    assert (error.line, error.column) == (4, 5)
    assert str(error).splitlines()[1:3] == ["\t?x b ?z", "\t   ^"]
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)


def test_positions_count_in_the_text_as_written() -> None:
    text = "ASK { ?\\u0061 ?p '\\U0001F600' . ?s ?p }"
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert text[caught.value.offset :] == "?s ?p }"
    assert caught.value.text == text


def test_datatype_marker_without_datatype_is_an_error_outside_csparql() -> None:
    text = "ASK { ?x ?p ?y FILTER(?x = 'CH' ^^ ?y >= 10) }"
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert text[caught.value.offset :].startswith("?y >= 10")
    assert parse(text, Dialect.CSPARQL).dialect is Dialect.CSPARQL


@pytest.mark.parametrize("text", ["ASK { ?x a " + "(" * 500, "ASK { FILTER(" + "(" * 500, "ASK " + "{" * 500])
def test_deep_nesting_is_an_error_and_no_crash(text: str) -> None:
    with pytest.raises(QueryError):
        parse(text)


def test_a_long_chain_of_conditions_nests_little() -> None:
    conditions = " || ".join(f"?x = {number}" for number in range(5000))
    query = parse(f"ASK {{ ?x ?p ?o FILTER({conditions}) }}")
    assert hash(query.form) == hash(parse(f"ASK {{ ?x ?p ?o FILTER({conditions}) }}").form)
