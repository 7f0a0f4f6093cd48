"""Text that is nested too deeply is refused, at every entry: before, each of these ended the process by signal 11."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import pytest
from pyoxigraph import QueryResultsFormat, RdfFormat

from headwater.datasets.dataset import DataSet
from headwater.errors import SettingError
from headwater.federation.endpoint.protocol import NotResults, read_results
from headwater.language.errors import QueryError
from headwater.language.parser import parse
from headwater.terms.checking.checked_parsing import parse_quads, parse_results, read_document
from headwater.terms.checking.input_limits import NESTING_VARIABLE, deepest_nesting
from headwater.terms.checking.nesting import NestingCheck, Syntax, TooDeep, check_nesting
from headwater.terms.checking.query_texts import check_update
from headwater.terms.model import BadElement
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.scanner import scan
from headwater.terms.tnq import read_tnq
from tests.security.processes import PROJECT, run_python

LEVELS = 20_000


def nested_statement(levels: int) -> bytes:
    return b"<a:s> <a:p> " + b"<<( <a:s> <a:p> " * levels + b"<a:o>" + b" )>>" * levels + b" ."


def nested_result(levels: int) -> bytes:
    iri = b'{"type":"uri","value":"a:a"}'
    term = (
        b'{"type":"triple","value":{"subject":%b,"predicate":%b,"object":' % (iri, iri) * levels + iri + b"}}" * levels
    )
    return b'{"head":{"vars":["x"]},"results":{"bindings":[{"x":' + term + b"}]}}"


def nested_xml(levels: int) -> bytes:
    rdf = b'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="e:" rdf:version="1.2"'
    return (
        b"<rdf:RDF %b>" % rdf
        + b'<rdf:Description rdf:about="a:a"><e:p rdf:parseType="Triple">' * levels
        + b'<rdf:Description rdf:about="a:s"><e:q>x</e:q></rdf:Description>'
        + b"</e:p></rdf:Description>" * levels
        + b"</rdf:RDF>"
    )


@pytest.mark.parametrize(
    "entry",
    [
        "tnq",
        "ntriples",
        "turtle",
        "message",
        "service",
        "update",
        "listed",
    ],
)
def test_the_process_goes_on(entry: str, tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from tests.security import nesting_entries\n"
        "print(nesting_entries.enter(sys.argv[1], sys.argv[2]))\n"
    )
    assert "nested deeper than 64 levels" in run_python(code, entry, str(tmp_path))


@pytest.mark.parametrize("format", [RdfFormat.N_TRIPLES, RdfFormat.N_QUADS, RdfFormat.TURTLE, RdfFormat.TRIG])
def test_the_limit_is_exact(format: RdfFormat) -> None:
    assert len(parse_quads(nested_statement(64), format)) == 1
    assert len(list(read_document(io.BytesIO(nested_statement(64)), format))) == 1
    for read in (lambda text: parse_quads(text, format), lambda text: list(read_document(io.BytesIO(text), format))):
        for levels in (65, LEVELS):
            with pytest.raises(TooDeep):
                read(nested_statement(levels))


def test_other_formats_have_the_limit() -> None:
    assert parse_quads(nested_xml(64), RdfFormat.RDF_XML)
    for levels in (80, LEVELS):
        with pytest.raises(TooDeep):
            parse_quads(nested_xml(levels), RdfFormat.RDF_XML)
        with pytest.raises(TooDeep):
            list(read_document(io.BytesIO(nested_xml(levels)), RdfFormat.RDF_XML))
    objects = b'{"e:p":' * LEVELS + b"1" + b"}" * LEVELS
    with pytest.raises(TooDeep):
        parse_quads(objects, RdfFormat.JSON_LD)
    assert len(parse_quads(b'{"e:p":' * 64 + b"1" + b"}" * 64, RdfFormat.JSON_LD)) == 64


def test_elements_of_xml_may_be_deep() -> None:
    """Lists are often written so, and the parser does not descend for them."""
    rdf = b'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="e:"'
    text = b"<rdf:RDF %b>" % rdf + b"<rdf:Description><e:p>" * 500 + b"</e:p></rdf:Description>" * 500 + b"</rdf:RDF>"
    assert len(parse_quads(text, RdfFormat.RDF_XML)) == 500


def test_a_deep_line_is_a_bad_element_and_the_others_are_read() -> None:
    good = b"1000\t<a:s> <a:p> 1 .\n".replace(b"1 .", b'"1" .')
    text = good + b"1000\t" + nested_statement(100) + b"\n" + good
    scanned = scan(text, LineFormat.TNQ)
    assert [bad.line for bad in scanned.bad] == [2]
    assert "nested deeper" in scanned.bad[0].reason
    assert scanned.triples.shape[0] == 2
    read = list(read_tnq(text, ""))
    assert [one.line for one in read if isinstance(one, BadElement)] == [2]


@pytest.mark.parametrize(
    "text",
    [
        b'<a:s> <a:p> "' + b"(" * 1000 + b'" .',
        b'<a:s> <a:p> """' + b"[\n" * 1000 + b'""" .',
        b"<a:s> <a:p> '" + b"{" * 1000 + b"' .",
        b"<a:s> <a:p> '''" + b"''(" * 1000 + b"''' .",
        b"# " + b"(" * 1000 + b"\n<a:s> <a:p> 1 .",
        b"<a:s> <a:p> <a:" + b"(" * 1000 + b"> .",
        b"<a:s> <a:p> " + b"(1) , " * 1000 + b"() .",
        b'<a:s> <a:p> "\\"' + b"(" * 1000 + b'" .',
        b"@prefix e: <e:> . <a:s> <a:p> " + b"e:\\( , " * 1000 + b"1 .",
        b"<a:s> <a:p> " + b"<<( <a:s> <a:p> <a:o> )>> , " * 1000 + b"1 .",
        b"<a:s> <a:p> " + b"[ <a:p> [] ] , " * 1000 + b"1 .",
    ],
)
def test_what_only_looks_deep_is_read(text: bytes) -> None:
    assert parse_quads(text, RdfFormat.TURTLE)
    for size in (1, 7, 64):
        check = NestingCheck(Syntax.TURTLE)
        for start in range(0, len(text), size):
            check.add(text[start : start + size])


@pytest.mark.parametrize(
    "text",
    [
        b'( ")" ' * 100,
        b"( ')' " * 100,
        b'( """)""" ' * 100,
        b"( # )\n" * 100,
        b"( <a:)> " * 100,
        b"( <= " * 100,
        b"[ <a:p> " * 100,
        b"<< " * 100,
        b"<<(" * 100,
        b'"a" ( ' * 100,
        b"'' ( " * 100,
    ],
)
def test_nothing_hides_a_bracket(text: bytes) -> None:
    with pytest.raises(TooDeep):
        check_nesting(text, Syntax.TURTLE)
    for size in (1, 7, 64):
        check = NestingCheck(Syntax.TURTLE)
        with pytest.raises(TooDeep):
            for start in range(0, len(text), size):
                check.add(text[start : start + size])


def test_comments_of_xml_hide_no_element() -> None:
    hidden = nested_xml(200)
    for closing in (b"<!-- </e:p> -->", b"<!---> </e:p> -->", b"<![CDATA[</e:p>]]>", b"<?a > </e:p> ?>"):
        with pytest.raises(TooDeep):
            check_nesting(hidden.replace(b'"Triple">', b'"Triple">' + closing * 2), Syntax.RDF_XML)


def test_a_result_of_a_service_is_an_error_of_the_endpoint() -> None:
    with pytest.raises(NotResults, match="nested deeper"):
        read_results(nested_result(5_000))
    assert read_results(nested_result(20))
    xml = (
        b'<?xml version="1.0"?><sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="x"/></head>'
        b'<results><result><binding name="x">'
        + b"<triple><subject><uri>a:a</uri></subject><predicate><uri>a:a</uri></predicate><object>" * 5_000
        + b"<uri>a:a</uri>"
        + b"</object></triple>" * 5_000
        + b"</binding></result></results></sparql>"
    )
    with pytest.raises(NotResults, match="nested deeper"):
        read_results(xml)
    with pytest.raises(TooDeep):
        parse_results(b"?x\n" + nested_statement(100), QueryResultsFormat.TSV)


CHAINS = {
    "sums": "FILTER(?o " + "+ 1 " * LEVELS + "> 0)",
    "dots": "FILTER(1.e0 " + "+ 1.e0 " * LEVELS + "> 0)",
    "names": "FILTER(?o " + "+ e:a.b " * LEVELS + "> 0)",
    "unions": "{ ?s ?p ?o } " + "UNION { ?s ?p ?o } " * LEVELS,
    "optionals": "OPTIONAL { ?s ?p ?x } " * LEVELS,
    "binds": "BIND(1 AS ?x) " * LEVELS,
    "filters": "FILTER <e:f>(1) " * LEVELS,
    "paths": "?s <a:p>" + "/<a:p>" * LEVELS + " ?o",
    "nots": "FILTER(" + "!" * LEVELS + "?o)",
    "brackets": "FILTER(" + "(" * LEVELS + "1" + ")" * LEVELS + ")",
    "escapes": "FILTER(" + "\\u0028" * LEVELS + "1" + ")" * LEVELS + ")",
    "groups": "{" * LEVELS + "}" * LEVELS,
    "comparisons": 'FILTER(?o<?o#> """\n && ' + "(" * LEVELS + "1" + ")" * LEVELS + ")",
    "compared": 'FILTER(?o<?o#> """\n ' + "+ 1 " * LEVELS + ")",
    "terms": "?s ?p " + "<<( ?s ?p " * LEVELS + "?o" + " )>>" * LEVELS,
}


