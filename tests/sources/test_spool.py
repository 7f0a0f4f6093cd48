"""A spool keeps what was received: whole lines, on disk, until they were read for good."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.sources.feed import Feed
from headwater.sources.offsets import Offset
from headwater.sources.spool import Spool, SpoolSource
from headwater.terms.model import BadElement, Element, Literal, NamedNode, Triple
from headwater.windows.element_sequences import elements_of

STREAM = "http://ex/s"
P = NamedNode("http://ex/p")


def element(number: int, *, graph: str | None = None) -> Element:
    return Element(number * 1_000, (Triple(NamedNode(f"http://ex/{number}"), P, Literal(str(number))),), graph)


def read_on(feed: Feed, start: Offset) -> tuple[list[Element], list[BadElement], Offset]:
    elements: list[Element] = []
    bad: list[BadElement] = []
    end = feed.next_offset(start)
    for task in feed.read_tasks(start, end):
        for chunk in feed.read(task):
            found = chunk.elements
            elements += elements_of(list(found) if isinstance(found, tuple) else found)
            bad += chunk.bad
    return elements, bad, end


def plain(elements: list[Element]) -> list[tuple[int, tuple[Triple, ...]]]:
    return [(one.time, one.triples) for one in elements]


@given(st.lists(st.lists(st.integers(0, 50), max_size=4), max_size=8), st.integers(1, 400))
def test_what_goes_in_comes_out_in_order(groups: list[list[int]], file_bytes: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        spool = Spool(Path(folder), file_bytes=file_bytes)
        feed = Feed({STREAM: SpoolSource(folder)})
        offset = Offset()
        written: list[Triple] = []
        read: list[Triple] = []
        for group in groups:
            some = [element(number) for number in group]
            spool.append(some)
            written += [triple for one in some for triple in one.triples]
            elements, bad, offset = read_on(feed, offset)
            assert not bad
            read += [triple for one in elements for triple in one.triples]
        spool.close()
        assert read == written


def test_a_message_that_cannot_be_read_comes_out_as_it_was(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    lost = BadElement("no\ttab\nanywhere", 'a "text"\nof two lines', "mqtt://host/topic")
    spool.append([element(1), lost, element(2, graph="http://ex/g"), element(3, graph="_:b")])
    spool.close()
    elements, (bad,), _ = read_on(Feed({STREAM: SpoolSource(str(tmp_path))}), Offset())
    assert plain(elements) == plain([element(1), element(2), element(3)])
    assert (bad.reason, bad.text, bad.source) == (lost.reason, lost.text, lost.source)


def test_files_are_closed_by_size_and_by_time(tmp_path: Path) -> None:
    by_size, by_time, one = tmp_path / "size", tmp_path / "time", tmp_path / "one"
    for folder, settings in ((by_size, {"file_bytes": 1}), (by_time, {"file_seconds": 0.0}), (one, {})):
        spool = Spool(folder, **settings)
        for number in range(4):
            spool.append([element(number)])
        spool.close()
    assert [len(list(folder.glob("*.tnq"))) for folder in (by_size, by_time, one)] == [4, 4, 1]


def test_a_line_that_was_cut_short_is_cut_off(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append([element(1)])
    spool.close()
    (path,) = tmp_path.glob("*.tnq")
    with open(path, "ab") as stream:
        stream.write(b"1970-01-01T00:00:00.002Z\t<http://ex/2> <http")
    feed = Feed({STREAM: SpoolSource(str(tmp_path))})
    before, _, offset = read_on(feed, Offset())
    again = Spool(tmp_path)
    again.append([element(3)])
    again.close()
    after, bad, _ = read_on(feed, offset)
    assert (plain(before), plain(after), bad) == (plain([element(1)]), plain([element(3)]), [])


def test_files_are_removed_when_they_were_read_and_are_old(tmp_path: Path) -> None:
    spool = Spool(tmp_path, file_bytes=1)
    feed = Feed({STREAM: SpoolSource(str(tmp_path), keep_seconds=60)})
    for number in range(3):
        spool.append([element(number)])
    _, _, read = read_on(feed, Offset())
    spool.append([element(3)])
    first, second, third, fourth = sorted(tmp_path.glob("*.tnq"))
    long_ago = time.time() - 3600
    for path in (first, third, fourth):
        os.utime(path, (long_ago, long_ago))
    feed.commit(Offset())
    assert len(list(tmp_path.glob("*.tnq"))) == 4
    feed.commit(read)
    assert sorted(tmp_path.glob("*.tnq")) == [second, fourth]
    _, _, read = read_on(feed, read)
    feed.commit(read)
    assert fourth.exists(), "the newest file may still be written to"
    spool.append([element(4)])
    feed.commit(read)
    assert not fourth.exists()
    elements, bad, _ = read_on(feed, read)
    assert (plain(elements), bad) == (plain([element(4)]), [])
    spool.close()


def test_a_spool_has_one_writer(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    with pytest.raises(hw.SourceError, match="another run writes"):
        Spool(tmp_path)
    spool.close()
    Spool(tmp_path).close()
