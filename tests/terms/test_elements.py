"""The registry of stream readers."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest

from headwater.terms.element_files import StreamFormat, element_reader, split_ranges
from headwater.terms.model import BadElement, Element

LINE = b"1000\t<a:s> <a:p> <a:o> .\n"


def test_the_ending_chooses_the_reader(tmp_path: Path) -> None:
    for name, format in (
        ("a.tnq", StreamFormat.TNQ),
        ("a.NQ", StreamFormat.N_QUADS),
        ("a.trig.gz", StreamFormat.TRIG),
    ):
        assert element_reader(tmp_path / name).format is format
    with pytest.raises(ValueError, match=r"no stream reader for the file ending '\.ttl'.*\.tnq"):
        element_reader("a.ttl")
    with pytest.raises(ValueError, match="rows need a template"):
        element_reader("a.csv")
    with pytest.raises(ValueError, match="not for tnq"):
        element_reader("a.tnq", template=tmp_path / "x.template")
    assert element_reader("a.txt", format=StreamFormat.TNQ).format is StreamFormat.TNQ


def test_a_template_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "x.template").write_text('@time {t}\n<a:s> <a:p> "{v}" .')
    (tmp_path / "a.csv").write_text("t,v\n1,2\n")
    (element,) = element_reader(tmp_path / "a.csv", template=tmp_path / "x.template").read()
    assert isinstance(element, Element)


def test_gzipped_streams_belong_to_the_first_range(tmp_path: Path) -> None:
    path = tmp_path / "a.tnq.gz"
    path.write_bytes(gzip.compress(LINE * 3))
    reader = element_reader(path)
    assert reader.split_ranges(1) == split_ranges(path, 1) == [(0, path.stat().st_size)]
    (element,) = reader.read_range(0, path.stat().st_size)
    assert isinstance(element, Element)
    assert len(element.triples) == 3
    assert list(reader.read_range(5, 10)) == []


def test_a_cut_gzip_file_gives_what_it_holds_and_says_that_it_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "a.tnq.gz"
    path.write_bytes(gzip.compress(b"".join(b"%d\t<a:s> <a:p> <a:o> .\n" % n for n in range(50_000)))[:-5000])
    *good, bad = element_reader(path).read()
    assert isinstance(bad, BadElement)
    assert "gzip" in bad.reason
    assert len(good) > 10_000


def test_empty_files_have_no_ranges_and_no_elements(tmp_path: Path) -> None:
    for name in ("a.tnq", "a.trig", "a.nq", "a.jsonl", "a.jsonld"):
        (tmp_path / name).write_bytes(b"")
        assert split_ranges(tmp_path / name, 10) == []
        assert list(element_reader(tmp_path / name).read()) == []
    with pytest.raises(ValueError, match="at least one byte"):
        (tmp_path / "a.tnq").write_bytes(LINE)
        split_ranges(tmp_path / "a.tnq", 0)


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(element_reader(tmp_path / "a.tnq").read())


def test_readers_can_be_sent_to_another_process(tmp_path: Path) -> None:
    (tmp_path / "a.tnq").write_bytes(LINE)
    reader = element_reader(tmp_path / "a.tnq")
    assert list(pickle.loads(pickle.dumps(reader)).read()) == list(reader.read())
