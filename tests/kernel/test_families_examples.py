"""Families by example: who is in one, what each member says, what happens when members come and go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest
from pyoxigraph import Quad, Store

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Filter
from headwater.algebra.scope import nodes_of
from headwater.execution.answers import Answer
from headwater.execution.evaluator import Evaluator, EvaluatorState
from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.execution.typed_cells import plain_text
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.families.family_compiler import FamilyCompiler
from headwater.kernel.families.family_evaluator import FamilyEvaluator, find_families
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import XSD, Element, Literal, NamedNode, Term, Triple
from headwater.terms.packing import pack, unpack
from headwater.windows.settings import resolve_settings
from tests.optimised_evaluators import make_optimised_evaluator

EX = "http://example.org/"
STREAM = EX + "s"
SECOND = 1_000_000
HEAD = f"PREFIX : <{EX}> "
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 2s STEP 1s]"


def iri(name: str) -> NamedNode:
    return NamedNode(EX + name)


def integer(number: int) -> Literal:
    return Literal(str(number), datatype=NamedNode(XSD + "integer"))


def said(time: float, subject: str, predicate: str, object_: Term) -> Element:
    instant = int(time * SECOND)
    return Element(instant, (Triple(iri(subject), iri(predicate), object_),), None, (instant,))


READINGS = [
    said(0.5, "s1", "value", integer(10)),
    said(0.7, "s2", "value", integer(20)),
    said(1.5, "s1", "value", integer(30)),
    said(1.7, "s1", "state", Literal("on")),
    said(2.5, "s3", "value", integer(30)),
    said(2.6, "s2", "state", Literal("off")),
    said(4.5, "s1", "value", integer(5)),
    said(5.5, "s9", "value", integer(0)),
]


def static() -> Store:
    store = Store()
    for sensor, room in (("s1", "kitchen"), ("s2", "hall"), ("s3", "kitchen")):
        store.add(Quad(iri(sensor), iri("in"), iri(room)))
        store.add(Quad(iri(room), iri("label"), Literal(room)))
    return store


def registered(text: str, name: str) -> RegisteredQuery:
    plan = plan_query(parse(HEAD + text), name=name)
    return RegisteredQuery(plan, resolve_settings(plan))


def queries(template: str, *constants: str) -> list[RegisteredQuery]:
    return [registered(template.replace("@", constant), f"q{i}") for i, constant in enumerate(constants)]


def answers(members: Sequence[RegisteredQuery], elements: Sequence[Element] = READINGS) -> dict[str, list[Answer]]:
    """What the members of a family say; checked against what each says alone."""
    together = Program(members, static(), 0, make_optimised_evaluator, families=find_families)
    assert len(set(together.evaluators.values())) == 1
    found = together.advance({STREAM: list(elements)}, ended=[STREAM]).answers
    for make in (KernelEvaluator, ReferenceEvaluator):
        assert Program(members, static(), 0, make).advance({STREAM: list(elements)}, ended=[STREAM]).answers == found
    return {one.plan.name: [answer for answer in found if answer.query == one.plan.name] for one in members}


def rows(answer: Answer) -> list[list[str]]:
    return [[plain_text(term) or "" for term in row] for row in answer.rows]


def values(found: list[Answer]) -> list[list[str]]:
    return [[" ".join(row) for row in rows(answer)] for answer in found]


def test_a_constant_of_a_stream_pattern() -> None:
    found = answers(queries(f"SELECT ?v {WINDOW} WHERE {{ WINDOW :w {{ :@ :value ?v }} }}", "s1", "s2", "nobody"))
    assert values(found["q0"])[:3] == [["10"], ["10", "30"], ["30"]]
    assert values(found["q1"])[:3] == [["20"], ["20"], []]
    assert not any(answer.rows for answer in found["q2"])


def test_a_literal_matches_as_a_term() -> None:
    found = answers(queries(f"SELECT ?s {WINDOW} WHERE {{ WINDOW :w {{ ?s :value @ }} }}", "30", "30.0", "'30'"))
    assert [len(answer.rows) for answer in found["q0"]] == [0, 1, 2, 1, 0, 0, 0][: len(found["q0"])]
    assert not any(answer.rows for name in ("q1", "q2") for answer in found[name])


def test_thresholds() -> None:
    template = f"SELECT ?s ?v {WINDOW} WHERE {{ WINDOW :w {{ ?s :value ?v }} FILTER(?v > @) }}"
    found = answers(queries(template, "5", "15", "25", "'x'"))
    assert [len(answer.rows) for answer in found["q0"]][:3] == [2, 3, 2]
    assert [len(answer.rows) for answer in found["q2"]][:3] == [0, 1, 2]


def test_an_equality_is_looked_up_and_not_tried() -> None:
    template = f"SELECT ?s ?r ?v {WINDOW} WHERE {{ WINDOW :w {{ ?s :value ?v }} ?s :in ?r FILTER(?r = @ && ?v > 5) }}"
    members = queries(template, ":kitchen", ":hall", ":cellar")
    found = answers(members)
    assert [len(answer.rows) for answer in found["q0"]][:3] == [1, 2, 2]
    assert not any(answer.rows for answer in found["q2"])
    family = FamilyEvaluator(members, static())
    assert not [
        node for node in nodes_of(family.plan.root) if isinstance(node, Filter) and "hwf_" in repr(node.condition)
    ]
    family.add([registered(template.replace("@", ":attic"), "attic")])
    with pytest.raises(ValueError, match="differs from it"):
        family.add([registered(template.replace("@", "7"), "number")])


def test_equalities_of_values_and_of_terms_are_two_families() -> None:
    template = f"SELECT ?s ?v {WINDOW} WHERE {{ WINDOW :w {{ ?s :value ?v }} FILTER(?v = @) }}"
    members = queries(template, "30", "'30'", "30.0", ":s1", "'20'", "20")
    by_value, by_term = sorted(find_families(members, static()), key=lambda family: family.names)
    assert (by_value.names, by_term.names) == (("q0", "q2", "q5"), ("q1", "q3", "q4"))
    together = Program(members, static(), 0, make_optimised_evaluator, families=find_families)
    found = together.advance({STREAM: list(READINGS)}, ended=[STREAM]).answers
    alone = Program(members, static(), 0, ReferenceEvaluator)
    assert alone.advance({STREAM: list(READINGS)}, ended=[STREAM]).answers == found


def test_a_constant_of_the_static_data_keeps_its_view_small() -> None:
    template = f"SELECT ?s ?v {WINDOW} WHERE {{ WINDOW :w {{ ?s :value ?v }} ?s :in ?r . ?r :label @ }}"
    members = queries(template, "'kitchen'", "'cellar'")
    found = answers(members)
    assert [len(answer.rows) for answer in found["q0"]][:3] == [1, 2, 2]
    family = FamilyEvaluator(members, static())
    (view,) = cast(FamilyCompiler, family._compiler).followers
    # Of three sensors in two rooms, the two in the kitchen.
    assert view.nbytes == 2 * 3 * 8  # type: ignore[attr-defined]


def test_every_member_has_its_group_of_nothing() -> None:
    aggregates = "(COUNT(*) AS ?n) (SUM(?v) AS ?sum) (AVG(?v) AS ?avg) (MIN(?v) AS ?min) (GROUP_CONCAT(?v) AS ?all)"
    found = answers(queries(f"SELECT {aggregates} {WINDOW} WHERE {{ WINDOW :w {{ :@ :value ?v }} }}", "s1", "nobody"))
    assert rows(found["q0"][1]) == [["2", "40", "20", "10", "10 30"]]
    assert all(rows(answer) == [["0", "0", "0", "", ""]] for answer in found["q1"])


def test_groups_having_and_order_are_each_members_own() -> None:
    template = (
        f"SELECT ?s (MAX(?v) AS ?m) {WINDOW} WHERE {{ WINDOW :w {{ ?s :value ?v }} FILTER(?v >= @) }}"
        " GROUP BY ?s HAVING (MAX(?v) > @) ORDER BY DESC(?m) LIMIT 1"
    )
    found = answers(queries(template, "5", "15", "29"))
    assert [len(answer.rows) for answer in found["q0"]][:3] == [1, 1, 1]
    assert rows(found["q1"][0]) == [[EX + "s2", "20"]]


@pytest.mark.parametrize(
    "where",
    [
        "WINDOW :w { ?s :value ?v } OPTIONAL { WINDOW :w { ?s :state @ } ?s :in ?r }",
        "WINDOW :w { ?s :value ?v } OPTIONAL { ?s :in ?r FILTER(?r != @) }",
        "WINDOW :w { ?s :value ?v } MINUS { WINDOW :w { ?s :state @ } }",
        "WINDOW :w { ?s :value ?v } MINUS { ?x :in @ }",
        "WINDOW :w { ?s :value ?v } FILTER NOT EXISTS { WINDOW :w { ?s :state @ } }",
        "WINDOW :w { ?s :value ?v } FILTER EXISTS { ?s :in ?r FILTER(?r = @ || ?v > 25) }",
        "{ WINDOW :w { ?s :value ?v } } UNION { ?s :in @ }",
        "WINDOW :w { ?s :value ?v } { SELECT ?s (COUNT(*) AS ?n) WHERE { ?s :in @ } GROUP BY ?s }",
        "WINDOW :w { ?s :value ?v } { SELECT (COUNT(*) AS ?n) WHERE { WINDOW :w { ?x :state @ } } }",
        "WINDOW :w { ?s :value ?v } VALUES (?s ?w) { (:s1 @) (@ UNDEF) }",
        "WINDOW :w { ?s :value ?v } BIND(@ AS ?w)",
        "GRAPH ?g { ?s :in @ } WINDOW :w { ?s :value ?v }",
        "WINDOW ?g { ?s :state @ } WINDOW :w { ?s :value ?v }",
        "{ SELECT DISTINCT ?s WHERE { WINDOW :w { ?s ?p @ } } } ?s :in ?r",
        "{ SELECT ?s ?v { WINDOW :w { ?s :value ?v } } ORDER BY DESC(?v) LIMIT 2 } OPTIONAL { ?s :in @ . ?s ?p ?o }",
        "{ SELECT ?s WHERE { WINDOW :w { ?s ?p @ } } ORDER BY DESC(?p) } ?s :in ?r",
        "{ SELECT (COUNT(DISTINCT *) AS ?n) {{ ?s :in ?r } UNION { ?s :in ?r FILTER(?r != @) }}} WINDOW :w { ?s ?p 5 }",
    ],
)
def test_wherever_the_constant_stands(where: str) -> None:
    answers(queries(f"SELECT * {WINDOW} WHERE {{ {where} }}", "'on'", "'off'", ":kitchen", ":hall", ":s2", "30"))


def test_aggregates_of_csparql() -> None:
    window = "FROM STREAM :s [RANGE 2s STEP 1s]"
    aggregate = "AGGREGATE { (?n, COUNT, {?s}) FILTER(?n >= @) } AGGREGATE { (?all, SUM(?v), {?v}) }"
    where = "WHERE { ?s :value ?v FILTER(?v > @) }"
    found = answers(queries(f"SELECT ?s ?v ?n ?all {window} {where} {aggregate}", "1", "2"))
    assert any(answer.rows for answer in found["q0"]) and any(answer.rows for answer in found["q1"])


@pytest.mark.parametrize("form", ["SELECT ?s ?v", "SELECT DISTINCT ?v", "ASK", "CONSTRUCT { _:b :of ?s ; :is ?v }"])
@pytest.mark.parametrize("operator", ["RSTREAM", "ISTREAM", "DSTREAM"])
@pytest.mark.parametrize("limit", ["", " ORDER BY ?v LIMIT 1"])
def test_all_forms_and_operators(form: str, operator: str, limit: str) -> None:
    named = f"REGISTER {operator} :o AS {form} {WINDOW} WHERE {{ WINDOW :w {{ ?s :value ?v }} FILTER(?v > @) }}{limit}"
    texts = [named.replace("@", bound).replace(":o", f":o{i}") for i, bound in enumerate(("5", "15", "25", "5"))]
    answers([registered(text, f"q{i}") for i, text in enumerate(texts)])


def test_templates_may_differ() -> None:
    texts = [f"CONSTRUCT {{ ?s :{p} ?v }} {WINDOW} WHERE {{ WINDOW :w {{ ?s :value ?v }} }}" for p in ("low", "high")]
    found = answers([registered(text, f"q{i}") for i, text in enumerate(texts)])
    assert {triple.predicate for answer in found["q1"] for triple in answer.triples} == {iri("high")}


def test_a_member_may_feed_another_query() -> None:
    window = "FROM STREAM :s [RANGE 1s TUMBLING]"
    feeding = f"REGISTER STREAM :hot@ AS CONSTRUCT {{ ?s :is ?v }} {window} WHERE {{ ?s :value ?v FILTER(?v > @) }}"
    reading = "REGISTER QUERY :last@ AS SELECT ?s FROM STREAM :hot@ [RANGE 2s STEP 1s] WHERE { ?s :is ?v }"
    members = [
        registered(text.replace("@", n), f"{kind}{n}")
        for n in ("5", "25")
        for kind, text in (("hot", feeding), ("last", reading))
    ]
    together = Program(members, static(), 0, make_optimised_evaluator, families=find_families)
    assert len(set(together.evaluators.values())) == 3
    found, expected = (
        program.advance({STREAM: list(READINGS)}, ended=[STREAM]).answers
        for program in (together, Program(members, static(), 0, make_optimised_evaluator))
    )
    assert found == expected and any(answer.query == "last25" and answer.rows for answer in found)


def test_queries_without_siblings_are_evaluated_alone() -> None:
    template = f"SELECT ?v {WINDOW} WHERE {{ WINDOW :w {{ :@ :value ?v }} }}"
    others = [
        registered(f"SELECT ?v {WINDOW} WHERE {{ WINDOW :w {{ :s1 :state ?v }} }}", "state"),
        registered(f"SELECT ?v {WINDOW.replace('2s', '3s')} WHERE {{ WINDOW :w {{ :s1 :value ?v }} }}", "longer"),
        registered(f"DESCRIBE ?s {WINDOW} WHERE {{ WINDOW :w {{ ?s :state 'on' }} }}", "describe1"),
        registered(f"DESCRIBE ?s {WINDOW} WHERE {{ WINDOW :w {{ ?s :state 'off' }} }}", "describe2"),
        registered("SELECT ?s WHERE { ?s :in :kitchen }", "once1"),
        registered("SELECT ?s WHERE { ?s :in :hall }", "once2"),
    ]
    (family,) = find_families([*queries(template, "s1", "s2"), *others], static())
    assert family.names == ("q0", "q1")


def test_what_no_family_can_evaluate_is_evaluated_alone() -> None:
    inner = "{ SELECT ?s WHERE { WINDOW :w { ?s :value @ } } ORDER BY ?s LIMIT 1 }"
    members = queries(f"SELECT ?s {WINDOW} WHERE {{ {inner} }}", "10", "30")
    with pytest.raises(UnsupportedByKernel, match="LIMIT or OFFSET in a sub-query"):
        FamilyEvaluator(members, static())
    assert find_families(members, static()) == []


def test_equal_queries_are_one_member() -> None:
    template = f"SELECT ?v {WINDOW} WHERE {{ WINDOW :w {{ :@ :value ?v }} }}"
    members = queries(template, "s1", "s1", "s2", "s1")
    assert values(answers(members)["q3"]) == values(answers(members)["q0"])
    assert len(FamilyEvaluator(members, static())._members) == 2


def advance(evaluator: Evaluator, low: float, high: float) -> list[Answer]:
    batch = [element for element in READINGS if low * SECOND <= element.time < high * SECOND]
    return list(evaluator.advance({evaluator.keys[0]: batch}, int(high * SECOND)))


def test_rows_that_static_data_brings_and_the_next_tick_takes_are_never_emitted() -> None:
    template = f"REGISTER ISTREAM :o AS SELECT ?v ?l {WINDOW} WHERE {{ WINDOW :w {{ :@ :value ?v }} ?r :label ?l }}"
    members = queries(template, "s2", "s4")
    emitted: list[list[tuple[int, object]]] = []
    for make in (
        lambda store: FamilyEvaluator(members, store),
        lambda store: ReferenceEvaluator(members[0].plan, members[0].settings, store),
    ):
        store = static()
        evaluator: Evaluator = make(store)
        found = advance(evaluator, 0, 2.4)
        evaluator.prepare_static_change()
        store.add(Quad(iri("attic"), iri("label"), Literal("attic")))
        evaluator.apply_static_change()
        found += advance(evaluator, 2.4, 4.4)
        emitted.append([(answer.time, answer.rows) for answer in found if answer.query == "q0"])
    assert emitted[0] == emitted[1]
    assert [len(rows) for _, rows in emitted[1]] == [2, 0, 0, 0]  # type: ignore[arg-type]


def test_a_query_that_comes_later_answers_from_what_the_windows_hold() -> None:
    template = f"REGISTER ISTREAM :o AS SELECT ?v {WINDOW} WHERE {{ WINDOW :w {{ :@ :value ?v }} }}"
    first, late, again = queries(template, "s1", "s2", "s1")
    family = FamilyEvaluator(
        [first, registered(first.plan.text.replace(HEAD, "").replace(":s1", ":s3"), "other")], static()
    )
    before = advance(family, 0, 1.8)
    assert [(answer.query, answer.time, values([answer])[0]) for answer in before if answer.rows] == [
        ("q0", SECOND, ["10"])
    ]
    assert family.complete_from("q0") is None
    family.add([late, again])
    assert family.complete_from("q1") == SECOND + 1
    after = advance(family, 1.8, 2.7)
    # What is there is new to whoever has just come.
    assert [(answer.query, values([answer])[0]) for answer in after if answer.rows] == [
        ("q0", ["30"]),
        ("q1", ["20"]),
        ("q2", ["10", "30"]),
    ]
    family.remove("q0")
    assert family.names == ("other", "q1", "q2")
    assert {answer.query for answer in advance(family, 2.7, 6)} == {"other", "q1", "q2"}
    with pytest.raises(ValueError, match="'q1' cannot join this family of queries: it is in it already"):
        family.add([late])
    with pytest.raises(ValueError, match="differs from it in more than its parameters"):
        family.add([registered(f"SELECT ?v {WINDOW} WHERE {{ WINDOW :w {{ :s1 :state ?v }} }}", "q9")])


def test_what_a_member_brought_goes_with_it() -> None:
    template = f"SELECT ?v {WINDOW} WHERE {{ WINDOW :w {{ ?s :value ?v }} ?s :in ?r . ?r :label @ }}"
    family = FamilyEvaluator(queries(template, "'kitchen'", "'hall'"), static())
    advance(family, 0, 1.8)
    (view,) = cast(FamilyCompiler, family._compiler).followers
    held = view.nbytes  # type: ignore[attr-defined]
    family.remove("q0")
    assert 0 < view.nbytes < held  # type: ignore[attr-defined]
    family.add(queries(template, "'kitchen'"))
    assert view.nbytes == held  # type: ignore[attr-defined]
    found = advance(family, 1.8, 2.5)
    assert {answer.query: values([answer])[0] for answer in found} == {"q1": ["20"], "q0": ["10", "30"]}


def test_a_restart_between_coming_and_speaking_loses_nothing() -> None:
    template = f"REGISTER ISTREAM :o AS SELECT ?v {WINDOW} WHERE {{ WINDOW :w {{ :@ :value ?v }} }}"
    first, second, late = queries(template, "s1", "s2", "s1")
    family = FamilyEvaluator([first, second], static())
    advance(family, 0, 1.8)
    family.add([late])
    state = EvaluatorState.from_plain(unpack(pack(family.state().to_plain())))
    retained = {family.keys[0]: [element for element in READINGS if element.time < 1.8 * SECOND]}
    again = FamilyEvaluator([first, second, late], static())
    again.restore(state, retained)
    assert again.complete_from("q2") == SECOND + 1
    for one in (family, again):
        found = advance(one, 1.8, 2.7)
        assert [(answer.query, values([answer])[0]) for answer in found if answer.rows] == [
            ("q0", ["30"]),
            ("q2", ["10", "30"]),
        ]
