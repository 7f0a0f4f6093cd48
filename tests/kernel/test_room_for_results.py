"""One element may make more results, or find more partners, than the compiled loops have room for at first."""

from __future__ import annotations

from collections import Counter

import pytest

import headwater as hw
from headwater.terms.model import Element, Literal, NamedNode, Triple

STREAM = "http://ex/s"
MANY = 2_100
"""More than twice what there is room for at first: it is made larger twice."""
_EQUAL = "?a <urn:low> ?x . ?b <urn:high> ?y . ?a <urn:of> ?k . ?b <urn:of> ?k"
_ORDERED = "?a <urn:low> ?x . ?b <urn:high> ?y . FILTER(?x < ?y)"


def element(time: int, subject: str, predicate: str, value: Literal | NamedNode) -> Element:
    return Element(time, (Triple(NamedNode(subject), NamedNode(predicate), value),))


def number(value: int) -> Literal:
    return Literal(value)


def elements(times: dict[str, int]) -> list[Element]:
    """Many low values and one high one, each at its time; all belong to one key."""
    key = NamedNode("urn:k")
    lows = [
        one
        for place in range(MANY)
        for one in (
            element(times["low"] + place, f"urn:a{place}", "urn:of", key),
            element(times["low"] + place, f"urn:a{place}", "urn:low", number(place)),
        )
    ]
    highs = [
        element(times["high"], "urn:b", "urn:of", key),
        element(times["high"], "urn:b", "urn:high", number(MANY)),
    ]
    return sorted(lows + highs, key=lambda one: one.time)


@pytest.mark.parametrize("emit", ["istream", "dstream"])
@pytest.mark.parametrize("condition", [_EQUAL, _ORDERED])
@pytest.mark.parametrize("times", [{"low": 1, "high": 5_000}, {"low": 10, "high": 1}])
@pytest.mark.parametrize("window", [f"TRIPLES {2 * MANY + 2}", "RANGE PT10S"])
def test_an_element_with_many_partners_has_all_of_them(
    window: str, times: dict[str, int], condition: str, emit: str
) -> None:
    milliseconds = [Element(one.time * 1000, one.triples) for one in elements(times)]
    # Behind all of them comes what lets them leave the window.
    milliseconds.append(element(20_000_000, "urn:c", "urn:low", number(MANY + 1)))
    text = (
        f"SELECT ?a ?b FROM NAMED WINDOW <urn:w> ON <{STREAM}> [{window}] WHERE {{ WINDOW <urn:w> {{ {condition} }} }}"
    )
    engine = hw.Engine(in_process=True)
    engine.stream(STREAM, hw.memory(milliseconds))
    engine.register(text, emit=emit, t0=0)
    rows: Counter[str] = Counter()
    engine.run(on_answer=lambda answer: rows.update(str(row[0]) for row in answer.rows))
    if emit == "istream" or window.startswith("RANGE"):
        assert rows == {f"<urn:a{place}>": 1 for place in range(MANY)}
    else:
        assert not rows - Counter({f"<urn:a{place}>": 1 for place in range(MANY)})
