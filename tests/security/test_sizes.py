"""Entities of XML, documents of the web, literals and lines have limits; what is left out is reported."""

from __future__ import annotations

import http.server
import io
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat

from headwater.commands.load_command import report_text
from headwater.datasets.dataset import DataSet
from headwater.datasets.errors import DataSetError, StrictLoadError
from headwater.datasets.loading.bulk_load import load
from headwater.datasets.loading.temporary_dataset import add_statements
from headwater.engine.watched_data import WebDocument
from headwater.sinks.dead_letters import DeadLetter, dead_letter_to_json
from headwater.sources.source import SourceError
from headwater.sources.spool import Spool, SpoolSource
from headwater.terms import text_lines
from headwater.terms.checking.checked_parsing import parse_quads, read_document
from headwater.terms.checking.input_limits import DOCUMENT_VARIABLE, LARGEST_TERM
from headwater.terms.element_files import element_reader
from headwater.terms.model import BadElement, Element, Literal, NamedNode, Quad
from headwater.terms.rdf_documents import RdfSyntaxError, read_quads
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.long_lines import hide_long_lines
from headwater.terms.scanning.padded_text import PaddedText
from headwater.terms.scanning.ranges import scan_range
from headwater.terms.scanning.scanner import scan

RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="e:"'


def document(entities: str, literal: str) -> bytes:
    return (
        f'<?xml version="1.0"?><!DOCTYPE rdf:RDF [{entities}]><rdf:RDF {RDF}><rdf:Description rdf:about="a:a">'
        f"<e:p>{literal}</e:p></rdf:Description></rdf:RDF>"
    ).encode()


BOMB = document(
    '<!ENTITY a "' + "x" * 100 + '"><!ENTITY b "' + "&a;" * 100 + '"><!ENTITY c "' + "&b;" * 100 + '">', "&c;"
)

SMALL_BOMB = document(
    '<!ENTITY a "xxxxxxxxxx">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcd", "bcde", strict=True)),
    "&e;",
)
"""So short that a reader gives it to the parser in one piece."""


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        SMALL_BOMB,
        document('<!ENTITY a "&#38;b;">', "&a;"),
        document('<!ENTITY a SYSTEM "file:///etc/passwd">', "&a;"),
        document('<!ENTITY % p "x">', "x"),
        document('<!ENTITY a "' + "x" * 300 + '">', "&a;" * 100),
        document("<!entity a '&b;'>", "x"),
    ],
)
def test_entities_that_grow_are_refused(text: bytes, tmp_path: Path) -> None:
    with pytest.raises(RdfSyntaxError, match=r"(?i)entity"):
        list(read_quads(text, format=RdfFormat.RDF_XML))
    (tmp_path / "bomb.rdf").write_bytes(text)
    with pytest.raises(RdfSyntaxError, match=r"(?i)entity"):
        list(read_quads(tmp_path / "bomb.rdf"))
    with pytest.raises(StrictLoadError, match=r"(?i)entity"):
        load(tmp_path / "data", [tmp_path / "bomb.rdf"], strict=True)


@pytest.mark.parametrize("size", [1, 10, 100])
def test_entities_are_found_in_pieces(size: int) -> None:
    class Source(io.BytesIO):
        def read(self, _: int | None = -1) -> bytes:
            return super().read(size)

    with pytest.raises(SyntaxError, match="entity"):
        list(read_document(Source(SMALL_BOMB), RdfFormat.RDF_XML))


def test_entities_that_are_names_are_read() -> None:
    """Many ontologies write their namespaces so."""
    (quad,) = parse_quads(document('<!ENTITY owl "http://www.w3.org/2002/07/owl#">', "&owl;Class"), RdfFormat.RDF_XML)
    assert quad.object == Literal("http://www.w3.org/2002/07/owl#Class")


@contextmanager
def serving(body: bytes) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/turtle")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/a.ttl"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_document_of_the_web_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(b"<a:s> <a:p> 1 .\n" * 1_000) as address:
        quads = WebDocument(address).read()
        assert quads is not None
        assert len(quads) == 1_000
        monkeypatch.setenv(DOCUMENT_VARIABLE, "10000")
        with pytest.raises(SourceError, match=f"more than 10,000 bytes, the limit of {DOCUMENT_VARIABLE}"):
            WebDocument(address).read()


LONG = "x" * (17 << 20)


