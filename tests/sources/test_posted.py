"""Streams that come in bodies: what is counted, what is on disk, and bodies that are sent again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import headwater as hw
from headwater.errors import SettingError
from headwater.sources.offsets import ItemOffset, StreamOffset
from headwater.sources.payloads import Decoder
from headwater.sources.posting.posted import KeyReused, PostedSource, PostReceipt, StreamBusy
from headwater.sources.receivers import RunSignals
from headwater.sources.source import ItemRange, SourceError
from headwater.sources.spool import SpoolSource, read_mark
from headwater.terms.model import BadElement, Element

ROW_TEMPLATE = '<http://ex/{id}> <urn:v> "{value}" .\n'
COUNT = "SELECT (COUNT(?v) AS ?n) FROM STREAM <s> [RANGE 2s STEP 1s] WHERE { ?x <urn:v> ?v }"


def line(time: int, value: int = 1) -> str:
    return f'{time}\t<urn:x> <urn:v> "{value}" .\n'


def kept(folder: Path) -> list[Element | BadElement]:
    source = SpoolSource(str(folder))
    return [
        one for item in source.list_items() for one in source.read(ItemRange(item.name, 0, source.complete_size(item)))
    ]


def times(folder: Path) -> list[int]:
    return [one.time // 1000 for one in kept(folder) if isinstance(one, Element)]


def test_timed_lines_are_kept_as_they_are_and_counted(tmp_path: Path) -> None:
    body = (line(1000) + line(1000, 2) + line(3000) + "nonsense\n" + line(2000)).encode()
    with PostedSource(tmp_path, delay=500_000) as source:
        assert source.post(body) == PostReceipt(good=2, late=1, bad=1, triples=4)
        assert source.post(b"") == PostReceipt()
        assert source.post(line(2600).encode().rstrip()) == PostReceipt(good=1, triples=1), "within the delay"
        assert source.post(b"\xef\xbb\xbf" + line(2400).encode()) == PostReceipt(late=1, triples=1)
    assert times(tmp_path) == [1000, 3000, 2000, 2600, 2400]
    [bad] = [one for one in kept(tmp_path) if isinstance(one, BadElement)]
    assert bad.text == "nonsense"
    assert read_mark(tmp_path) is None, "times of their own"


def test_a_jump_ahead_is_counted_and_makes_nothing_late(tmp_path: Path) -> None:
    with PostedSource(tmp_path, max_ahead=10_000_000) as source:
        assert source.post((line(1000) + line(900_000_000) + line(2000)).encode()) == PostReceipt(2, 0, 1, 0, 3)


def test_a_body_under_a_known_key_is_not_taken_twice_also_after_a_restart(tmp_path: Path) -> None:
    body = line(1000).encode()
    with PostedSource(tmp_path) as source:
        first = source.post(body, key="a")
        assert source.post(body, key="a") == PostReceipt(first.good, triples=1, is_repeated=True)
        source.post(line(2000).encode())
        source.post(line(2000).encode())
        with pytest.raises(KeyReused):
            source.post(line(9).encode(), key="a")
    with PostedSource(tmp_path) as source:
        assert source.post(body, key="a").is_repeated
        with pytest.raises(KeyReused):
            source.post(line(9).encode(), key="a")
        assert source.post(line(1500).encode()).late == 1, "the times before the restart count"
    assert len(times(tmp_path)) == 3, "two bodies with lines of one time are one element"


@pytest.mark.parametrize("format", ["tnq", "turtle"])
def test_of_a_body_that_was_cut_off_the_rest_is_written_when_it_comes_again(tmp_path: Path, format: str) -> None:
    timed = "".join(line(1000 * number, number) for number in range(5)).encode()
    turtle = "".join(f"<urn:x> <urn:v> {number} .\n" for number in range(5)).encode()
    body = timed if format == "tnq" else turtle
    whole = tmp_path / "whole"
    with PostedSource(whole) as source:
        expected = source.post(body, key="k", format=format)
    [path] = whole.glob("*.tnq")
    data = path.read_bytes()
    for cut in range(len(data)):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / path.name).write_bytes(data[:cut])
        for _ in range(2):
            with PostedSource(folder) as source:
                receipt = source.post(body, key="k", format=format)
                assert (receipt.good, receipt.triples) == (expected.good, expected.triples)
        values = [str(t.object).split('"')[1] for one in kept(folder) if isinstance(one, Element) for t in one.triples]
        assert sorted(values) == [str(number) for number in range(5)]


def test_a_full_disk_refuses_the_body_and_the_rest_comes_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "".join(line(1000 * number, number) for number in range(5)).encode()
    real = os.write

    def write_some(descriptor: int, data: bytes) -> int:
        if len(data) <= 60:
            raise OSError(28, "No space left on device")
        return real(descriptor, bytes(data)[: len(data) - 60])

    with PostedSource(tmp_path) as source:
        source.post(line(-5000, 9).encode())
        monkeypatch.setattr("headwater.terms.durable_files.os.write", write_some)
        with pytest.raises(SourceError, match="No space left"):
            source.post(body, key="k")
        monkeypatch.undo()
        assert source.post(body, key="k").good == 5
    assert sorted(times(tmp_path)) == [-5000, 0, 1000, 2000, 3000, 4000]


@pytest.mark.parametrize(
    ("format", "body"),
    [
        ("nquads", b"<urn:x> <urn:v> <urn:o> <urn:g> .\n<urn:x> <urn:v> <urn:p> .\n"),
        ("turtle", b"<urn:x> <urn:v> 1, 2 ."),
        ("trig", b"<urn:g> { <urn:x> <urn:v> 1 }"),
        ("jsonld", b'{"@id": "urn:x", "urn:v": 1}'),
    ],
)
def test_documents_have_the_time_of_their_arrival_or_the_one_that_is_said(
    tmp_path: Path, format: str, body: bytes
) -> None:
    with PostedSource(tmp_path) as source:
        assert source.post(body, format=format).good >= 1
        mark = read_mark(tmp_path)
        assert mark is not None, "they are stamped"
        assert all(one.time < mark for one in kept(tmp_path) if isinstance(one, Element))
        source.post(body, format=format, at=5_000_000)
        assert times(tmp_path)[-1] == 5000
        assert read_mark(tmp_path) is None
    assert not [one for one in kept(tmp_path) if isinstance(one, BadElement)]


@pytest.mark.parametrize(
    ("format", "body", "good", "bad"),
    [
        ("json", b'{"id": "a", "value": 1}', 1, 0),
        ("json", b'[{"id": "a", "value": 1}, {"id": "b", "value": 2}, 7]', 2, 1),
        ("json", b'{"id": "a", "value": 1}\n{"id": "b"\n\n{"id": "c", "value": 3}\n', 2, 1),
        ("json", b"nonsense", 0, 1),
        ("csv", b"id,value\r\na,1\r\nb,2\r\n\r\nc\r\n", 2, 1),
        ("csv", b"\xff\xfe", 0, 1),
    ],
)
def test_rows_are_read_with_the_template_of_the_stream(
    tmp_path: Path, format: str, body: bytes, good: int, bad: int
) -> None:
    decoder = Decoder.of("json", template=ROW_TEMPLATE)
    with PostedSource(tmp_path, decoder) as source:
        receipt = source.post(body, format=format)
    assert (receipt.good, receipt.bad) == (good, bad)
    assert len(kept(tmp_path)) == (1 if good else 0) + bad, "the rows of a body have one time, and are one element"


def test_rows_need_a_template(tmp_path: Path) -> None:
    with PostedSource(tmp_path) as source, pytest.raises(SettingError, match="template"):
        source.post(b"{}", format="json")


def test_what_waits_is_bounded_and_without_a_reader_the_oldest_files_go(tmp_path: Path) -> None:
    body = b"".join(line(1000 * number).encode() for number in range(10))
    with PostedSource(tmp_path, most_unread=len(body) + 200) as source:
        source.post(body)
        with source.open_spool(tmp_path, RunSignals(lambda: None), is_durable=True):
            with pytest.raises(StreamBusy):
                source.post(body)
            [path] = tmp_path.glob("*.tnq")
            source.note_read(StreamOffset((ItemOffset(str(path), path.stat().st_size),)))
            assert source.unread_bytes == 0
            source.post(body)
    with PostedSource(tmp_path, most_unread=len(body) + 200) as source:
        source.post(body)
        source.post(body)
    assert path not in list(tmp_path.glob("*.tnq"))


def test_an_engine_reads_what_was_posted_before_and_while_it_runs(tmp_path: Path) -> None:
    with PostedSource(tmp_path / "posts") as source:
        source.post(b"".join(line(1000 * number, number).encode() for number in range(3)))
        engine = hw.Engine(in_process=True, checkpoint=tmp_path / "checkpoint")
        engine.stream("s", source)
        query = engine.register(COUNT)
        answers = query.answers()
        engine.start()
        found = [next(answers), next(answers)]
        source.post(b"".join(line(1000 * number, number).encode() for number in range(3, 6)))
        found += [next(answers) for _ in range(3)]
        engine.stop()
        engine.wait()
    assert [(answer.time // 1_000_000, int(answer.rows[0][0].value)) for answer in found] == [  # type: ignore[union-attr]
        *((0, 1), (1, 2), (2, 2), (3, 2), (4, 2)),
    ]
