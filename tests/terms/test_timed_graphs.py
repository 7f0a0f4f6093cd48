"""Named graphs that carry prov:generatedAtTime, in N-Quads, TriG and JSON-LD lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.element_files import element_reader
from headwater.terms.model import BadElement, Element
from headwater.terms.timed_graphs import read_jsonld_lines, read_timed_nquads, read_timed_trig
from headwater.terms.timestamps import format_time, parse_time

PREFIXES = """@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix ex: <http://example.org/> .
"""
TIME = '<http://www.w3.org/ns/prov#generatedAtTime> "{}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


def trig(text: str) -> list[Element | BadElement]:
    return list(read_timed_trig((PREFIXES + text).encode(), "s.trig"))


def bad_reason(found: Element | BadElement) -> str:
    assert isinstance(found, BadElement)
    return found.reason


def test_times_in_the_default_graph_and_inside() -> None:
    first, second = trig(
        """ex:g2 { ex:g2 prov:generatedAtTime "1970-01-01T00:00:02Z"^^xsd:dateTime . ex:a ex:b 1 . }
        ex:g1 prov:generatedAtTime "1970-01-01T00:00:01Z"^^xsd:dateTime .
        ex:g1 { ex:a ex:b 2, 3 . }"""
    )
    assert isinstance(first, Element) and isinstance(second, Element)
    assert (first.time, first.graph, len(first.triples)) == (2_000_000, "http://example.org/g2", 2)
    assert (second.time, second.graph, len(second.triples)) == (1_000_000, "http://example.org/g1", 2)
    assert first.position < second.position


def test_a_graph_that_comes_in_parts_is_one_element() -> None:
    (element,) = trig(
        """ex:g { ex:a ex:b 1 . } ex:g { ex:a ex:b 2 . }
        ex:g prov:generatedAtTime "1970-01-01T00:00:02Z"^^xsd:dateTime ."""
    )
    assert isinstance(element, Element)
    assert len(element.triples) == 2


def test_graphs_without_a_usable_time_and_stray_triples_are_bad() -> None:
    found = trig(
        """ex:g1 { ex:a ex:b 1 . }
        ex:g2 { ex:a ex:b 1 . } ex:g2 prov:generatedAtTime "noon" .
        ex:g3 { ex:a ex:b 1 . } ex:g3 prov:generatedAtTime "1970-01-01T00:00:02Z", "1970-01-01T00:00:03Z" .
        ex:x ex:y 1, 2 . ex:z ex:y 3 .
        ex:w ex:y 1 ; prov:generatedAtTime "1970-01-01T00:00:02Z" ."""
    )
    reasons = [bad_reason(e) for e in found]
    assert [next(r for r in ("no time", "not a time", "several times") if r in reason) for reason in reasons[:3]] == [
        "no time",
        "not a time",
        "several times",
    ]
    strays = [e.text for e in found[3:] if isinstance(e, BadElement)]
    assert [text.count("\n") + 1 for text in strays] == [2, 1, 2]


def test_two_equal_times_are_one_and_a_time_without_graph_is_an_empty_element() -> None:
    found = trig(
        """ex:g prov:generatedAtTime "1970-01-01T00:00:01Z"^^xsd:dateTime, "1970-01-01T01:00:01+01:00" .
        ex:g { ex:a ex:b 1 }
        ex:heartbeat prov:generatedAtTime 5000 ."""
    )
    assert [(e.time, len(e.triples)) for e in found if isinstance(e, Element)] == [
        (1_000_000, 1),
        (5_000_000, 0),
    ]


def test_a_syntax_error_keeps_the_graphs_before_it() -> None:
    found = trig(
        """ex:g1 prov:generatedAtTime 1 . ex:g1 { ex:a ex:b 1 }
        ex:g2 prov:generatedAtTime 2 . ex:g2 { ex:a ex:b 1 . ex:a ex:b ex:c ex:d }
        ex:g3 prov:generatedAtTime 3 . ex:g3 { ex:a ex:b 1 }"""
    )
    assert [e.graph for e in found if isinstance(e, Element)] == ["http://example.org/g1"]
    (bad,) = (e for e in found if isinstance(e, BadElement))
    assert bad.line == 5
    assert "g2 is cut short" in bad.reason
    assert "ex:g3" in bad.text


def test_anonymous_nodes_have_the_same_labels_in_every_run() -> None:
    text = '[] { [] ex:b [] . } _:g { _:g prov:generatedAtTime "1970-01-01T00:00:02Z" }'
    assert trig(text) == trig(text)


def test_nquads_with_broken_lines() -> None:
    lines = [
        f"<a:g1> {TIME.format('1970-01-01T00:00:01Z')} .",
        "<a:s> <a:p> _:x <a:g1> .",
        "broken",
        "# note",
        "",
        "<a:s> <a:p> _:y <a:g2> .",
        f"<a:g2> {TIME.format('1970-01-01T00:00:02Z')} <a:g2> .",
    ]
    first, bad, second = read_timed_nquads("\n".join(lines).encode(), "s.nq")
    assert isinstance(first, Element) and isinstance(bad, BadElement) and isinstance(second, Element)
    assert [str(t) for t in first.triples] == ["<a:s> <a:p> _:x"]
    assert (bad.line, bad.text) == (3, "broken")
    assert first.position < bad.position < second.position
    assert (second.time, len(second.triples)) == (2_000_000, 2)


def document(name: str, time: str, value: object) -> dict[str, object]:
    return {
        "@context": {"prov": "http://www.w3.org/ns/prov#", "ex": "http://example.org/"},
        "@id": f"ex:{name}",
        "prov:generatedAtTime": time,
        "@graph": [{"@id": "ex:s", "ex:value": value, "ex:part": {"ex:of": 1}}],
    }


def test_json_ld_lines() -> None:
    lines = [
        json.dumps(document("g1", "1970-01-01T00:00:01Z", 5)),
        "",
        '{"broken": ',
        '{"@context": "http://example.org/remote", "@id": "http://example.org/x"}',
        json.dumps({"@id": "http://example.org/x", "http://example.org/y": 1}),
        json.dumps(document("g2", "1970-01-01T00:00:02Z", 6)),
    ]
    found = list(read_jsonld_lines("\n".join(lines).encode(), "s.jsonl"))
    assert [(e.time, e.graph) for e in found if isinstance(e, Element)] == [
        (1_000_000, "http://example.org/g1"),
        (2_000_000, "http://example.org/g2"),
    ]
    assert [e.line for e in found if isinstance(e, BadElement)] == [3, 4, 5]
    assert [e.position for e in found] == sorted(e.position for e in found)
    nodes = [str(t.subject) for e in found if isinstance(e, Element) for t in e.triples if "_:" in str(t.subject)]
    assert len(set(nodes)) == 2


@given(st.lists(st.integers(0, 10**12), max_size=8), st.integers(1, 400))
def test_json_ld_in_ranges(tmp_path_factory, times: list[int], size: int) -> None:
    path: Path = tmp_path_factory.mktemp("ranges") / "s.jsonl"
    lines = [json.dumps(document(f"g{n}", format_time(t * 1000), n)) for n, t in enumerate(times)]
    path.write_text("\n".join([*lines, "broken"]))
    reader = element_reader(path)
    whole = list(reader.read())
    assert [e.time for e in whole if isinstance(e, Element)] == [t * 1000 for t in times]
    assert [e for start, end in reader.split_ranges(size) for e in reader.read_range(start, end)] == whole


@pytest.mark.parametrize("packed", [False, True])
def test_a_json_ld_document_over_several_lines(tmp_path: Path, packed: bool) -> None:
    text = json.dumps([document("g1", "1970-01-01T00:00:01Z", 5), document("g2", "noon", 5)], indent=1).encode()
    path = tmp_path / ("s.jsonld.gz" if packed else "s.jsonld")
    path.write_bytes(gzip.compress(text) if packed else text)
    good, bad = element_reader(path).read()
    assert isinstance(good, Element)
    assert good.time == parse_time("1970-01-01T00:00:01Z")
    assert "not a time" in bad_reason(bad)


def test_json_ld_lines_that_begin_with_a_broken_one(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonld"
    path.write_text('{"cut off": \n' + json.dumps(document("g1", "1970-01-01T00:00:01Z", 5)))
    bad, good = element_reader(path).read()
    assert isinstance(bad, BadElement) and isinstance(good, Element)