@pytest.mark.parametrize("ending", [".nt", ".ttl", ".rdf", ".jsonld"])
def test_a_literal_that_is_too_long_is_reported(ending: str, tmp_path: Path) -> None:
    texts = {
        ".nt": f'<a:s> <a:p> "{LONG}" .\n<a:s> <a:p> <a:o> .\n',
        ".ttl": f'<a:s> <a:p> "{LONG}" .\n<a:s> <a:p> <a:o> .\n',
        ".rdf": document("", LONG).decode(),
        ".jsonld": json.dumps({"@id": "a:s", "a:p": LONG}),
    }
    file = tmp_path / f"long{ending}"
    file.write_text(texts[ending])
    with pytest.raises(StrictLoadError, match="bytes"):
        load(tmp_path / "strict", [file], strict=True)
    report = load(tmp_path / "data", [file])
    assert report.bad == 1
    assert "1 bad lines are listed in" in report_text(report, tmp_path / "data", 1.0)
    assert report.bad_lines is not None
    assert report.bad_lines.stat().st_size < 2 * text_lines.LONGEST_SHOWN
    assert DataSet.open(tmp_path / "data").statements == (1 if ending == ".nt" else 0)


def test_statements_in_memory_are_not_dropped_in_silence(tmp_path: Path) -> None:
    quad = Quad(NamedNode("a:s"), NamedNode("a:p"), Literal(LONG))
    with pytest.raises(DataSetError, match="nothing is added: the line has"):
        add_statements(tmp_path / "data", [quad])


def test_the_report_has_a_beginning_and_the_length() -> None:
    line = b"1000\t<a:s> <a:p> " + b"x" * 1_000_000
    (bad,) = scan(line + b"\n", LineFormat.TNQ).bad
    assert bad.text.startswith("1000\t<a:s> <a:p> xxx")
    assert bad.text.endswith("xxx… (1,000,017 bytes)")
    assert len(bad.text) < text_lines.LONGEST_SHOWN + 50
    letter = DeadLetter("late", "s:s", "reason", "y" * 1_000_000, "source")
    assert json.loads(dead_letter_to_json(letter))["text"].endswith("yyy… (1,000,000 characters)")


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are too long sooner."""
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 100)


def test_long_lines_are_reported_by_all_readers(short_lines: None, tmp_path: Path) -> None:
    good = b"1000\t<a:s> <a:p> <a:o> .\n"
    long = b'1000\t<a:s> <a:p> "' + b"x" * 200 + b'" .\n'
    path = tmp_path / "s.tnq"
    path.write_bytes(good + long + good + long.replace(b"1000", b"2000") + good.replace(b"1000", b"3000"))
    read = list(element_reader(path).read())
    assert [(one.time, len(one.triples)) for one in read if isinstance(one, Element)] == [
        (1_000_000, 2),
        (3_000_000, 1),
    ]
    bad = [one for one in read if isinstance(one, BadElement)]
    assert [one.line for one in bad] == [2, 4]
    assert all("the line has 221 bytes, and 100 are the limit" in one.reason for one in bad)
    for size in (10, 60, 250):
        cut = [
            one
            for start, end in element_reader(path).split_ranges(size)
            for one in element_reader(path).read_range(start, end)
        ]
        assert cut == read


def test_the_scanner_hides_long_lines() -> None:
    good, long = b"1000\t<a:s> <a:p> <a:o> .\n", b'1000\t<a:s> <a:p> "' + b"x" * 200 + b'" .\n'
    for text, numbers in ((good + long + good, [1]), (long + long, [0, 1]), (good * 20, []), (long, [0]), (b"", [])):
        padded = PaddedText.of(text)
        assert [line.number for line in hide_long_lines(padded, longest=100)] == numbers
        assert padded.content.tobytes().count(b"#") == len(numbers)
    assert not hide_long_lines(PaddedText.of(b"# " + long), longest=100)


def test_long_lines_are_read_linearly(tmp_path: Path) -> None:
    """Each range of a long line used to read the rest of it, and to go back to its beginning in growing pieces."""
    path = tmp_path / "long.tnq"
    size = 200 << 20
    with open(path, "wb") as stream:
        stream.write(b"1000\t<a:s> <a:p> <a:o> .\n1000\t")
        for _ in range(size >> 20):
            stream.write(b"x" * (1 << 20))
        stream.write(b"\n2000\t<a:s> <a:p> <a:o> .\n")
    begun = time.process_time()
    step = 1 << 20
    end = path.stat().st_size
    for start in range(2 * step, end - 2 * step, step):
        assert not len(scan_range(path, start, start + step).element_times)
    tail = scan_range(path, end - step, end)
    assert tail.element_times.tolist() == [2_000_000]
    assert time.process_time() - begun < 5


def test_a_message_in_the_spool_keeps_its_reason(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append([BadElement("no statement", "\x00" * 50_000, "topic")])
    spool.close()
    source = SpoolSource(str(tmp_path))
    (item,) = source.list_items()
    from headwater.sources.source import ItemRange

    (bad,) = source.read(ItemRange(item.name, 0, item.size))
    assert isinstance(bad, BadElement)
    assert bad.reason == "no statement"
    assert bad.text.endswith("(50,000 characters)")


def test_the_limit_is_below_what_parsers_take() -> None:
    text = b'<a:s> <a:p> "' + b"x" * (LARGEST_TERM - 100) + b'" .'
    assert len(parse_quads(text, RdfFormat.N_QUADS)) == 1
