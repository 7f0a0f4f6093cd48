"""What rewritten expressions give, by values that are written down here, and how long they become."""

from __future__ import annotations

import pytest
from pyoxigraph import QuerySolutions, Store

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Extend
from headwater.algebra.pyoxigraph_expressions import FUNCTIONS, rewrite_for_pyoxigraph
from headwater.algebra.to_sparql import expression_to_sparql
from headwater.language.parser import parse
from headwater.terms.model import XSD

ERROR = None


def rewritten(written: str) -> str:
    node = plan_query(parse(f"PREFIX xsd: <{XSD}> SELECT ({written} AS ?c) {{}}")).root.children[0]
    assert isinstance(node, Extend)
    return expression_to_sparql(rewrite_for_pyoxigraph(node.expression))


def value_of(written: str) -> str | None:
    solutions = Store().query(f"SELECT ({rewritten(written)} AS ?c) {{}}", custom_functions=FUNCTIONS)
    assert isinstance(solutions, QuerySolutions)
    (solution,) = solutions
    return None if solution["c"] is None else str(solution["c"].value)


@pytest.mark.parametrize(
    ("left", "right", "is_equal"),
    [
        ("'2006-08-23'^^xsd:date", "'2006-08-23Z'^^xsd:date", ERROR),
        ("'2006-08-23'^^xsd:date", "'2006-08-23+00:00'^^xsd:date", ERROR),
        ("'2006-08-23'^^xsd:date", "'2006-08-23'^^xsd:date", "true"),
        ("'2006-08-23'^^xsd:date", "'2006-08-25Z'^^xsd:date", "false"),
        ("'2006-08-23Z'^^xsd:date", "'2006-08-23+00:00'^^xsd:date", "true"),
        ("'2006-08-23T00:00:00'^^xsd:dateTime", "'2006-08-23T13:00:00Z'^^xsd:dateTime", ERROR),
        ("'2006-08-23T00:00:00'^^xsd:dateTime", "'2006-08-23T15:00:00Z'^^xsd:dateTime", "false"),
        ("'2006-08-23T00:00:00'^^xsd:dateTime", "'2006-08-23T00:00:00Z'^^xsd:dateTimeStamp", ERROR),
        ("'12:00:00'^^xsd:time", "'12:00:00Z'^^xsd:time", ERROR),
        ("'2006'^^xsd:gYear", "'2006Z'^^xsd:gYear", ERROR),
        ("'2006'^^xsd:gYear", "'2008Z'^^xsd:gYear", "false"),
        ("'2006-08-23'^^xsd:date", "'2006-08-23T00:00:00Z'^^xsd:dateTime", "false"),
        ("'2006-08-23'^^xsd:date", "<x:a>", "false"),
    ],
)
def test_times_with_and_without_a_zone(left: str, right: str, is_equal: str | None) -> None:
    opposite = {"true": "false", "false": "true", None: None}[is_equal]
    for one, other in ((left, right), (right, left)):
        # IF holds a nested comparison, so it becomes the argument of a function.
        for form in (one, f"IF(1 = 1, {one}, 2)"):
            assert value_of(f"{form} = {other}") == is_equal
            assert value_of(f"{form} != {other}") == opposite
            assert value_of(f"{form} IN (1, {other})") == is_equal
            assert value_of(f"{form} NOT IN (1, {other})") == opposite
    assert value_of(f"{left} IN ({right}, {left}, 1 / 0)") == "true"
    assert value_of(f"IF(1 = 1, {left}, 2) IN (1 / 0, {right}, {left})") == "true"


def test_chains_grow_with_their_length() -> None:
    assert len(rewritten("/".join(["?a"] * 40))) < 5_000
    nested = "?a"
    for _ in range(15):
        nested = f"IF({nested} = ?b, ?c, ?d)"
    assert len(rewritten(nested)) < 5_000
    assert value_of("64 / 2 / 2 / 2 / 2") == "4"
