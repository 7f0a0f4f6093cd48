"""A batch is what lies between two offsets: however it is cut, each element is read once, in the same place."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.sources.feed import Chunk, Feed
from headwater.sources.offsets import Offset
from headwater.terms.model import BadElement, Element, Literal, NamedNode, Triple
from headwater.windows.element_sequences import elements_of
from tests.engine.programs import integer, sensor_lines, write

S = "http://ex/s"


def offsets(feed: Feed, start: Offset, limit: int | None) -> list[Offset]:
    """The ends of all batches from a start until nothing is new, each once through JSON as in a checkpoint."""
    found = [start]
    while (end := feed.next_offset(found[-1], limit)) != found[-1]:
        found.append(Offset.from_json(json.loads(json.dumps(end.to_json()))))
    return found


def chunks_between(feed: Feed, ends: Iterable[Offset], size: int | None = None) -> list[Chunk]:
    return [
        chunk
        for start, end in pairwise(ends)
        for task in feed.read_tasks(start, end, size)
        for chunk in feed.read(task)
    ]


def elements_in(chunk: Chunk) -> list[Element]:
    return elements_of(list(chunk.elements) if isinstance(chunk.elements, tuple) else chunk.elements)


def read_all(
    feed: Feed, start: Offset | None = None, limit: int | None = None, size: int | None = None
) -> tuple[list[Element | BadElement], Offset]:
    ends = offsets(feed, start or Offset(), limit)
    found: list[Element | BadElement] = []
    for chunk in chunks_between(feed, ends, size):
        found += [*elements_in(chunk), *chunk.bad]
    return found, ends[-1]


def in_order(found: Iterable[Element | BadElement]) -> list[Element | BadElement]:
    return sorted(found, key=lambda element: element.position)


def finite(source: object, *, drain: bool = True) -> Feed:
    feed = Feed({S: source}, drain=drain)  # type: ignore[dict-item]
    feed.finish()
    return feed


@given(limit=st.integers(1, 3000), size=st.integers(1, 900), chunk=st.integers(1, 900), lines=st.integers(0, 60))
def test_any_cut_of_files_gives_each_element_once(
    tmp_path_factory: object, limit: int, size: int, chunk: int, lines: int
) -> None:
    folder = tmp_path_factory.mktemp("feed")  # type: ignore[attr-defined]
    write(folder / "a1.tnq", sensor_lines(lines))
    write(folder / "a2.tnq", sensor_lines(lines // 2))
    whole, _ = read_all(finite(hw.files(folder)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headwater.sources.feed._CHUNK_BYTES", chunk)
        cut, end = read_all(finite(hw.files(folder)), limit=limit, size=size)
    assert in_order(cut) == in_order(whole)
    assert len({element.position for element in cut}) == len(cut)
    assert end.of(S).has_ended


def test_the_end_of_a_stream_is_said_once_and_with_its_last_elements(tmp_path: Path) -> None:
    write(tmp_path / "a.tnq", sensor_lines(40))
    feed = finite(hw.files(tmp_path))
    ends = offsets(feed, Offset(), 1000)
    said = [[chunk.has_ended for chunk in chunks_between(feed, pair)] for pair in pairwise(ends)]
    assert len(said) > 2
    assert [any(batch) for batch in said] == [False] * (len(said) - 1) + [True]
    assert said[-1].count(True) == 1
    assert len(said[-1]) > 1


def test_without_draining_no_end_is_said_and_an_unfinished_line_waits(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tnq", [f"1\t<{S}> <{S}> {integer(1)} ."])
    with open(path, "a") as stream:
        stream.write(f"2\t<{S}> <{S}> ")
    first, end = read_all(finite(hw.files(tmp_path), drain=False))
    assert [element.time for element in first if isinstance(element, Element)] == [1000]
    assert len(first) == 1
    assert not end.of(S).has_ended
    with open(path, "a") as stream:
        stream.write(f"{integer(2)} .\n")
    second, _ = read_all(finite(hw.files(tmp_path), drain=False), end)
    assert [element.time for element in second if isinstance(element, Element)] == [2000]


def test_what_is_appended_is_read_on_from_where_it_was(tmp_path: Path) -> None:
    """A growing element becomes two with the same time, and nothing is lost or doubled."""
    path = write(tmp_path / "a.tnq", [f"1\t<{S}> <{S}> {integer(1)} ."])
    feed = Feed({S: hw.files(tmp_path)})
    first, end = read_all(feed)
    planned = feed.next_offset(Offset())
    write(path, [f"1\t<{S}> <{S}> {integer(2)} .", f"2\t<{S}> <{S}> {integer(3)} ."], append=True)
    second, end = read_all(feed, end, size=5)
    found = [element for element in [*first, *second] if isinstance(element, Element)]
    assert [(element.time, len(element.triples)) for element in found] == [(1000, 1), (1000, 1), (2000, 1)]
    assert read_all(feed, end) == ([], end)
    # The first batch, planned before the file grew and read again after, has what it had.
    again = [element for chunk in chunks_between(feed, [Offset(), planned], 3) for element in elements_in(chunk)]
    assert again == first


def test_a_large_piece_is_read_in_chunks_and_only_the_first_follows_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.tnq", [f"1\t<{S}> <{S}> {integer(1)} ."])
    feed = Feed({S: hw.files(tmp_path)}, drain=False)
    _, end = read_all(feed)
    # The first of these has the time of the element that was read before, and is another one all the same.
    with open(path, "a") as stream:
        stream.writelines(f"1\t<{S}> <{S}> {integer(n)} .\n" for n in range(2, 30))
    whole, _ = read_all(feed, end)
    monkeypatch.setattr("headwater.sources.feed._CHUNK_BYTES", 100)
    (task,) = feed.read_tasks(end, feed.next_offset(end, None))
    chunks = list(feed.read(task))
    assert len(chunks) > 5
    assert [element for chunk in chunks for element in elements_in(chunk)] == whole
    assert len(whole) == 1


def test_files_that_come_later_come_behind_those_seen(tmp_path: Path) -> None:
    write(tmp_path / "b.tnq", [f"1\t<{S}> <{S}> {integer(1)} ."])
    feed = Feed({S: hw.files(tmp_path)})
    _, end = read_all(feed)
    write(tmp_path / "a.tnq", [f"2\t<{S}> <{S}> {integer(2)} ."])
    write(tmp_path / "b.tnq", [f"3\t<{S}> <{S}> {integer(3)} ."], append=True)
    more, _ = read_all(feed, end)
    assert [element.position[0] for element in more] == [0, 1]


def test_a_followed_folder_may_be_missing_at_first(tmp_path: Path) -> None:
    feed = Feed({S: hw.files(tmp_path / "later")})
    nothing, end = read_all(feed)
    assert nothing == []
    write(tmp_path / "later" / "a.tnq", sensor_lines(5, bad_every=0))
    more, _ = read_all(feed, end)
    assert len(more) == 5


def test_a_finite_feed_reads_nothing_that_came_after_it_began(tmp_path: Path) -> None:
    write(tmp_path / "a.tnq", sensor_lines(5, bad_every=0))
    feed = finite(hw.files(tmp_path))
    write(tmp_path / "a.tnq", sensor_lines(5, bad_every=0), append=True)
    write(tmp_path / "b.tnq", sensor_lines(5, bad_every=0))
    found, _ = read_all(feed, limit=100)
    assert len(found) == 5


def test_the_rest_of_a_line_that_was_read_too_early_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.tnq"
    path.write_text(f"1\t<{S}> <{S}> {integer(1)} .\n2\t<{S}> <{S}> ")
    first, end = read_all(finite(hw.files(tmp_path)))
    assert [type(element) for element in in_order(first)] == [Element, BadElement]
    with open(path, "a") as stream:
        stream.write(f"{integer(2)} .\n3\t<{S}> <{S}> {integer(3)} .\n")
    second, _ = read_all(finite(hw.files(tmp_path)), end)
    bad, element = in_order(second)
    assert isinstance(bad, BadElement) and "whole lines" in bad.reason and bad.line == 2
    assert isinstance(element, Element) and element.time == 3000


def test_files_that_change_where_they_must_not_are_reported(tmp_path: Path) -> None:
    text = '<http://ex/g> { <http://ex/g> <http://www.w3.org/ns/prov#generatedAtTime> "5" }\n'
    (tmp_path / "a.trig").write_text(text)
    write(tmp_path / "b.tnq", sensor_lines(5, bad_every=0))
    feed = Feed({S: hw.files(tmp_path)})
    found, end = read_all(feed)
    assert len(found) == 6
    (tmp_path / "a.trig").write_text(text + text.replace("/g>", "/h>"))
    write(tmp_path / "b.tnq", sensor_lines(2, bad_every=0))
    found, end = read_all(feed, end)
    reasons = [element.reason for element in in_order(found) if isinstance(element, BadElement)]
    assert len(found) == 2
    assert "changed after it was read" in reasons[0] and "was cut" in reasons[1]
    write(tmp_path / "b.tnq", [f"9\t<{S}> <{S}> {integer(1)} ."], append=True)
    found, end = read_all(feed, end)
    assert [element.time for element in found if isinstance(element, Element)] == [9000]


def test_gzipped_files_are_read_whole_whatever_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.sources.feed._CHUNK_BYTES", 10)
    lines = "".join(f"{line}\n" for line in sensor_lines(50, bad_every=0))
    (tmp_path / "a.tnq.gz").write_bytes(gzip.compress(lines.encode()))
    found, _ = read_all(finite(hw.files(tmp_path)), limit=1, size=1)
    assert len(found) == 50


def test_streams_move_on_together(tmp_path: Path) -> None:
    """A batch takes from each stream in proportion to what it has left, so that none waits for another's end."""
    write(tmp_path / "long.tnq", sensor_lines(400, bad_every=0))
    write(tmp_path / "short.tnq", sensor_lines(40, bad_every=0))
    feed = Feed({"long": hw.files(tmp_path / "long.tnq"), "short": hw.files(tmp_path / "short.tnq")})
    feed.finish()
    ends = offsets(feed, Offset(), 4000)
    halfway = ends[len(ends) // 2]
    for stream in ("long", "short"):
        share = halfway.of(stream).items[0].end / (tmp_path / f"{stream}.tnq").stat().st_size
        assert 0.3 < share < 0.7


def test_elements_in_memory_are_cut_like_files() -> None:
    triple = Triple(NamedNode(S), NamedNode(S), Literal("x"))
    source = hw.memory([(time, [triple]) for time in range(20)])
    found, end = read_all(finite(source), limit=700, size=300)
    assert [element.time for element in found if isinstance(element, Element)] == list(range(20))
    assert end.of(S).has_ended
    assert offsets(finite(source), end, 700) == [end]


def test_a_run_without_streams_still_begins() -> None:
    feed = Feed({})
    feed.finish()
    assert chunks_between(feed, offsets(feed, Offset(), None)) == [Chunk(None)]


@pytest.mark.parametrize("limit", [1, 20, 41, 60, 90])
@pytest.mark.parametrize("written", [1, 2, 3])
def test_an_element_whose_lines_are_still_being_written_loses_none(tmp_path: Path, written: int, limit: int) -> None:
    """Batches that are planned while a part of the lines is there, and that end in their midst."""
    path = tmp_path / "s.tnq"
    lines = [f"1000\t<urn:s{number}> <urn:p> <urn:o> ." for number in range(4)]
    lines.append("2000\t<urn:s4> <urn:p> <urn:o> .")
    write(path, lines[:written])
    feed, begin, found = Feed({"s": hw.files(path)}, drain=False), Offset(), list[Element]()
    while (end := feed.next_offset(begin, limit)) != begin:
        for task in feed.read_tasks(begin, end):
            found += [element for chunk in feed.read(task) for element in elements_in(chunk)]
        if not begin.has_begun:
            # The rest comes between two batches, when the first one was read.
            write(path, lines[written:], append=True)
        begin = end
    assert [str(triple.subject) for one in found for triple in one.triples] == [f"<urn:s{n}>" for n in range(5)]


def test_the_text_of_an_element_that_was_appended_apart_is_found(tmp_path: Path) -> None:
    """It has the time of the element before it, which was read by then: both are elements, and may be late."""
    path = tmp_path / "s.tnq"
    write(path, ["1000\t<urn:s0> <urn:p> <urn:o> ."])
    feed = Feed({"s": hw.files(path)}, drain=False)
    first = feed.next_offset(Offset())
    write(path, ["1000\t<urn:s1> <urn:p> <urn:o> ."], append=True)
    (task,) = feed.read_tasks(first, feed.next_offset(first))
    ((element,),) = [elements_in(chunk) for chunk in feed.read(task)]
    assert feed.text_at("s", str(path), element.position) == "<urn:s1> <urn:p> <urn:o> ."
