"""Templates that make several rows of a JSON object, and defaults for empty cells: in files and in messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.errors import SettingError
from headwater.sources.payloads import Decoder, ReceivedMessage
from headwater.terms.element_files import element_reader
from headwater.terms.model import BadElement, BlankNode, Element
from headwater.terms.template import RowTemplate, TemplateError

TEMPLATE = """@time {readings.at} as seconds
@each {readings}
@default {readings.unit} = C
@prefix : <http://ex/> .
[] :by <http://ex/{device}> ; :value "{readings.v}" ; :unit "{readings.unit}" .
"""
ROW = {"device": "d1", "readings": [{"at": 1, "v": 20}, {"at": 2, "v": 21, "unit": "F"}, {"at": "soon", "v": 5}]}


def texts(element: Element | BadElement) -> set[str]:
    assert isinstance(element, Element), element
    return {triple.object.value for triple in element.triples}  # type: ignore[union-attr]


def read(path: Path, rows: str, template: str = TEMPLATE) -> list[Element | BadElement]:
    path.write_text(rows)
    return list(element_reader(path, template=RowTemplate(template)).read())


@pytest.mark.parametrize("form", ["lines", "array"])
def test_a_list_is_several_rows(tmp_path: Path, form: str) -> None:
    rows = json.dumps(ROW) + "\n" if form == "lines" else json.dumps([ROW])
    first, second, bad = read(tmp_path / "rows.json", rows)
    assert texts(first) == {"http://ex/d1", "20", "C"}
    assert texts(second) == {"http://ex/d1", "21", "F"}
    assert isinstance(first, Element) and isinstance(second, Element)
    assert (first.time, second.time) == (1_000_000, 2_000_000)
    assert first.position < second.position
    assert isinstance(bad, BadElement) and "soon" in bad.reason


def test_blank_nodes_of_rows_are_different(tmp_path: Path) -> None:
    elements = read(tmp_path / "rows.ndjson", f"{json.dumps(ROW)}\n{json.dumps(ROW)}\n")
    nodes = {t.subject for one in elements if isinstance(one, Element) for t in one.triples}
    assert len(nodes) == 4 and all(isinstance(node, BlankNode) for node in nodes)


def test_messages_are_read_as_files_are() -> None:
    decoder = Decoder.of("json", template=TEMPLATE)
    found = decoder.decode(ReceivedMessage(json.dumps(ROW).encode(), 0, "test", (7,), {}))
    assert [texts(one) for one in found[:2]] == [{"http://ex/d1", "20", "C"}, {"http://ex/d1", "21", "F"}]
    assert [one.position for one in found] == [(7, 0), (7, 1), (7, 2)]
    assert isinstance(found[2], BadElement)


def test_lists_in_lists_and_lists_of_values(tmp_path: Path) -> None:
    template = """@time {at}
@each {rooms}
@each {rooms.values}
@prefix : <http://ex/> .
<http://ex/{rooms.id}> :value "{rooms.values}" .
"""
    row = {"at": 1, "rooms": [{"id": "a", "values": [1, 2]}, {"id": "b", "values": []}, {"id": "c"}]}
    assert [texts(one) for one in read(tmp_path / "rows.json", json.dumps(row), template)] == [{"1"}, {"2"}]


@pytest.mark.parametrize("value", [[], None])
def test_no_list_is_no_row(tmp_path: Path, value: object) -> None:
    assert read(tmp_path / "rows.json", json.dumps({"device": "d", "readings": value})) == []


def test_what_is_no_list_is_told(tmp_path: Path) -> None:
    (bad,) = read(tmp_path / "rows.json", json.dumps({"device": "d", "readings": 5}))
    assert isinstance(bad, BadElement)
    assert "the member 'readings' is no list, but the template says @each {readings}" in bad.reason


def test_a_list_without_each_says_what_to_write(tmp_path: Path) -> None:
    template = TEMPLATE.replace("@each {readings}\n", "").replace("{readings.v}", "{readings}")
    (bad,) = read(tmp_path / "rows.json", json.dumps(ROW), template)
    assert isinstance(bad, BadElement) and "say @each {readings}" in bad.reason


def test_a_default_stands_for_empty_cells_of_csv(tmp_path: Path) -> None:
    template = '@time {at}\n@default {unit} = C\n@prefix : <http://ex/> .\n:s :unit "{unit}" .\n'
    found = read(tmp_path / "rows.csv", "at,unit\n1,F\n2,\n", template)
    assert [texts(one) for one in found] == [{"F"}, {"C"}]
    assert [texts(one) for one in read(tmp_path / "rows.csv", "at\n1\n", template)] == [{"C"}]


@pytest.mark.parametrize(
    ("line", "reason"),
    [("@each readings", "expected @each {member}"), ("@default {a}", "expected @default {column} = value")],
)
def test_lines_that_cannot_be_read_are_refused(line: str, reason: str) -> None:
    with pytest.raises(TemplateError, match=reason):
        RowTemplate(f'@time {{at}}\n{line}\n<http://ex/s> <http://ex/p> "{{v}}" .\n')


def test_each_is_for_json_alone(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="not for CSV"):
        element_reader(tmp_path / "rows.csv", template=RowTemplate(TEMPLATE))
    with pytest.raises(SettingError, match="not for text"):
        Decoder.of("text", template=TEMPLATE)
