"""What the bytes of a message mean: formats, times, blank nodes, and what cannot be read."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.sources.payloads import Decoder, PayloadFormat, ReceivedMessage
from headwater.terms.model import BadElement, BlankNode, Element, Literal, NamedNode, Triple

S, P = NamedNode("http://ex/s"), NamedNode("http://ex/p")
ONE = Triple(S, P, Literal("1"))
AT = "http://ex/at"
SECOND = 1_000_000
PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"
DATE_TIME = "<http://www.w3.org/2001/XMLSchema#dateTime>"

TEMPLATE = """
@time {ts} as seconds
<http://ex/{id}> <http://ex/speed> "{speed}" ; <http://ex/by> <http://ex/topic/{_topic}> .
"""


def message(payload: bytes | str | None, *, offset: int = 7, **cells: str) -> ReceivedMessage:
    data = payload.encode() if isinstance(payload, str) else payload
    return ReceivedMessage(data, 5 * SECOND, "topic[3]", (3, offset), cells)


def decoded(decoder: Decoder, payload: bytes | str | None, **cells: str) -> list[Element | BadElement]:
    return decoder.decode(message(payload, offset=7, **cells))


def elements(decoder: Decoder, payload: bytes | str, **cells: str) -> list[Element]:
    found = decoded(decoder, payload, **cells)
    assert all(isinstance(one, Element) for one in found), found
    return [one for one in found if isinstance(one, Element)]


@pytest.mark.parametrize(
    ("format", "payload"),
    [
        ("ntriples", '<http://ex/s> <http://ex/p> "1" .\n'),
        ("nquads", '<http://ex/s> <http://ex/p> "1" .'),
        ("turtle", '@prefix ex: <http://ex/> . ex:s ex:p "1" .'),
        ("trig", '<http://ex/s> <http://ex/p> "1" .'),
        ("jsonld", '{"@id": "http://ex/s", "http://ex/p": "1"}'),
    ],
)
@pytest.mark.parametrize("time", [None, "record"])
def test_triples_are_at_the_time_of_the_message(format: str, payload: str, time: str | None) -> None:
    (element,) = elements(Decoder.of(format, time=time), payload)
    assert (element.time, element.triples, element.position) == (5 * SECOND, (ONE,), (3, 7, 0))


def test_each_graph_of_a_message_is_an_element() -> None:
    payload = '<http://ex/g> { <http://ex/s> <http://ex/p> "1" } <http://ex/s> <http://ex/p> "1" .'
    found = elements(Decoder.of("trig"), payload)
    assert [(one.graph, one.position) for one in found] == [("http://ex/g", (3, 7, 0)), (None, (3, 7, 1))]


def test_graphs_that_carry_their_time_keep_it() -> None:
    payload = (
        f'<http://ex/g1> {PROV} "1970-01-01T00:00:09Z"^^{DATE_TIME} .\n<http://ex/s> <http://ex/p> "1" <http://ex/g1> .'
    )
    (element,) = elements(Decoder.of("nquads"), payload)
    assert (element.time, element.triples) == (9 * SECOND, (ONE,))
    (element, other) = elements(Decoder.of("nquads", time="record"), payload)
    assert {element.time, other.time} == {5 * SECOND}
    (bad,) = decoded(Decoder.of("nquads", time="prov"), '<http://ex/s> <http://ex/p> "1" <http://ex/g1> .')
    assert isinstance(bad, BadElement) and "has no time" in bad.reason


def test_the_time_may_be_the_value_of_a_property() -> None:
    decoder = Decoder.of("turtle", time=AT)
    (element,) = elements(decoder, f'<http://ex/s> <{AT}> "1970-01-01T00:00:03Z"^^{DATE_TIME} .')
    assert element.time == 3 * SECOND
    for payload, reason in [
        ('<http://ex/s> <http://ex/p> "1" .', "0 values of"),
        (f'<http://ex/s> <{AT}> "1", "2" .', "2 values of"),
        (f'<http://ex/s> <{AT}> "soon" .', "is not a time"),
    ]:
        (bad,) = decoded(decoder, payload)
        assert isinstance(bad, BadElement) and reason in bad.reason


def test_timed_lines_have_their_own_times() -> None:
    found = elements(
        Decoder.of("tnq"), '1000\t<http://ex/s> <http://ex/p> "1" .\n2000\t<http://ex/s> <http://ex/p> "2" .'
    )
    assert [(one.time, one.position) for one in found] == [(SECOND, (3, 7, 0)), (2 * SECOND, (3, 7, 1))]


def test_rows_are_read_with_a_template() -> None:
    expected = (
        Triple(NamedNode("http://ex/c1"), NamedNode("http://ex/speed"), Literal("50.10")),
        Triple(NamedNode("http://ex/c1"), NamedNode("http://ex/by"), NamedNode("http://ex/topic/cars")),
    )
    (element,) = elements(
        Decoder.of("json", template=TEMPLATE), '{"id": "c1", "ts": 3.5, "speed": 50.10}', _topic="cars"
    )
    assert (element.time, element.triples) == (3_500_000, expected)
    (element,) = elements(
        Decoder.of("csv", template=TEMPLATE + "@columns id ts speed\n"), "c1,3.5,50.10\r\n", _topic="cars"
    )
    assert (element.time, element.triples) == (3_500_000, expected)
    (element,) = elements(Decoder.of("text", template='<http://ex/s> <http://ex/p> "{value}" .\n'), " 1\n")
    assert (element.time, element.triples) == (5 * SECOND, (ONE,))


@pytest.mark.parametrize(
    ("time", "expected"), [(None, 3 * SECOND), ("record", 5 * SECOND), ("{other} as milliseconds", 4 * SECOND)]
)
def test_what_was_asked_for_overrides_the_template(time: str | None, expected: int) -> None:
    decoder = Decoder.of("json", template=TEMPLATE, time=time)
    (element,) = elements(decoder, '{"id": "c1", "ts": 3, "other": 4000, "speed": 1}', _topic="t")
    assert element.time == expected


def test_rows_that_the_template_leaves_out_are_nothing() -> None:
    decoder = Decoder.of("json", template='@where {ok} = true\n<http://ex/{id}> <http://ex/p> "1" .\n')
    assert decoded(decoder, '{"id": "a", "ok": false}') == []
    assert len(elements(decoder, '{"id": "a", "ok": true}')) == 1


@pytest.mark.parametrize(
    ("decoder", "payload", "reason"),
    [
        (Decoder.of("turtle"), "<http://ex/s> <http://ex/p>", "unexpected end|must|Unexpected"),
        (Decoder.of("nquads"), None, "no value"),
        (Decoder.of("json", template=TEMPLATE), b"\xff{}", "not UTF-8"),
        (Decoder.of("json", template=TEMPLATE), "[1]", "must be a JSON object"),
        (Decoder.of("json", template=TEMPLATE), "{" * 5, "Expecting|property"),
        (Decoder.of("json", template=TEMPLATE), '{"id": "a", "speed": 1}', "no time"),
        (Decoder.of("jsonld"), '{"@id": 3}', ""),
        (Decoder.of("tnq"), "no tab here", "no tab"),
    ],
)
def test_what_cannot_be_read_says_why(decoder: Decoder, payload: bytes | str | None, reason: str) -> None:
    import re

    (bad,) = decoded(decoder, payload, _topic="t")
    assert isinstance(bad, BadElement)
    assert re.search(reason, bad.reason, re.IGNORECASE)
    assert bad.position[:2] == (3, 7)
    assert bad.source == "topic[3]"


@given(st.binary(max_size=60), st.sampled_from(sorted(PayloadFormat)))
def test_no_bytes_break_a_decoder(payload: bytes, format: PayloadFormat) -> None:
    rows = format in ("json", "csv", "text")
    template = '@columns a b\n<http://ex/{_topic}> <http://ex/p> "x" .\n' if rows else None
    for one in Decoder.of(format, template=template).decode(message(payload, _topic="t")):
        assert one.position[:2] == (3, 7)


def test_blank_nodes_belong_to_their_message() -> None:
    decoder = Decoder.of("ntriples")
    payload = b"_:x <http://ex/p> _:x .\n_:x <http://ex/q> _:y ."

    def nodes(offset: int) -> list[BlankNode]:
        (element,) = decoder.decode(message(payload, offset=offset))
        assert isinstance(element, Element)
        return [term for triple in element.triples for term in triple if isinstance(term, BlankNode)]

    first = nodes(7)
    assert first[0] == first[1] == first[2] != first[3]
    assert first == nodes(7)
    assert not set(first) & set(nodes(8))
    rows = Decoder.of("json", template='[] <http://ex/p> "{a}" .\n')
    made = [rows.decode(message('{"a": 1}', offset=offset)) for offset in (1, 2, 1)]
    assert made[0] == made[2] != made[1]


def test_a_decoder_travels() -> None:
    decoder = Decoder.of("json", template=TEMPLATE)
    copy = pickle.loads(pickle.dumps(decoder))
    payload = message('{"id": "c1", "ts": 3, "speed": 1}', _topic="t")
    assert copy.decode(payload) == decoder.decode(payload)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"format": "xml"}, "use one of tnq, ntriples"),
        ({"format": "turtle", "template": TEMPLATE}, "a template is for"),
        ({"format": "json"}, "need a template"),
        ({"format": "csv", "template": TEMPLATE}, "@columns"),
        ({"format": "tnq", "time": "record"}, "say their time themselves"),
        ({"format": "turtle", "time": "not an iri"}, "the IRI of a property"),
        ({"format": "json", "template": TEMPLATE, "time": "ts"}, "a column in braces"),
        ({"format": "json", "template": "absent.template"}, "cannot read the template"),
        ({"format": "json", "template": "<http://ex/{a}> oops\n"}, "<template>:"),
    ],
)
def test_parts_that_do_not_fit_say_what_to_write(arguments: dict[str, str], reason: str, tmp_path: Path) -> None:
    with pytest.raises((hw.SettingError, hw.TemplateError), match=reason):
        Decoder.of(**arguments)
