"""CSV and JSON rows as elements, on made-up rows and on the public stream files."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.element_files import StreamFormat, element_reader
from headwater.terms.model import BadElement, Element, Literal
from headwater.terms.row_files import read_csv, read_json_array, read_json_lines
from headwater.terms.template import RowTemplate
from headwater.terms.timestamps import parse_time
from tests.shared_data import shared_data

SIMPLE = RowTemplate('@time {t}\n<http://x/{row}> <http://x/v> "{v}" .')
OBSERVATION = """
@prefix ssn: <http://purl.oclc.org/NET/ssnx/ssn#> .
@prefix sao: <http://purl.oclc.org/NET/sao/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def bad_lines(found: list[Element | BadElement]) -> list[int | None]:
    return [e.line for e in found if isinstance(e, BadElement)]


def test_broken_rows_are_reported_one_by_one() -> None:
    text = b't,v\n1,a\n2\n3,b,c\n4,"open\n5,\xff\n\n6,"a ""b"", c"\r\nnoon,d\n7,\n'
    found = list(read_csv(text, "s.csv", SIMPLE))
    assert bad_lines(found) == [3, 4, 5, 6, 9]
    assert [e.triples[0].object for e in found if isinstance(e, Element) and e.triples] == [
        Literal("a"),
        Literal('a "b", c'),
    ]
    assert [e.position for e in found] == sorted(e.position for e in found)
    reasons = [e.reason for e in found if isinstance(e, BadElement)]
    for part, reason in zip(["1 cells", "3 cells", "quotes", "UTF-8", "noon"], reasons, strict=True):
        assert part in reason


def test_missing_columns_and_broken_headers_are_reported_for_each_row() -> None:
    found = list(read_csv(b"t,w\n1,a\n2,b\n", "s.csv", SIMPLE))
    assert bad_lines(found) == [2, 3]
    assert isinstance(found[0], BadElement)
    assert "no column 'v' in this row (its columns: t, w" in found[0].reason
    assert bad_lines(list(read_csv(b"t,t\n1,a\n2,b\n", "s.csv", SIMPLE))) == [1, 2, 3]


def test_columns_and_delimiters_of_the_template() -> None:
    template = RowTemplate('@columns t v ...\n@delimiter |,\n@time {t}\n<http://x/a> <http://x/v> "{v}" .')
    found = list(read_csv(b"1|a,b\n2,c\n3\n", "s.csv", template))
    assert [e.triples[0].object for e in found if isinstance(e, Element)] == [Literal("a"), Literal("c")]
    assert bad_lines(found) == [3]
    tabbed = RowTemplate('@delimiter tab\n@time {t}\n<http://x/a> <http://x/v> "{v}" .')
    (element,) = read_csv(b"t\tv\n1\ta,b\n", "s.csv", tabbed)
    assert isinstance(element, Element)
    assert element.triples[0].object == Literal("a,b")


cells = st.text(st.sampled_from('ab,"é\n'), max_size=4)


@given(
    st.lists(st.tuples(st.sampled_from(["1", "2", "", "x"]), cells), max_size=10),
    st.integers(1, 40),
    st.booleans(),
)
def test_csv_in_ranges(tmp_path_factory, rows: list[tuple[str, str]], size: int, marked: bool) -> None:
    path: Path = tmp_path_factory.mktemp("rows") / "s.csv"
    text = "".join(f"{t},{v}\n" for t, v in rows)
    path.write_text(("\ufeff" if marked else "") + "\nt,v\n" + text)
    reader = element_reader(path, template=SIMPLE)
    whole = list(reader.read())
    assert [e for start, end in reader.split_ranges(size) for e in reader.read_range(start, end)] == whole
    assert whole == list(read_csv(path.read_bytes(), str(path), SIMPLE))


def test_json_lines_and_arrays(tmp_path: Path) -> None:
    template = RowTemplate(
        """@time {t}
@where {ok} = true
<http://x/{id}> <http://x/v> "{v.x}" ; <http://x/w> "{w}" ; <http://x/n> "{row}" ."""
    )
    rows = [
        {"t": 1000, "ok": True, "id": "a", "v": {"x": 1.50}, "w": None},
        {"t": 2000, "ok": False, "id": "a"},
        {"t": 3000, "ok": True, "id": "b", "v": {"x": 1234567890123456789}, "unused": [1]},
        {"t": 4000, "ok": True, "v": {"x": 1}},
        {"t": 5000, "ok": True, "id": ["a"]},
        ["not an object"],
        {"t": 6000, "ok": True, "id": "c", "v": {"x": float("nan")}},
    ]
    text = json.dumps(rows[0]).replace("1.5", "1.50")
    lines = [text, *map(json.dumps, rows[1:]), "{broken"]
    by_line = list(read_json_lines("\n".join(lines).encode(), "s", template))
    array = list(read_json_array(f" [{', '.join(lines[:-1])}, {{broken]".encode(), "s", template))
    for found in (by_line, array):
        good = [e for e in found if isinstance(e, Element)]
        assert [[t.object for t in e.triples] for e in good] == [
            [Literal("1.50"), Literal("1")],
            [Literal("1234567890123456789"), Literal("3")],
        ]
    assert bad_lines(by_line) == [4, 5, 6, 7, 8]
    assert len(array) == 6
    assert list(read_json_array(b"[]", "s", template)) == []
    for broken in (b"[", b"[1", b'[{"t": 1},]', b"[1 2]"):
        assert isinstance(list(read_json_array(broken, "s", template))[-1], BadElement)

    for name, data in (("a.json", f"[{text}]"), ("b.json", text), ("c.ndjson", text), ("d.jsonl", text)):
        (tmp_path / name).write_text(data)
        reader = element_reader(tmp_path / name, template=template)
        assert reader.format is StreamFormat.JSON_ROWS
        (element,) = reader.read()
        assert isinstance(element, Element)
        assert element.time == 1_000_000


