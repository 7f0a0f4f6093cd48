"""`headwater explain --rules`: each step with its reason."""

from __future__ import annotations

from headwater.algebra.build import plan_query
from headwater.explain.rewrite_steps import diff_lines, explain_steps
from headwater.language.parser import parse
from headwater.optimizer.optimise import optimise
from tests.commands.running import EXAMPLES, headwater
from tests.explain.explain_queries import PAPER


def test_the_example_of_the_paper_becomes_its_figure_6() -> None:
    plan = plan_query(parse(PAPER))
    text = explain_steps(plan, optimise(plan))
    assert [line.split(": ")[0] for line in text.splitlines() if line[:1].isdigit()] == [
        "1. split filters",
        "2. equalities into constants",
        "3. push filters",
        "4. aggregates to groups",
        "5. drop unused variables",
    ]
    assert (
        "+               graph pattern: ?tx x:with ?amount" in text.replace("+ ", "+ ", 1)
        or "?tx x:with ?amount" in text
    )
    assert "SUM(?amount) by ?broker\n  not distributable: " in text


def test_lines_that_only_moved_are_not_marked() -> None:
    before = ["a", "  b  → ?x", "    c"]
    after = ["a", "  new", "    b  → ?x ?y", "      c"]
    assert list(diff_lines(before, after)) == ["  a", "+   new", "      b  → ?x ?y", "        c"]


def test_the_command() -> None:
    result = headwater("explain", EXAMPLES / "busy-districts.rq", "--rules")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("Plan as written\n  ")


def test_a_query_with_nothing_to_do_says_so() -> None:
    result = headwater("explain", "-", "--rules", stdin="SELECT * { ?s ?p ?o }")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "No rule has anything to do."


def test_a_rule_that_is_left_out_is_shown_with_the_reason() -> None:
    stream = "STREAM <urn:s> [RANGE 1m] { ?x <p:at> ?room }"
    plan = plan_query(parse(f"SELECT ?floor (COUNT(*) AS ?n) {{ {stream} ?room <p:on> ?floor }} GROUP BY ?floor"))
    result = optimise(plan)
    assert result.plan == plan
    text = explain_steps(plan, result)
    assert "Not applied, because a partial count that changes is " in text
    assert "\n  push aggregates: " in text


def test_a_wrong_query_ends_with_2() -> None:
    assert headwater("explain", "-", "--rules", stdin="SELECT * { ?s ?p").exit_code == 2


def test_what_is_evaluated_once_is_told() -> None:
    text = "SELECT * { { ?x <p:p> ?v OPTIONAL { ?x <p:q> ?w } } UNION { ?y <p:p> ?v OPTIONAL { ?y <p:q> ?w } } }"
    plan = plan_query(parse(text))
    assert "Evaluated once for 2 places (S1)\n  optional: on ?x" in explain_steps(plan, optimise(plan))
