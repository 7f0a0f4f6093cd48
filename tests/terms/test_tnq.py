"""Timed N-Quads against an obvious reader that goes line by line, whole and in byte ranges."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, RdfFormat, parse

from headwater.terms.element_files import element_reader
from headwater.terms.model import BadElement, Element
from headwater.terms.timestamps import parse_time
from headwater.terms.tnq import read_tnq
from tests.terms.strategies import triples

good_lines = st.builds(
    lambda time, subject, graph, end: f'{time}\t<a:s{subject}> <a:p> "é" {graph}.{end}'.encode(),
    st.sampled_from(["1000", "1970-01-01T00:00:01Z", "2000", "-5", "2014-08-01T07:50:00.5+02:00"]),
    st.integers(0, 3),
    st.sampled_from(["", "", "<a:g> ", "_:g "]),
    st.sampled_from(["", " # note", "\r", "  "]),
)
other_lines = st.sampled_from(
    [
        *(b"", b"  ", b"# 1000\t<a:s> <a:p> <a:o> .", b"\r", b"#"),
        *(b"1000", b"1000 <a:s> <a:p> <a:o> .", b"noon\t<a:s> <a:p> <a:o> .", b"\t<a:s> <a:p> <a:o> ."),
        *(b"1000\t", b"1000\t# nothing", b"1000\t<a:s> <a:p>", b"1000\t<a:s> <a:p> <a:o>", b"1000\t\xff"),
        *(
            b"1000\t<a:s> <a:p> <a:o> . <a:s> <a:p> <a:o2> .",
            b"1000\t<a:s> <a:p> <a:o> .\r<a:s> <a:p> <a:o2> .",
        ),
        *(
            b'1000\t<a:s> <a:p> "open .',
            b"1000\t<s> <a:p> <a:o> .",
            b"99999999999999999\t<a:s> <a:p> <a:o> .",
        ),
    ]
)
texts = st.builds(
    lambda lines, last, mark: mark + b"\n".join(lines) + last,
    st.lists(st.one_of(good_lines, good_lines, other_lines), max_size=14),
    st.sampled_from([b"", b"\n"]),
    st.sampled_from([b"", b"", b"\xef\xbb\xbf"]),
)


def read_slowly(text: bytes) -> list[Element | BadElement]:
    """The definition: one line after the other, each parsed on its own."""
    found: list[Element | BadElement] = []
    last_good: tuple[int, object, int] | None = None
    offset = 0
    for number, raw in enumerate(text.split(b"\n"), 1):
        line = raw.rstrip(b"\r")
        line = line.removeprefix(b"\xef\xbb\xbf") if offset == 0 else line
        place = (offset,)
        offset += len(raw) + 1
        if not line.strip() or line.startswith(b"#"):
            continue
        try:
            time_text, statement = line.split(b"\t", 1)
            time = parse_time(time_text.decode())
            (quad,) = parse(statement, format=RdfFormat.N_QUADS)
        except (ValueError, SyntaxError):
            found.append(BadElement("", line.decode("utf-8", "backslashreplace"), "s", place, number))
            continue
        if last_good is not None and last_good[:2] == (time, quad.graph_name):
            element = found[last_good[2]]
            assert isinstance(element, Element)
            found[last_good[2]] = Element(time, (*element.triples, quad.triple), element.graph, element.position)
        else:
            name = None if isinstance(quad.graph_name, DefaultGraph) else str(quad.graph_name).strip("<>")
            last_good = (time, quad.graph_name, len(found))
            found.append(Element(time, (quad.triple,), name, place))
    return found


def without_reasons(elements: list[Element | BadElement]) -> list[Element | BadElement]:
    return [BadElement("", e.text, e.source, e.position, e.line) if isinstance(e, BadElement) else e for e in elements]


@given(texts)
def test_the_fast_reader_agrees_with_the_slow_one(text: bytes) -> None:
    found = list(read_tnq(text, "s"))
    assert without_reasons(found) == read_slowly(text)
    assert all(e.reason for e in found if isinstance(e, BadElement))


@given(texts, st.integers(1, 120))
def test_byte_ranges_give_what_the_whole_file_gives(tmp_path_factory, text: bytes, size: int) -> None:
    path: Path = tmp_path_factory.mktemp("ranges") / "s.tnq"
    path.write_bytes(text)
    reader = element_reader(path, source="s")
    ranges = reader.split_ranges(size)
    assert [start for start, _ in ranges] == [0, *(end for _, end in ranges)][: len(ranges)]
    in_ranges = [element for start, end in ranges for element in reader.read_range(start, end)]
    assert sorted(in_ranges, key=lambda e: e.position) == list(reader.read()) == list(read_tnq(text, "s"))


@given(st.lists(st.tuples(st.integers(0, 3), triples), max_size=10))
def test_any_triple_survives(found) -> None:
    text = "".join(f"{time}\t{triple} .\n" for time, triple in found)
    read = list(read_tnq(text.encode(), "s"))
    assert [t for e in read if isinstance(e, Element) for t in e.triples] == [triple for _, triple in found]


def test_a_broken_line_does_not_end_the_element_around_it() -> None:
    text = b"1000\t<a:s> <a:p> <a:o1> .\n1000\tbroken\n\n# note\n1000\t<a:s> <a:p> <a:o2> .\n"
    text += b"2000\t<a:s> <a:p> <a:o> .\n"
    first, bad, second = read_tnq(text, "stream.tnq")
    assert isinstance(first, Element) and isinstance(bad, BadElement) and isinstance(second, Element)
    assert len(first.triples) == 2
    assert (bad.line, bad.text, bad.source, bad.position) == (2, "1000\tbroken", "stream.tnq", (26,))
    assert second.time == 2_000_000


def test_an_element_across_blocks_and_across_many_ranges(tmp_path: Path) -> None:
    lines = [f"{n // 6000}\t<a:s{n}> <a:p> <a:o> .\n" for n in range(15_000)]
    lines[7000] = "0\tbroken\n"
    path = tmp_path / "s.tnq"
    path.write_text("".join(lines))
    reader = element_reader(path)
    whole = list(reader.read())
    assert [len(e.triples) if isinstance(e, Element) else e.line for e in whole] == [6000, 5999, 7001, 3000]
    in_ranges = [e for start, end in reader.split_ranges(20_000) for e in reader.read_range(start, end)]
    assert sorted(in_ranges, key=lambda e: e.position) == whole


def test_blank_nodes_keep_their_labels() -> None:
    (element,) = read_tnq(b"0\t_:x <a:p> _:y _:g .", "s")
    assert isinstance(element, Element)
    assert [str(triple) for triple in element.triples] == ["_:x <a:p> _:y"]
    assert element.graph == "_:g"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"1000 <a:s> <a:p> <a:o> .", "no tab"),
        (b"noon\t<a:s> <a:p> <a:o> .", "'noon' is not a time"),
        (b"1000\t", "found none"),
        (b"1000\t<a:s> <a:p> <a:o>", "dot"),
    ],
)
def test_reasons(line: bytes, reason: str) -> None:
    (bad,) = read_tnq(line, "s")
    assert isinstance(bad, BadElement)
    assert reason in bad.reason


def test_lines_of_a_growing_stream_are_read_as_they_come() -> None:
    lines = [b"1\t<a:s> <a:p> <a:o> .\n", b"2\t<a:s> <a:p> <a:o> .\n"]
    assert [e.position for e in read_tnq(iter(lines), "s", first_position=100)] == [(100,), (122,)]
