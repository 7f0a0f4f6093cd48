"""Static parts of any form, joined with a stream of which many ticks are taken in one step."""

from __future__ import annotations

from collections import Counter

import pytest

import headwater as hw
from headwater.execution.answers import Answer
from headwater.terms.model import Literal, NamedNode, Triple

EX = "http://example.org/"
PARTS = {
    "VALUES": "VALUES (?x ?u) { (:c 1) (:b 2) (:d 2) }",
    "an alternative path": "?x :v|:w ?u",
    "a sub-query": "{ SELECT DISTINCT ?x ?u WHERE { ?x :v ?u . ?z :w ?t } }",
    "BIND": "{ ?x :v ?n BIND(?n + 1 AS ?u) }",
    "EXISTS": "{ ?x :v ?u FILTER EXISTS { ?y2 :w ?u2 } }",
    "two patterns": "?x :v ?u . ?x :w ?t",
    "OPTIONAL": "{ ?x :v ?u OPTIONAL { ?x :w ?t } }",
    "a group": "{ SELECT ?x (MAX(?n) AS ?u) WHERE { ?x :v ?n } GROUP BY ?x }",
}
STATIC = ("c v 1", "b v 2", "d v 2", "b w 7", "c w 8", "e w 9")


def node(name: str) -> NamedNode:
    return NamedNode(EX + name)


def triple(text: str) -> Triple:
    subject, predicate, value = text.split()
    return Triple(node(subject), node(predicate), Literal(int(value)) if value.isdigit() else node(value))


def answers_of(text: str, evaluator: str) -> list[Answer]:
    engine = hw.Engine(in_process=True, evaluator=evaluator)  # type: ignore[arg-type]
    names = "kkkkkkkkkkkkkkkkkkkkcbdkeccbk"
    engine.stream(EX + "s", hw.memory([(1000 * i, [triple(f"{x} p b")]) for i, x in enumerate(names, 1)]))
    engine.dataset([triple(one) for one in STATIC])
    engine.register(f"PREFIX : <{EX}> {text}", name="q")
    answers: list[Answer] = []
    # With `on_answer` ticks would be evaluated one by one, because the data may change.
    engine.run(on_batch=answers.extend)
    return answers


@pytest.mark.parametrize("window", ["[NOW]", "[TRIPLES 3]", "[RANGE 5ms SLIDE 2ms]"])
@pytest.mark.parametrize("part", PARTS)
def test_static_parts_are_the_same_at_many_ticks(part: str, window: str) -> None:
    text = f"SELECT ?x ?u WHERE {{ STREAM :s {window} {{ ?x :p ?y }} {PARTS[part]} }}"
    found, expected = answers_of(text, "auto"), answers_of(text, "reference")
    assert [(one.time, Counter(one.rows)) for one in found] == [(one.time, Counter(one.rows)) for one in expected]
    assert any(one.rows for one in expected)