@pytest.mark.parametrize("name", CHAINS)
def test_updates_have_limits(name: str) -> None:
    with pytest.raises(TooDeep):
        check_update(f"DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o . {CHAINS[name]} }}")


def test_ordinary_updates_are_long() -> None:
    check_update("INSERT { " + "?s <a:p> -1.5 , 'it (is)' ; a [ <a:q> (1 2) ] . " * 5_000 + "} WHERE { ?s ?p ?o }")
    check_update("DELETE { ?s ?p ?o } WHERE { VALUES (?s ?o) { " + "(<a:s> 1) " * 10_000 + "} ?s ?p ?o }")
    check_update("INSERT DATA { <a:s> <http://a/#(> 1 } ; " * 5_000)


def test_an_update_that_is_too_deep_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<a:s> <a:p> <a:o> .\n")
    from headwater.datasets.loading.bulk_load import load

    load(tmp_path / "data", [tmp_path / "a.nt"])
    data = DataSet.open(tmp_path / "data")
    with pytest.raises(QueryError, match="nothing is changed: nested deeper than 64 levels") as caught:
        data.update(f"DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o . {CHAINS['brackets']} }}")
    assert len(str(caught.value)) < 1_000
    assert data.statements == 1


def test_queries_have_the_limit() -> None:
    parse("SELECT * { ?s ?p ?o FILTER(" + "(" * 60 + "?o" + ")" * 60 + ") }")
    for opening, closing in (("(", ")"), ("!(", ")"), ("STR(", ")")):
        for levels in (65, LEVELS):
            with pytest.raises(QueryError, match="more than 64 brackets within brackets"):
                parse(f"SELECT * {{ ?s ?p ?o FILTER({opening * levels}?o{closing * levels}) }}")
    with pytest.raises(QueryError, match="more than 64 brackets"):
        parse("SELECT * " + "{" * LEVELS + "}" * LEVELS)


