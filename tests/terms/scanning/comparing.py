"""Comparing the scanner with the line-by-line readers."""

from __future__ import annotations

from headwater.terms.ids.term_ids import encode
from headwater.terms.model import BadElement, Element
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.scanned_columns import ScannedColumns
from headwater.terms.scanning.scanner import scan
from headwater.terms.tnq import read_tnq
from tests.terms.scanning.scanned_elements import scanned_elements


def words(text: str) -> list[str]:
    """The words of a text, for long lists of short forms."""
    return text.split()


def triple_ids(elements: list[Element | BadElement]) -> list[list[int]]:
    """The ids that the slow way gives to the triples of elements."""
    return [
        [encode(triple.subject), encode(triple.predicate), encode(triple.object)]
        for element in elements
        if isinstance(element, Element)
        for triple in element.triples
    ]


def scan_like_the_reader(text: bytes) -> ScannedColumns:
    """Scan timed N-Quads, after a check that elements, reports and ids are those of the reader."""
    expected = list(read_tnq(text, "s"))
    scanned = scan(text, LineFormat.TNQ, source="s")
    assert list(scanned_elements(scanned)) == expected
    assert scanned.triples.tolist() == triple_ids(expected)
    assert scanned.element_sizes.tolist() == [len(e.triples) for e in expected if isinstance(e, Element)]
    return scanned


def timed(*statements: str | bytes) -> bytes:
    """Statements as lines of timed N-Quads."""
    given = (statement.encode() if isinstance(statement, str) else statement for statement in statements)
    return b"".join(b"1000\t" + statement + b"\n" for statement in given)
