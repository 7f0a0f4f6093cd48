"""N-Triples and N-Quads documents: the same quads as pyoxigraph, and bad lines where it finds none."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import assume, given
from pyoxigraph import DefaultGraph, Quad, RdfFormat, parse, serialize

from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import Element
from headwater.terms.rdf_documents import RdfSyntaxError, read_quads
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.scanned_columns import ScannedColumns
from headwater.terms.scanning.scanner import scan
from tests.shared_data import shared_data
from tests.terms.scanning.line_strategies import documents
from tests.terms.scanning.scanned_elements import scanned_elements

FORMATS = [LineFormat.N_TRIPLES, LineFormat.N_QUADS]


def quads_of(scanned: ScannedColumns) -> list[Quad]:
    """The quads of scanned columns, by the way of elements."""
    found = []
    for element in scanned_elements(scanned):
        if isinstance(element, Element):
            name = element.graph
            document = "" if name is None else f"{name if name.startswith('_:') else f'<{name}>'} <a:p> <a:o> ."
            graph = DefaultGraph() if name is None else next(parse(document, format=RdfFormat.N_QUADS)).subject
            found += [Quad(t.subject, t.predicate, t.object, graph) for t in element.triples]
    return found


def ids_of(quad: Quad) -> list[int]:
    graph = quad.graph_name
    terms = [encode(quad.subject), encode(quad.predicate), encode(quad.object)]
    return [*terms, NO_TERM if isinstance(graph, DefaultGraph) else encode(graph)]


def check(document: bytes, format: LineFormat) -> ScannedColumns:
    scanned = scan(document, format, source="d")
    try:
        # The parser takes a byte order mark for text.
        quads = list(parse(document.removeprefix(b"\xef\xbb\xbf"), format=format.rdf_format))
    except SyntaxError as error:
        # A line feed inside a statement is an error of the line before it.
        assert b"\r" in document or scanned.bad[0].line in (error.lineno, (error.lineno or 0) - 1)
        assert scanned.bad
        return scanned
    assert not scanned.bad
    assert quads_of(scanned) == quads
    ids = [[*triple, graph] for triple, graph in zip(scanned.triples.tolist(), scanned.graphs.tolist(), strict=True)]
    assert ids == [ids_of(quad) for quad in quads]
    return scanned


@pytest.mark.parametrize("format", FORMATS)
@given(documents)
def test_any_document(format: LineFormat, document: bytes) -> None:
    check(document, format)


@pytest.mark.parametrize("format", FORMATS)
@given(documents)
def test_lines_are_independent_of_each_other(format: LineFormat, document: bytes) -> None:
    """What stands in one line does not change what the others say; a byte order mark is for a whole document."""
    assume(b"\n\xef\xbb\xbf" not in document)
    whole = scan(document, format)
    alone = [scan(line, format) for line in document.split(b"\n")]
    assert whole.triples.tolist() == [row for scanned in alone for row in scanned.triples.tolist()]
    assert whole.graphs.tolist() == [graph for scanned in alone for graph in scanned.graphs.tolist()]
    assert [bad.reason for bad in whole.bad] == [bad.reason for scanned in alone for bad in scanned.bad]


@pytest.mark.parametrize(("folder", "format"), [("rdf-n-triples", FORMATS[0]), ("rdf-n-quads", FORMATS[1])])
def test_w3c_files(folder: str, format: LineFormat) -> None:
    root = shared_data("w3c", "rdf", "rdf11", folder)
    manifest = list(read_quads(root / "manifest.ttl"))
    files = {quad.subject: str(quad.object).strip("<>") for quad in manifest if "#action" in quad.predicate.value}
    kinds = [(quad.subject, str(quad.object)) for quad in manifest if "Syntax>" in str(quad.object)]
    assert len(kinds) >= 69
    for test, kind in kinds:
        path = root / files[test].rpartition("/")[2]
        scanned = check(path.read_bytes(), format)
        assert bool(scanned.bad) is ("Negative" in kind), path


@pytest.mark.parametrize("name", ["AarhusCulturalEvents.n3", "AarhusLibraryEvents.n3", "SensorRepository.n3"])
def test_real_data_needs_the_parser_rarely(name: str) -> None:
    quads = islice(read_quads(shared_data("citybench", "static", name)), 5_000)
    document = serialize((quad.triple for quad in quads), format=RdfFormat.N_TRIPLES)
    assert document
    scanned = check(document, LineFormat.N_TRIPLES)
    assert scanned.parsed_lines < 0.01 * scanned.lines


def test_several_statements_behind_carriage_returns() -> None:
    document = (
        b"<a:1> <a:p> <a:o> .\r<a:2> <a:p> <a:o> .\r\r# note\r<a:3> <a:p> <a:o> <a:g> .\n<a:4> <a:p> <a:o> <a:g> ."
    )
    scanned = check(document, LineFormat.N_QUADS)
    assert (len(scanned), scanned.element_sizes.tolist()) == (4, [2, 2])


def test_reports_are_those_of_the_parser() -> None:
    document = b"<a:s> <a:p> <a:o> .\n<a:s> <a:p> <o> .\n"
    (bad,) = scan(document, LineFormat.N_TRIPLES, source="file.nt").bad
    with pytest.raises(RdfSyntaxError) as caught:
        list(read_quads(document, format=RdfFormat.N_TRIPLES))
    assert bad.reason.startswith(caught.value.reason)
    assert (bad.line, bad.position, bad.source) == (2, (20,), "file.nt")
