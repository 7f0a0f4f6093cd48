"""Timed N-Quads: the scanner gives what the line-by-line reader gives, for any bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.model import BadElement, Element
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.padded_text import PaddedText
from headwater.terms.scanning.scanner import scan
from headwater.terms.tnq import read_tnq
from tests.terms.scanning.comparing import scan_like_the_reader, timed
from tests.terms.scanning.line_strategies import texts
from tests.terms.scanning.scanned_elements import scanned_elements


@given(texts)
def test_any_text_gives_what_the_reader_gives(text: bytes) -> None:
    scan_like_the_reader(text)


@given(st.lists(texts, min_size=1, max_size=3), st.integers(0, 100), st.integers(1, 50))
def test_positions_and_line_numbers_begin_where_they_are_told(parts: list[bytes], position: int, line: int) -> None:
    text = b"\n".join(parts)
    expected = list(read_tnq(text, "there", position, lambda: line))
    found = scan(text, source="there", first_position=position, first_line=lambda: line)
    assert list(scanned_elements(found)) == expected


@given(st.binary(max_size=200))
def test_any_bytes_at_all(text: bytes) -> None:
    scan_like_the_reader(text)


@given(texts, st.sampled_from([bytearray, memoryview, PaddedText.of]))
def test_all_kinds_of_buffers(text: bytes, kind) -> None:
    assert scan(kind(text)).triples.tolist() == scan(text).triples.tolist()


def test_usual_lines_are_read_without_the_parser() -> None:
    xsd = "http://www.w3.org/2001/XMLSchema#"
    scanned = scan_like_the_reader(
        timed(
            "<http://ex/s> <http://ex/p#q> <https://ex.org/o> .",
            '<http://localhost:8080/s> <urn:p:q> "21.5"^^<http://www.w3.org/2001/XMLSchema#double> .',
            f'_:b1 <http://ex/at> "2014-08-01T07:50:00.125+02:00"^^<{xsd}dateTime> <http://ex/g> .',
            f'<http://ex/s> <http://ex/p> "10.212459373016372"^^<{xsd}double> .',
            f'<http://ex/s> <http://ex/p> "1.5E300"^^<{xsd}double> .',
            '<http://ex/s> <http://ex/p> "Ærøskøbing, 東京"@de-ch .',
            '<http://ex/s> <http://ex/p> "a line\\nand a \\"second\\" one" .',
            f'<http://ex/s> <http://ex/p> "7"^^<{xsd}nonNegativeInteger> .',
            f'<http://ex/s> <http://ex/p%20q> "plain"^^<{xsd}string> . # note',
            r"""<http://ex/東京> <file:///p> "\u00c6r\u00f8 \U0001F600 it\'s"@en-US .""",
            '<http://ex/s> <http://ex/p> "a\\tb" .',
        )
    )
    assert scanned.lines == 11
    assert scanned.parsed_lines == 0


def test_the_share_of_parsed_lines_is_counted() -> None:
    scanned = scan_like_the_reader(
        timed("<a:s> <a:p> <a:o> .", "<a:s> <a:p> <a:\\u00e9> .", "broken", "_:a.b <a:p> <<( <a:s> <a:p> <a:o> )>> .")
    )
    assert (scanned.lines, scanned.parsed_lines, len(scanned.bad)) == (4, 3, 1)


@pytest.mark.parametrize("length", [1 << 15, (1 << 16) + 5, 1 << 20])
def test_long_terms(length: int) -> None:
    long = "x" * length
    scan_like_the_reader(
        timed(
            f'<a:s> <a:p> "{long}" .',
            f"<http://ex/{long}> <a:p> <a:{long}> .",
            f"_:{long} <a:p> _:b .",
            "<a:s> <a:p> <a:o> .",
        )
    )


def test_a_line_that_is_too_long_is_reported() -> None:
    text = timed("<a:s> <a:p> <a:o> .", '<a:s> <a:p> "' + "x" * (1 << 24) + '" .', "<a:s> <a:p> <a:o2> .")
    element, bad = scanned_elements(scan(text, source="s"))
    assert isinstance(element, Element) and isinstance(bad, BadElement)
    assert len(element.triples) == 2
    assert "16,000,000 are the limit" in bad.reason
    assert bad.line == 2


def test_nothing_at_all() -> None:
    for format in LineFormat:
        scanned = scan(b"", format)
        assert (len(scanned), len(scanned.element_times), len(scanned.texts()), scanned.lines) == (0, 0, 0, 0)


def test_too_much_at_once_is_refused() -> None:
    with pytest.raises(ValueError, match="in ranges"):
        PaddedText.empty(1 << 31)
