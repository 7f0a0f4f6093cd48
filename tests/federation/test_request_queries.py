"""What is asked about some keys, against the definition: the solutions of the pattern that agree with the key."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, Quad, QuerySolutions, Store

from headwater.federation.endpoint.request_queries import RequestQueries
from headwater.language.errors import QueryError
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Row, Term

EX = "http://example.org/"
INTEGER = NamedNode(XSD + "integer")
NODES = [NamedNode(EX + name) for name in ("1", "2", "g")]
NUMBERS = [Literal(text, datatype=INTEGER) for text in ("1", "2")]
TERMS: list[NamedNode | Literal] = [*NODES, *NUMBERS]
LINKS = [NamedNode(EX + name) for name in ("p", "q")]
A, B, G = NODES
P, Q = (str(link) for link in LINKS)


def solutions(store: Store, query: str, names: Sequence[str]) -> list[Row]:
    found = store.query(query)
    assert isinstance(found, QuerySolutions)
    known = [variable.value for variable in found.variables]
    places = [known.index(name) if name in known else None for name in names]
    return [tuple(None if place is None else solution[place] for place in places) for solution in found]


def check(store: Store, queries: RequestQueries, everything: Sequence[Row], keys: Sequence[Row]) -> None:
    """Both kinds of queries give what the definition says: {key} ⋈ pattern."""
    expected = {
        key: Counter(queries.join_key(row, key) for row in everything if queries.is_compatible(row, key))
        for key in keys
    }
    event(f"some solution agrees: {any(expected.values())}")
    for key in keys:
        alone = solutions(store, queries.select_key(key), queries.names)
        assert all(queries.is_compatible(row, key) for row in alone)
        assert Counter(queries.join_key(row, key) for row in alone) == expected[key], queries.select_key(key)
    if "OPTIONAL" in queries.select_keys(keys):
        # pyoxigraph lets some OPTIONALs see the bindings of VALUES from outside of their group.
        return
    together: dict[Row, Counter[Row]] = {key: Counter() for key in keys}
    for number, *row in solutions(store, queries.select_keys(keys), [queries.key_index, *queries.names]):
        assert isinstance(number, Literal)
        together[keys[int(number.value)]][tuple(row)] += 1
    assert together == expected, queries.select_keys(keys)


class Writer:
    """Writes patterns by chance: every construct of SPARQL, over three variables and a handful of terms.

    Left out is what pyoxigraph answers in one way or another, by the order in which it joins: paths that may have no
    step, paths with two fixed ends in GRAPH ?g, EXISTS inside OPTIONAL, and MINUS where nothing stands before it.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def variable(self) -> str:
        return self._chance.choice(["?a", "?b", "?c"])

    def object(self) -> str:
        return self.variable() if self._chance.random() < 0.8 else str(self._chance.choice([*NODES, *NUMBERS]))

    def triple(self) -> str:
        links = [P, P, Q, Q, self.variable(), f"{P}+", f"({P}|^{Q})", f"{P}/{Q}+", f"!{P}"]
        subject = self.variable() if self._chance.random() < 0.9 else str(self._chance.choice(NODES))
        return f"{subject} {self._chance.choice(links)} {self.object()} ."

    def expression(self, exists: bool) -> str:
        one, other = self.variable(), self.variable()
        asking = [f"EXISTS {{ {self.triple()} }}", f"NOT EXISTS {{ {self.triple()} FILTER({one} = {other}) }}"]
        return self._chance.choice(
            [
                *(asking if exists else []),
                f"{one} = {self.object()}",
                f"{one} != {self.object()}",
                f"{one} < 2",
                f"BOUND({one})",
                f"!BOUND({one})",
                f"BOUND({one}) || {other} = {self.object()}",
            ]
        )

    def item(self, depth: int, exists: bool) -> str:
        if depth == 0 or self._chance.random() < 0.35:
            return self.triple()
        inner = self.group(depth - 1)
        one, other = self._chance.sample(["?a", "?b", "?c"], 2)
        return self._chance.choice(
            [
                f"FILTER({self.expression(exists)})",
                f"OPTIONAL {{ {inner} }}",
                f"OPTIONAL {{ {inner} FILTER({self.expression(False)}) }}",
                f"{self.triple()} MINUS {{ {inner} }}",
                f"{{ {inner} }} UNION {{ {self.group(depth - 1)} }}",
                f"{{ {inner} }}",
                f"GRAPH {one} {{ {self.variable()} {P} {self.object()} }}",
                f"GRAPH {G} {{ {inner} }}",
                f"VALUES (?a ?b) {{ ({A} UNDEF) (UNDEF {NUMBERS[0]}) ({B} {A}) }}",
                f"{{ SELECT {one} WHERE {{ {inner} }} }}",
                f"{{ SELECT DISTINCT {one} {other} WHERE {{ {inner} }} }}",
                f"{{ SELECT ?a (COUNT(*) AS ?n) WHERE {{ {inner} }} GROUP BY ?a }}",
                f"BIND({one} AS ?d)",
                f"BIND(IF(BOUND({one}), {other}, 1) AS ?e)",
            ]
        )

    def group(self, depth: int = 2, exists: bool = False) -> str:
        return " ".join(self.item(depth, exists) for _ in range(self._chance.randint(1, 3)))


