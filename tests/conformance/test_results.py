"""When two results are the same: blank nodes, order, numbers, graphs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.conformance.expected_results import Solutions, read_expected, same_graph, same_solutions, through_writer
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Row, Triple

A, B, C = (BlankNode(label) for label in "abc")
X, Y = NamedNode("http://example/x"), NamedNode("http://example/y")


def table(*rows: Row, variables: tuple[str, ...] = ("p", "q")) -> Solutions:
    return Solutions(variables, rows)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ([(X, Y), (Y, X)], [(Y, X), (X, Y)], True),
        ([(X, Y), (X, Y)], [(X, Y)], False),
        ([(X, None)], [(X, Y)], False),
        ([(A, A)], [(B, B)], True),
        ([(A, A)], [(B, C)], False),
        ([(A, B)], [(C, C)], False),
        ([(A, X), (A, Y)], [(B, X), (B, Y)], True),
        ([(A, X), (A, Y)], [(B, X), (C, Y)], False),
        ([(A, B), (B, C), (C, A)], [(B, A), (A, C), (C, B)], True),
        ([(A, B), (B, C), (C, A)], [(A, B), (B, A), (C, C)], False),
    ],
)
def test_rows_are_compared_up_to_the_names_of_blank_nodes(left: list[Row], right: list[Row], same: bool) -> None:
    assert same_solutions(table(*left), table(*right)) is same
    assert same_solutions(table(*right), table(*left)) is same


nodes = st.sampled_from([A, B, C, X, Y])


@given(st.lists(st.tuples(nodes, nodes), max_size=7), st.permutations([A, B, C]), st.randoms())
def test_a_renamed_and_shuffled_table_is_the_same(
    rows: list[tuple[BlankNode | NamedNode, BlankNode | NamedNode]], names: list[BlankNode], random: object
) -> None:
    renaming: dict[object, BlankNode] = dict(zip((A, B, C), names, strict=True))
    renamed = [tuple(renaming.get(term, term) for term in row) for row in rows]
    random.shuffle(renamed)  # type: ignore[attr-defined]
    assert same_solutions(table(*rows), table(*renamed))


def test_columns_may_stand_in_any_order_but_must_be_the_same() -> None:
    assert same_solutions(table((X, Y)), table((Y, X), variables=("q", "p")))
    assert not same_solutions(table((X, Y)), table((X, Y), variables=("p", "r")))


def test_order_counts_only_where_it_is_asked_for() -> None:
    there, back = table((X, A), (Y, B)), table((Y, A), (X, B))
    assert same_solutions(there, back)
    assert not same_solutions(there, back, ordered=True)
    assert same_solutions(there, table((X, C), (Y, A)), ordered=True)


def test_lax_ignores_how_often_a_row_comes() -> None:
    assert same_solutions(table((X, Y), (X, Y)), table((X, Y)), lax=True)
    assert not same_solutions(table((X, Y), (Y, Y)), table((X, Y)), lax=True)


@pytest.mark.parametrize(
    ("left", "right", "datatype", "same"),
    [
        ("2.0", "2", "decimal", True),
        ("2.0E3", "2000", "double", True),
        ("1", "true", "boolean", True),
        ("01", "1", "integer", True),
        ("2", "3", "integer", False),
        ("abc", "abd", "integer", False),
        ("01", "1", "string", False),
    ],
)
def test_numbers_are_compared_by_value(left: str, right: str, datatype: str, same: bool) -> None:
    terms = [Literal(text, datatype=NamedNode(XSD + datatype)) for text in (left, right)]
    assert same_solutions(table((terms[0], X)), table((terms[1], X))) is same


def test_numbers_of_two_types_differ() -> None:
    one, other = (Literal("1", datatype=NamedNode(XSD + name)) for name in ("integer", "decimal"))
    assert not same_solutions(table((one, X)), table((other, X)))


def test_graphs_are_compared_up_to_isomorphism() -> None:
    assert same_graph([Triple(A, X, B), Triple(B, X, A)], [Triple(B, X, C), Triple(C, X, B)])
    assert not same_graph([Triple(A, X, B), Triple(B, X, A)], [Triple(A, X, A), Triple(B, X, B)])


@pytest.mark.parametrize("suffix", [".srx", ".srj", ".tsv"])
def test_a_written_table_is_read_back(suffix: str) -> None:
    rows: list[Row] = [
        (X, Literal("a\tb,\n c", language="en")),
        (None, Literal("01", datatype=NamedNode(XSD + "byte"))),
    ]
    assert through_writer(table(*rows), suffix) == table(*rows)


def test_csv_keeps_texts_only() -> None:
    assert through_writer(table((X, A), (None, Literal(5))), ".csv") == table(
        (Literal(X.value), A), (None, Literal("5"))
    )


def test_a_result_set_in_rdf_is_read_in_its_order(tmp_path: Path) -> None:
    file = tmp_path / "result.ttl"
    file.write_text("""
        @prefix rs: <http://www.w3.org/2001/sw/DataAccess/tests/result-set#> .
        [] a rs:ResultSet ; rs:resultVariable "b", "a" ;
           rs:solution [ rs:index 2 ; rs:binding [ rs:variable "a" ; rs:value 02 ] ] ,
                       [ rs:index 1 ; rs:binding [ rs:variable "a" ; rs:value 1 ], [ rs:variable "b" ; rs:value 3 ] ] .
    """)
    one, two, three = (Literal(text, datatype=NamedNode(XSD + "integer")) for text in ("1", "02", "3"))
    assert read_expected(file) == Solutions(("a", "b"), ((one, three), (two, None)), in_order=True)


def test_a_verdict_in_rdf_is_a_verdict(tmp_path: Path) -> None:
    file = tmp_path / "result.ttl"
    file.write_text("""
        @prefix rs: <http://www.w3.org/2001/sw/DataAccess/tests/result-set#> .
        [] a rs:ResultSet ; rs:boolean true .
    """)
    assert read_expected(file) is True


def test_any_other_graph_is_the_result_itself(tmp_path: Path) -> None:
    file = tmp_path / "result.ttl"
    file.write_text("<http://example/x> <http://example/x> <http://example/y> .")
    assert read_expected(file) == (Triple(X, X, Y),)
