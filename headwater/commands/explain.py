"""`headwater explain`: how a query was understood, as text or as a drawing."""

from __future__ import annotations

from typing import Literal

from headwater.algebra.explain import explain as explain_plan
from headwater.algebra.plan import QueryPlan
from headwater.commands.queries import QueryFile
from headwater.language.stream_clauses import Dialect
from headwater.windows import settle


def explain(
    path: str,
    graph: Literal["operators", "denotational"] | None,
    output: Literal["text", "mermaid", "svg"],
    dialect: Dialect | None,
) -> None:
    """Prints the plan of a query file, or one of its two graphs."""
    plan = QueryFile.read(path).plan(dialect)
    settings = settle(plan)
    print(explain_plan(plan, graph=graph, format=output, settings=settings, evaluator=_evaluator(plan)).rstrip("\n"))


def _evaluator(plan: QueryPlan) -> str:
    """Who evaluates a plan and, where that is the reference, why."""
    from pyoxigraph import Store

    from headwater.kernel.choice import why_not_the_kernel

    reason = why_not_the_kernel(plan, settle(plan), Store())
    return "kernel (incremental)" if reason is None else f"reference, because of {reason}"
