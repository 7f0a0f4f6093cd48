"""Wide and deep queries: long chains work, and what is too deep is a `QueryError` that says so."""

from __future__ import annotations

from typing import Literal

import pytest

import headwater as hw
from headwater.algebra.build import plan_query
from headwater.algebra.plan_depth import DEEPEST_PLAN, depth_of
from headwater.algebra.to_sparql import to_sparql
from headwater.language.errors import QueryError
from headwater.language.parser import parse
from headwater.optimizer.optimise import optimise
from headwater.terms import model

WINDOW = "FROM NAMED WINDOW <w:w> ON <s:s> [RANGE PT10S STEP PT10S]"


def chain(kind: str, links: int) -> str:
    numbers = range(links)
    match kind:
        case "UNION":
            return " UNION ".join(f"{{ ?s <p:{i}> ?o }}" for i in numbers)
        case "OPTIONAL":
            return "?s <p:0> ?o " + " ".join(f"OPTIONAL {{ ?s <p:{i}> ?o{i} }}" for i in numbers)
        case "MINUS":
            return "?s <p:0> ?o " + " ".join(f"MINUS {{ ?s <p:{i + 1}> ?o }}" for i in numbers)
        case "BIND":
            return "?s <p:0> ?o " + " ".join(f"BIND(?o + {i} AS ?x{i})" for i in numbers)
        case "FILTER":
            return "?s <p:0> ?o " + " ".join(f"FILTER(?o != {i + 10})" for i in numbers)
        case "steps":
            return "?s " + "/".join(f"<p:{i}>" for i in numbers) + " ?o"
        case "alternatives":
            return "?s " + "|".join(f"<p:{i}>" for i in numbers) + " ?o"
        case "repeated":
            return "?s (" + "/".join(f"<p:{i}>" for i in numbers) + ")* ?o"
        case "groups":
            return " ".join(f"{{ ?s <p:{i}> ?o }}" for i in numbers)
        case "conditions":
            return "?s <p:0> ?o FILTER(" + " && ".join(f"?o != {i + 10}" for i in numbers) + ")"
    return "?s <p:0> ?o FILTER(?o " + "+ 1 " * links + "> 0)"


def query(body: str) -> str:
    return f"SELECT * {WINDOW} WHERE {{ WINDOW <w:w> {{ {body} }} }}"


def answers(body: str, evaluator: Literal["auto", "reference"] = "auto") -> list[int]:
    engine = hw.Engine(in_process=True, evaluator=evaluator)
    triple = model.Triple(model.NamedNode("s:1"), model.NamedNode("p:0"), model.Literal(5))
    engine.stream("s:s", hw.memory([(1_000_000, [triple]), (25_000_000, [])]))
    engine.register(query(body), name="q")
    found: list[int] = []
    engine.run(on_answer=lambda answer: found.append(len(answer.rows)))
    return found


@pytest.mark.parametrize(
    ("kind", "rows"), [("UNION", 1), ("alternatives", 1), ("conditions", 1), ("FILTER", 1), ("groups", 0)]
)
def test_long_chains_work(kind: str, rows: int) -> None:
    assert answers(chain(kind, 300))[0] == rows


def test_long_chains_work_by_the_definition() -> None:
    assert answers(chain("UNION", 300), "reference")[0] == 1


@pytest.mark.parametrize("kind", ["UNION", "steps", "alternatives", "repeated", "groups", "conditions", "FILTER"])
def test_chains_of_ten_thousand_are_planned(kind: str) -> None:
    plan = plan_query(parse(query(chain(kind, 10_000))))
    assert depth_of(plan.root) < 60
    assert to_sparql(plan.root)


@pytest.mark.parametrize("links", [300, 2_000])
@pytest.mark.parametrize("kind", ["OPTIONAL", "MINUS", "BIND", "sums"])
def test_a_plan_that_is_too_deep_says_so(kind: str, links: int) -> None:
    with pytest.raises(QueryError, match=rf"more than {DEEPEST_PLAN} operators within each other|nested too deeply"):
        plan_query(parse(query(chain(kind, links))))


@pytest.mark.parametrize("kind", ["MINUS", "BIND", "sums"])
def test_a_plan_at_the_limit_runs(kind: str) -> None:
    assert answers(chain(kind, DEEPEST_PLAN - 10))[0] == 1


def test_rules_do_not_make_a_plan_too_deep() -> None:
    """Each condition would become a filter of its own."""
    plan = plan_query(parse(query(chain("FILTER", 1_000))))
    assert depth_of(optimise(plan).plan.root) <= DEEPEST_PLAN


@pytest.mark.slow
def test_ten_thousand_branches_are_answered() -> None:
    assert answers(chain("UNION", 10_000))[0] == 1