def test_json_lines_in_ranges(tmp_path: Path) -> None:
    path = tmp_path / "s.ndjson"
    path.write_text("".join(f'{{"t": {n}, "v": "{"x" * n}"}}\n' for n in range(30)) + "[1]")
    reader = element_reader(path, template=SIMPLE)
    whole = list(reader.read())
    assert len(whole) == 31
    for size in (1, 17, 100, 10_000):
        assert [e for start, end in reader.split_ranges(size) for e in reader.read_range(start, end)] == whole


def read_shared(template: str, *parts: str) -> list[Element]:
    reader = element_reader(shared_data(*parts), template=RowTemplate(OBSERVATION + template))
    found = list(reader.read())
    in_ranges = [e for start, end in reader.split_ranges(300_000) for e in reader.read_range(start, end)]
    assert in_ranges == found
    elements = [e for e in found if isinstance(e, Element)]
    assert len(elements) == len(found), next(e for e in found if isinstance(e, BadElement))
    assert all(first.position < second.position for first, second in pairwise(elements))
    return elements


@pytest.mark.parametrize(
    ("name", "time", "value", "rows", "first"),
    [
        ("AarhusTrafficData158505.csv", "TIMESTAMP", "avgSpeed", 16954, "2014-08-01T07:50:00Z"),
        ("AarhusPollutionData184892.csv", "timestamp", "ozone", 17568, "2014-08-01T00:05:00Z"),
        ("AarhusWeatherData0.csv", "TIMESTAMP", "tempm", 4357, "2014-08-01T00:00:00Z"),
        ("AarhusParkingData.csv", "updatetime", "vehiclecount", 55264, "2014-05-22T09:09:04.145Z"),
    ],
)
def test_citybench_streams(name: str, time: str, value: str, rows: int, first: str) -> None:
    template = f"""@time {{{time}}}
    [] a ssn:Observation ; ssn:observedBy <http://city/{name}> ; sao:hasValue "{{{value}}}"^^xsd:double ."""
    elements = read_shared(template, "citybench", "streams", name)
    assert len(elements) == rows
    assert elements[0].time == parse_time(first)
    assert sum(len(e.triples) != 3 for e in elements) <= 1, "only the weather has a row with an empty value"


def test_citybench_user_locations_have_no_time_of_their_own() -> None:
    template = """@time 2014-08-01T00:00:00Z every 60s
    @columns user lat lon
    @delimiter |,
    <{+user}> sao:hasLatitude "{lat}"^^xsd:double ; sao:hasLongitude "{lon}"^^xsd:double .""".replace("\n    @", "\n@")
    elements = read_shared(template, "citybench", "streams", "UserLocationService.csv")
    assert len(elements) >= 289
    assert elements[2].time == parse_time("2014-08-01T00:02:00Z")
    assert str(elements[0].triples[0].subject).endswith("userprofile#user-007>")


def test_taxi_trips() -> None:
    template = """@columns medallion licence pickup dropoff seconds miles ...
@time {dropoff}
<http://taxi/ride/{medallion}/{row}> <http://taxi/miles> "{miles}"^^xsd:decimal ;
    <http://taxi/by> <http://taxi/{licence}> ."""
    elements = read_shared(template, "taxi", "sorted_data.csv")
    assert len(elements) == 10_004
    assert elements[0].time == parse_time("2013-01-01T00:02:00Z")


def test_srbench_observations_have_optional_columns() -> None:
    template = """@columns time station wind humidity temperature x1 dew direction gust ...
@time {time}
@if {wind}
<http://obs/{station}/{row}/wind> a ssn:Observation ; sao:hasValue "{wind}"^^xsd:float .
@end
@if {gust}
<http://obs/{station}/{row}/gust> a ssn:Observation ; sao:hasValue "{gust}"^^xsd:float .
@end"""
    elements = read_shared(template, "srbench", "obs3h.csv")
    assert len(elements) == 957
    assert elements[0].time == parse_time("2004-08-08T06:05:00Z")
    assert {len(e.triples) for e in elements} >= {2, 4}
