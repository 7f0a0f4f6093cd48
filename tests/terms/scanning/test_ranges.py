"""Byte ranges: any cut of a file gives the elements of the whole file, as the reader's ranges do."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.element_files import element_reader
from headwater.terms.model import BadElement, Element
from headwater.terms.scanning import ranges
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.ranges import scan_range
from headwater.terms.scanning.scanner import scan
from tests.terms.scanning.comparing import triple_ids
from tests.terms.scanning.line_strategies import texts
from tests.terms.scanning.scanned_elements import scanned_elements

SMALL = (
    b'1000\t<a:s> <a:p> <a:1> .\n1000\t<a:s> <a:p> "x\\u00e9" .\n# note\n1000\tbroken\n1000\t<a:s> <a:p> <a:2> .\r\n'
    b"1000\t<a:s> <a:p> <a:3> <a:g> .\n\n2000\t<a:s> <a:p> <a:4> <a:\xc3\xa9> .\n"
    b"2000\t<a:s> <a:p> <a:5> <a:\xc3\xa9> .\n1000\t<a:s> <a:p> <a:6> .\nbroken\n1000\t<a:s> <a:p> <a:7> ."
)


def in_ranges(path: Path, cuts: list[int]) -> list[Element | BadElement]:
    bounds = [0, *cuts, path.stat().st_size]
    found: list[Element | BadElement] = []
    for start, end in pairwise(bounds):
        scanned = scan_range(path, start, end, source="s")
        elements = list(scanned_elements(scanned))
        assert scanned.triples.tolist() == triple_ids(elements)
        assert scanned.element_rows.tolist()[0] == 0
        found += elements
    return found


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.tnq"
    path.write_bytes(SMALL)
    return path


@pytest.mark.parametrize("ahead", [1, 40, 1 << 16])
def test_every_range_of_a_small_file(small_file: Path, ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "LOOK_AHEAD", ahead)
    reader = element_reader(small_file, source="s")
    whole = list(reader.read())
    assert list(scanned_elements(scan_range(small_file, source="s"))) == whole
    for cut in range(len(SMALL) + 1):
        assert in_ranges(small_file, [cut]) == whole
    for start in range(0, len(SMALL), 11):
        for end in range(start, len(SMALL) + 2, 13):
            expected = list(reader.read_range(start, end))
            assert list(scanned_elements(scan_range(small_file, start, end, source="s"))) == expected


@given(texts, st.lists(st.integers(0, 400), max_size=4), st.sampled_from([1, 30, 1 << 16]))
def test_any_cut_of_any_file(tmp_path_factory, text: bytes, cuts: list[int], ahead: int) -> None:
    path: Path = tmp_path_factory.mktemp("ranges") / "s.tnq"
    path.write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "LOOK_AHEAD", ahead)
        found = in_ranges(path, sorted(min(cut, len(text)) for cut in cuts))
    assert found == list(element_reader(path, source="s").read())


def test_a_long_element_across_many_ranges(tmp_path: Path) -> None:
    lines = [f"{n // 6000}\t<a:s{n}> <a:p> <a:o> .\n" for n in range(15_000)]
    lines[7000] = "0\tbroken\n"
    path = tmp_path / "s.tnq"
    path.write_text("".join(lines))
    size = path.stat().st_size
    assert in_ranges(path, list(range(20_000, size, 20_000))) == list(element_reader(path, source="s").read())


def test_a_growing_file(small_file: Path) -> None:
    """What stood behind the limit is a new element later, even with the time and graph of the one before."""
    limit = SMALL.index(b"1000\t<a:s> <a:p> <a:2>")
    first = list(scanned_elements(scan_range(small_file, 0, limit, limit=limit, source="s")))
    later = list(scanned_elements(scan_range(small_file, limit, None, after_end=True, source="s")))
    assert [len(e.triples) for e in first + later if isinstance(e, Element)] == [2, 1, 1, 2, 2]
    cut_line = list(scanned_elements(scan_range(small_file, 0, 20, limit=20, source="s")))
    assert [type(element) for element in cut_line] == [BadElement]


@pytest.mark.parametrize("format", [LineFormat.N_QUADS, LineFormat.N_TRIPLES])
def test_documents_in_ranges(tmp_path: Path, format: LineFormat) -> None:
    text = b'<a:1> <a:p> <a:o> .\n# note\n<a:2> <a:p> "\\u00e9" .\r\nbroken\n\n<a:3> <a:p> <a:o> .'
    path = tmp_path / "s.nq"
    path.write_bytes(text)
    whole = scan(text, format, source="s")
    assert (len(whole), len(whole.bad)) == (3, 1)
    for cut in range(len(text) + 1):
        parts = [scan_range(path, 0, cut, format, source="s"), scan_range(path, cut, None, format, source="s")]
        assert [row for part in parts for row in part.triples.tolist()] == whole.triples.tolist()
        assert tuple(bad for part in parts for bad in part.bad) == whole.bad