@given(st.integers(0, 2**40))
def test_every_pattern_gives_the_solutions_that_agree_with_the_key(seed: int) -> None:
    chance = random.Random(seed)
    pattern = Writer(chance).group(exists=True)
    store = Store()
    for graph in (DefaultGraph(), G):
        every = [Quad(s, p, o, graph) for s in NODES for p in LINKS for o in TERMS]
        store.extend(quad for quad in every if chance.random() < 0.35)
    try:
        names = [variable.value for variable in RequestQueries.for_pattern(pattern, ()).variables]
    except QueryError:
        assume(False)
    assume(names)
    join = chance.sample(names, chance.randint(1, min(3, len(names))))
    queries = RequestQueries.for_pattern(pattern, join)
    everything = solutions(store, RequestQueries.for_pattern(pattern, ()).select_key(()), queries.names)
    assume(len(everything) < 1000)
    terms: list[Term | None] = [*NODES, *NUMBERS, None]
    keys = {tuple(chance.choice(terms) for _ in join)}
    if everything:
        found = queries.key_of(chance.choice(everything))
        keys.add(tuple(None if chance.random() < 0.2 or isinstance(t, BlankNode) else t for t in found))
    check(store, queries, everything, sorted(keys, key=str))


PLAIN = f"?a {P} ?b"


def texts(pattern: str, join: list[str], key: Row) -> str:
    return RequestQueries.for_pattern(pattern, join).select_key(key)


def test_a_key_goes_into_the_triples() -> None:
    assert texts(PLAIN, ["a"], (A,)) == f"SELECT ?b WHERE {{ {A} {P} ?b . }}"
    assert texts(PLAIN, ["a", "b"], (A, None)) == f"SELECT ?b WHERE {{ {A} {P} ?b . }}"


def test_a_literal_is_no_subject() -> None:
    assert "FILTER" in texts(PLAIN, ["a"], (NUMBERS[0],))


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [
        # A filter inside braces of its own does not see ?a: it is an error there, and stays one.
        (f"?a {P} ?b {{ ?b {Q} ?c FILTER(?a = {A}) }}", f"FILTER((?a = {A}))"),
        (f"?a {P} ?b OPTIONAL {{ ?b {Q} ?c FILTER(?a = {A}) }}", f"FILTER(({B} = {A}))"),
        (f"?b {P} ?c {{ SELECT ?b WHERE {{ ?a {Q} ?b }} }} ?a {Q} ?c", f"?a {Q} ?b"),
        (f"?b {P} ?c OPTIONAL {{ ?a {Q} ?b }}", f"FILTER(((! BOUND(?a)) || (?a = {B})))"),
        (f"?a {P} ?b OPTIONAL {{ ?b {Q} ?c FILTER(EXISTS {{ ?a {Q} ?c }}) }}", f"FILTER((?a = {B}))"),
        (f"?a {P} ?b MINUS {{ ?b {Q} ?a }}", f"FILTER((?a = {B}))"),
        (f"?a {P} ?b MINUS {{ ?b {Q} ?c }}", f"{{ {B} {P} ?b . MINUS"),
        (f"GRAPH ?a {{ OPTIONAL {{ ?b {P} ?c }} }}", f"FILTER((?a = {B}))"),
        (f"?a {P} ?b FILTER(BOUND(?a) && ?a != {A})", f'FILTER(("true"^^<{XSD}boolean> && ({B} != {A})))'),
        (f"?a {P} ?b BIND(?a AS ?d)", f"BIND({B} AS ?d)"),
        (f"?a {P}* ?b", f"FILTER((?a = {B}))"),
        (f"{{ SELECT ?a WHERE {{ ?a {P} ?b }} LIMIT 1 }}", f"LIMIT 1 }} FILTER((?a = {B}))"),
    ],
)
def test_a_key_goes_in_only_where_it_means_the_same(pattern: str, kept: str) -> None:
    assert kept in texts(pattern, ["a"], (B,))


def test_solutions_do_not_become_different_by_losing_a_fixed_variable() -> None:
    store = Store()
    store.add(Quad(A, LINKS[0], B))
    queries = RequestQueries.for_pattern(
        f"{{ SELECT DISTINCT ?a ?c WHERE {{ {{ ?a {P} ?c }} UNION {{ ?a {P}* ?c }} }} }}", ["a"]
    )
    found = solutions(store, queries.select_key((A,)), ["c"])
    assert sorted(found, key=str) == [(A,), (B,)]


def test_literals_are_compared_as_terms_not_as_values() -> None:
    store = Store()
    store.extend(
        [Quad(A, LINKS[0], Literal("1.0", datatype=NamedNode(XSD + "decimal"))), Quad(B, LINKS[0], NUMBERS[0])]
    )
    queries = RequestQueries.for_pattern(f"?a {P} ?b {{ SELECT ?b WHERE {{ ?x {P} ?b }} ORDER BY ?b LIMIT 9 }}", ["b"])
    assert "SAMETERM" in queries.select_key((NUMBERS[0],))
    assert solutions(store, queries.select_key((NUMBERS[0],)), ["a"]) == [(B,)]


def test_a_page_has_an_order_that_leaves_nothing_to_chance() -> None:
    text = RequestQueries.for_pattern(PLAIN, ["b"]).select_page(limit=10, offset=20)
    assert text.endswith("ORDER BY ASC(?b) ASC(?a) LIMIT 10 OFFSET 20")


def test_the_number_of_a_key_has_a_name_of_its_own() -> None:
    assert RequestQueries.for_pattern(f"?hw_key {P} ?hw_key_", []).key_index == "hw_key__"


def test_blank_nodes_of_a_pattern_are_no_columns() -> None:
    queries = RequestQueries.for_pattern(f"?a {P} [ {Q} ?c ]", ["a"])
    assert queries.names == ("a", "c")


def test_questions_travel_between_processes() -> None:
    queries = RequestQueries.for_pattern(PLAIN, ["a"])
    assert pickle.loads(pickle.dumps(queries)).select_keys([(A,)]) == queries.select_keys([(A,)])


def test_a_join_variable_must_be_shown() -> None:
    with pytest.raises(ValueError, match=r"does not show \?z"):
        RequestQueries.for_pattern(PLAIN, ["z"])
