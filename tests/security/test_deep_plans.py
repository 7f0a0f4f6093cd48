"""Wide and deep queries: long chains work, and what is too deep is a `QueryError` that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

import pytest

import headwater as hw
from headwater.algebra.build import plan_query
from headwater.algebra.plan_depth import DEEPEST_PLAN, depth_of
from headwater.algebra.to_sparql import to_sparql
from headwater.language.errors import QueryError
from headwater.language.parser import parse
from headwater.optimizer.optimise import optimise
from headwater.terms import model

Evaluator: TypeAlias = Literal["auto", "reference"]
TRIPLE = model.Triple(model.NamedNode("s:1"), model.NamedNode("p:0"), model.Literal(5))
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
        case "patterns":
            return "?s <p:0> ?o " + " ".join(f". ?s ?p{i} ?o" for i in numbers)
        case "list":
            return f"?s <p:0> ?o FILTER(?o IN ({', '.join(map(str, range(5, links + 5)))}))"
        case "conditions":
            return "?s <p:0> ?o FILTER(" + " && ".join(f"?o != {i + 10}" for i in numbers) + ")"
    return "?s <p:0> ?o FILTER(?o " + "+ 1 " * links + "> 0)"


def query(body: str) -> str:
    return f"SELECT * {WINDOW} WHERE {{ WINDOW <w:w> {{ {body} }} }}"


def answers(body: str, evaluator: Evaluator = "auto", triples: Sequence[model.Triple] = (TRIPLE,)) -> list[hw.Answer]:
    engine = hw.Engine(in_process=True, evaluator=evaluator)
    engine.stream("s:s", hw.memory([(1_000_000, list(triples)), (25_000_000, [])]))
    engine.register(query(body), name="q")
    found: list[hw.Answer] = []
    engine.run(on_answer=found.append)
    return found


def count_rows(body: str, evaluator: Evaluator = "auto") -> int:
    return len(answers(body, evaluator)[0].rows)


@pytest.mark.parametrize(
    ("kind", "rows"), [("UNION", 1), ("alternatives", 1), ("conditions", 1), ("FILTER", 1), ("groups", 0)]
)
def test_long_chains_work(kind: str, rows: int) -> None:
    assert count_rows(chain(kind, 300)) == rows


@pytest.mark.parametrize(("kind", "links"), [("patterns", 700), ("list", 2_000)])
def test_wide_joins_and_lists_work(kind: str, links: int) -> None:
    """More inputs than one multiway join takes, and more tests within each other than Python follows."""
    assert count_rows(chain(kind, links)) == 1


def test_a_wide_join_gives_what_the_definition_gives() -> None:
    """A chain with a value at each link, and a pattern that shares no variable with the others."""
    body = " ".join(f"?x{i} <p:n> ?x{i + 1} . ?x{i} <p:v> ?v{i} ." for i in range(20)) + " <s:3> <p:v> ?other"
    node = [model.NamedNode(f"s:{i}") for i in range(22)]
    triples = [model.Triple(one, model.NamedNode("p:n"), other) for one, other in pairwise(node)]
    triples += [model.Triple(one, model.NamedNode("p:v"), model.Literal(0)) for one in node]
    triples.append(model.Triple(node[3], model.NamedNode("p:v"), model.Literal(1)))
    kernel, reference = (Counter(answers(body, one, triples)[0].rows) for one in get_args(Evaluator))
    assert len(kernel) == 8 and kernel == reference


def test_long_chains_work_by_the_definition() -> None:
    assert count_rows(chain("UNION", 300), "reference") == 1


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
    assert count_rows(chain(kind, DEEPEST_PLAN - 10)) == 1


def test_rules_do_not_make_a_plan_too_deep() -> None:
    """Each condition would become a filter of its own."""
    plan = plan_query(parse(query(chain("FILTER", 1_000))))
    assert depth_of(optimise(plan).plan.root) <= DEEPEST_PLAN


@pytest.mark.slow
def test_ten_thousand_branches_are_answered() -> None:
    assert count_rows(chain("UNION", 10_000)) == 1