def test_the_limit_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NESTING_VARIABLE, "100")
    assert len(parse_quads(nested_statement(100), RdfFormat.N_TRIPLES)) == 1
    for wrong in ("0", "many", "100000", "-1"):
        monkeypatch.setenv(NESTING_VARIABLE, wrong)
        with pytest.raises(SettingError, match="whole number from 1 to 512"):
            deepest_nesting()


PARSERS = {"parse", "parse_query_results", "load", "bulk_load"}
QUERIES = {"query", "update"}
CHECKED_QUERIES = {
    "headwater/algebra/pyoxigraph_expressions.py": "check_generated_query",
    "headwater/datasets/updates.py": "check_update",
    "headwater/reference/reference_evaluator.py": "check_text_of_plan",
    "headwater/kernel/expressions/pyoxigraph_evaluation.py": "check_text_of_plan",
    "headwater/optimizer/constant_values.py": "check_text_of_plan",
    "headwater/server/protocol/plain_queries.py": "check_text_of_plan",
    "headwater/server/protocol/store_mirror.py": "check_update",
}
"""Who gives text to a store, and the check that it makes before."""


def test_every_call_into_pyoxigraph_is_checked() -> None:
    """Parsers are imported in one module only; what asks a store checks its text."""
    importers, askers = set(), set()
    for path in (PROJECT / "headwater").rglob("*.py"):
        name = str(path.relative_to(PROJECT))
        tree = ast.parse(path.read_text("utf-8"))
        imports_store = False
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "pyoxigraph":
                names = {alias.name for alias in node.names}
                imports_store = imports_store or "Store" in names
                if names & PARSERS:
                    importers.add(name)
            elif isinstance(node, ast.Import) and any(alias.name == "pyoxigraph" for alias in node.names):
                importers.add(name)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called = node.func.attr
                on_store = "store" in ast.unparse(node.func.value).lower()
                if called in QUERIES | PARSERS and on_store:
                    askers.add(name)
    assert importers == {"headwater/terms/checking/checked_parsing.py"}
    assert askers == set(CHECKED_QUERIES)
    for name, check in CHECKED_QUERIES.items():
        assert check in (PROJECT / name).read_text("utf-8")
