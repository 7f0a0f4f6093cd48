"""Which files a source names, in which order, and what it says when there are none."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest

import headwater as hw
from headwater.sources.files import STREAM_ENDINGS, FileSource, MemorySource, natural_order
from headwater.sources.item_ranges import can_read_lines
from headwater.sources.source import ItemRange, SourceItem
from headwater.terms.element_files import element_reader
from headwater.terms.model import BadElement, Element, Literal, NamedNode, Triple
from tests.engine.programs import integer, write

TRIPLE = Triple(NamedNode("http://ex/s"), NamedNode("http://ex/p"), Literal("o"))
TEMPLATE = '@time {t}\n<http://ex/{id}> <http://ex/value> "{v}" .\n'


def names(source: FileSource) -> list[str]:
    return [Path(item.name).name for item in source.list_items()]


def test_numbers_in_names_count_as_numbers() -> None:
    assert sorted(["part-10", "part-9", "part-09", "a", "part-9b"], key=natural_order) == [
        "a",
        "part-09",
        "part-9",
        "part-9b",
        "part-10",
    ]


def test_a_folder_gives_its_stream_files_in_order(tmp_path: Path) -> None:
    for name in ("s10.tnq", "s9.tnq", "notes.md", ".hidden.tnq", "_unfinished.tnq", "s8.tnq.gz"):
        write(tmp_path / name, [])
    assert names(hw.files(tmp_path)) == ["s8.tnq.gz", "s9.tnq", "s10.tnq"]


def test_patterns_keep_their_order_and_name_no_file_twice(tmp_path: Path) -> None:
    for name in ("feb/1.tnq", "jan/2.tnq", "jan/1.tnq"):
        write(tmp_path / name, [])
    source = hw.files(tmp_path / "jan/*.tnq", tmp_path / "**/*.tnq")
    assert [item.name for item in source.list_items()] == [
        str(tmp_path / name) for name in ("jan/1.tnq", "jan/2.tnq", "feb/1.tnq")
    ]


def test_relative_names_stay_relative_to_where_the_source_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.tnq", ["0\t<http://ex/s> <http://ex/p> oops ."])
    monkeypatch.chdir(tmp_path)
    source = hw.files("a.tnq")
    monkeypatch.chdir("/")
    (bad,) = source.read(ItemRange("a.tnq", 0, 40))
    assert isinstance(bad, BadElement)
    assert (bad.source, bad.line) == ("a.tnq", 1)


@pytest.mark.parametrize(
    ("pattern", "error", "words"),
    [
        ("absent.tnq", hw.SourceError, "no file or folder"),
        ("*.tnq", hw.SourceError, "no file matches"),
        ("empty", hw.SourceError, "holds no stream file"),
        ("rows.csv", hw.SettingError, "template"),
        ("notes.md", hw.SettingError, "no stream reader"),
    ],
)
def test_what_cannot_be_read_is_said_with_what_to_do(
    tmp_path: Path, pattern: str, error: type[hw.HeadwaterError], words: str
) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path / "rows.csv", ["t,id,v"])
    write(tmp_path / "notes.md", ["notes"])
    with pytest.raises(error, match=words):
        hw.files(tmp_path / pattern).check()


def test_a_template_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(hw.TemplateError, match="template"):
        hw.files("rows.csv", template=tmp_path / "absent.template")


def test_every_ending_of_a_folder_has_a_reader(tmp_path: Path) -> None:
    (tmp_path / "t.template").write_text(TEMPLATE)
    for ending in STREAM_ENDINGS:
        rows = ending in (".csv", ".json", ".ndjson")
        assert element_reader(f"x{ending}", template=tmp_path / "t.template" if rows else None)


def test_what_can_be_cut_between_lines_and_what_cannot(tmp_path: Path) -> None:
    contents = {
        "a.tnq": ("0\t<http://ex/s> <http://ex/p> <http://ex/o> .\n", True),
        "a.trig": ("<http://ex/g> { <http://ex/s> <http://ex/p> 1 }\n", False),
        "a.nq": ("<http://ex/s> <http://ex/p> <http://ex/o> <http://ex/g> .\n", False),
        "a.jsonl": ('{"@id": "http://ex/g"}\n', True),
    }
    for name, (text, lines) in contents.items():
        path = tmp_path / name
        path.write_text(text)
        assert can_read_lines(element_reader(path), len(text)) is lines
        source = hw.files(path)
        assert [source.needs_whole_read(item) for item in source.list_items()] == [not lines]
    path = tmp_path / "a.tnq.gz"
    path.write_bytes(gzip.compress(b"0\t<http://ex/s> <http://ex/p> <http://ex/o> .\n"))
    source = hw.files(path)
    assert source.needs_whole_read(source.list_items()[0])


def test_complete_lines_end_at_the_last_line_feed(tmp_path: Path) -> None:
    path = tmp_path / "a.tnq"
    path.write_bytes(b"x" * 200_000 + b"\n" + b"y" * 100_000)
    source = hw.files(path)
    assert source.complete_size(source.list_items()[0]) == 200_001
    path.write_bytes(b"no line feed")
    assert source.complete_size(SourceItem(str(path), 12)) == 0


def test_a_file_that_vanished_is_bad_input_and_no_crash(tmp_path: Path) -> None:
    source = hw.files(tmp_path / "a.tnq")
    (bad,) = source.read(ItemRange(str(tmp_path / "a.tnq"), 0, 10))
    assert isinstance(bad, BadElement)
    assert "cannot be read" in bad.reason


def test_lines_are_numbered_for_late_elements(tmp_path: Path) -> None:
    lines = [f"{i}\t<http://ex/s> <http://ex/p> {integer(i)} ." for i in range(5)]
    path = write(tmp_path / "a.tnq", lines)
    source = hw.files(path)
    found = [e for e in source.read(ItemRange(str(path), 0, path.stat().st_size)) if isinstance(e, Element)]
    positions = [element.position for element in reversed(found)]
    assert source.line_numbers(str(path), [*positions, ()]) == [5, 4, 3, 2, 1, None]


def test_memory_takes_elements_and_pairs_in_the_order_of_arrival() -> None:
    source = hw.memory([(5, [TRIPLE]), Element(-3, (TRIPLE,), "http://ex/g")])
    assert source == MemorySource((Element(5, (TRIPLE,), None, (0,)), Element(-3, (TRIPLE,), "http://ex/g", (1,))))
    (item,) = source.list_items()
    halves = [ItemRange("memory", 0, 1), ItemRange("memory", 1, item.size)]
    assert [[e.position for e in source.read(span)] for span in halves] == [[(0,)], [(1,)]]


def test_sources_can_be_sent_to_other_processes(tmp_path: Path) -> None:
    (tmp_path / "t.template").write_text(TEMPLATE)
    path = write(tmp_path / "rows.csv", ["t,id,v", "1000,a,5"])
    source = pickle.loads(pickle.dumps(hw.files(path, template=tmp_path / "t.template")))
    (element,) = source.read(ItemRange(str(path), 0, path.stat().st_size))
    assert element.time == 1_000_000
    assert pickle.loads(pickle.dumps(hw.memory([(0, [TRIPLE])]))) == hw.memory([(0, [TRIPLE])])
