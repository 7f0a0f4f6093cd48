"""The form of a query without its constants: what queries of a family may differ in, and what not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryPlan
from headwater.algebra.query_families import ConstantTerm, Family, form_of, replace_constants
from headwater.language.parser import parse
from headwater.terms.model import XSD, Literal, NamedNode

EX = "http://example.org/"
TEXT = """PREFIX : <http://example.org/>
SELECT ?s ?v FROM NAMED WINDOW :w ON :s [RANGE 2s STEP 1s] WHERE {
  WINDOW :w { ?s :value ?v ; :kind :rain } GRAPH :plan { ?s :in "Berlin" }
  OPTIONAL { ?s :owner :ann } VALUES ?v { 1 2 }
  FILTER(?v > 10 && NOT EXISTS { ?s :state "off" }) } ORDER BY ?v LIMIT 3"""


def plan(text: str = TEXT) -> QueryPlan:
    return plan_query(parse(text))


def integer(number: int) -> Literal:
    return Literal(str(number), datatype=NamedNode(XSD + "integer"))


def test_constants_in_patterns_values_and_expressions() -> None:
    _, constants = form_of(plan())
    assert set(constants) == {
        NamedNode(EX + "rain"),
        Literal("Berlin"),
        NamedNode(EX + "ann"),
        integer(1),
        integer(2),
        integer(10),
        Literal("off"),
    }


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        (":kind :rain", ":kind :snow"),
        ('"Berlin"', '"Bonn"@de'),
        ("{ 1 2 }", "{ :x 2.5 }"),
        ("?v > 10", "?v > 20"),
        ('"off"', "false"),
        (":ann", '"Ann"'),
    ],
)
def test_queries_that_differ_in_constants_have_one_form(was: str, becomes: str) -> None:
    first, second = form_of(plan()), form_of(plan(TEXT.replace(was, becomes)))
    assert first[0] == second[0] and hash(first[0]) == hash(second[0])
    assert first[1] != second[1]


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("RANGE 2s", "RANGE 3s"),
        ("ON :s ", "ON :other "),
        (":value", ":measure"),
        ("GRAPH :plan", "GRAPH :map"),
        ("LIMIT 3", "LIMIT 4"),
        ("SELECT ?s ?v", "SELECT ?v ?s"),
        ("SELECT ?s", "SELECT DISTINCT ?s"),
        ("?v > 10", "?v >= 10"),
        ("{ 1 2 }", "{ 1 2 3 }"),
        ("{ 1 2 }", "{ 1 UNDEF }"),
        (":owner :ann", ":owner ?ann"),
        ("OPTIONAL {", "MINUS {"),
    ],
)
def test_queries_that_differ_in_more_do_not(was: str, becomes: str) -> None:
    assert was in TEXT
    assert form_of(plan())[0] != form_of(plan(TEXT.replace(was, becomes)))[0]


def test_the_ends_of_paths_belong_to_the_form() -> None:
    along = "SELECT ?c WHERE { ?c <urn:sub>* <urn:%s> }"
    assert form_of(plan(along % "a"))[0] != form_of(plan(along % "b"))[0]


def test_settings_belong_to_the_form() -> None:
    assert form_of(plan(), "one")[0] != form_of(plan(), "another")[0]


def test_templates_do_not() -> None:
    text = "CONSTRUCT { ?s <urn:%s> ?v } FROM STREAM <urn:s> [RANGE 1s] WHERE { ?s <urn:value> ?v }"
    assert form_of(plan(text % "a"))[0] == form_of(plan(text % "b"))[0]


def test_parameters_are_the_constants_that_differ() -> None:
    queries = [
        form_of(plan(TEXT.replace("> 10", f"> {n}").replace("Berlin", city))) for n, city in ((1, "A"), (2, "B"))
    ]
    family = Family.of(queries[0][0], [constants for _, constants in queries])
    assert len(family.parameters) == 2
    values = [family.values(*query) for query in queries]
    assert values[0] is not None and values[1] is not None
    assert {*values[0]} == {integer(1), Literal("A")} and {*values[1]} == {integer(2), Literal("B")}
    assert family.values(*form_of(plan(TEXT.replace(":rain", ":snow")))) is None
    assert family.values(*form_of(plan(TEXT.replace("LIMIT 3", "LIMIT 4")))) is None


@given(st.lists(st.sampled_from([integer(1), Literal("x"), NamedNode(EX + "a")]), min_size=7, max_size=7))
def test_constants_can_be_put_in_and_read_again(given_terms: list[ConstantTerm]) -> None:
    whole = plan()
    form, constants = form_of(whole)
    terms = iter(given_terms)
    assert replace_constants(whole.root, lambda term: term) == whole.root
    changed = replace_constants(form.root, lambda _: next(terms))
    read: list[ConstantTerm] = []
    replace_constants(changed, lambda term: read.append(term) or term)  # type: ignore[func-returns-value]
    assert read == given_terms and len(constants) == len(given_terms)
