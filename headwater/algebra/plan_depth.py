"""The depth of plans, and its limit.

Planning, optimisation, both evaluators and explain walk a plan by recursion, some of them with four calls for each
level. Python ends a recursion after a thousand calls. So a plan has a limit, which is checked where plans are made
(`build.plan_query`), and where they are rewritten (`optimizer.optimise`).

Chains that can be grouped at will do not count: they are balanced (`combine_chain`). What is left are OPTIONALs,
MINUSes and BINDs one after the other in one group, sums of many terms, and groups within groups.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from headwater.algebra.nodes import Node
from headwater.language.errors import QueryError
from headwater.language.expressions import Expression
from headwater.language.patterns import Path
from headwater.terms.checking.nesting import TooDeep
from headwater.terms.checking.query_texts import check_generated_query

DEEPEST_PLAN = 200
"""Operators within operators; the parts of expressions and of paths count as well."""


def depth_of(plan: Node) -> int:
    """How many operators, parts of expressions and parts of paths are within each other at most."""
    deepest = 0
    open_parts: list[tuple[object, int]] = [(plan, 1)]
    while open_parts:
        part, depth = open_parts.pop()
        if isinstance(part, tuple):
            open_parts.extend((one, depth) for one in part)
        elif isinstance(part, Node | Expression | Path):
            deepest = max(deepest, depth)
            if is_dataclass(part):
                open_parts.extend((getattr(part, field.name), depth + 1) for field in fields(part))
    return deepest


def check_depth(plan: Node, text: str) -> None:
    """Raise a `QueryError` for a plan that is too deep; `text` is that of its query."""
    if depth_of(plan) > DEEPEST_PLAN:
        raise too_deep_query(text)


def too_deep_query(text: str) -> QueryError:
    """The error for a query that is too deep to be planned."""
    return QueryError(
        f"the plan of this query has more than {DEEPEST_PLAN} operators within each other: put fewer OPTIONALs, "
        "MINUSes, BINDs or operands into one group, or make several queries of it",
        text,
        0,
    )


def check_text_of_plan(text: str) -> str:
    """The SPARQL text that was made from a plan; a `QueryError` if pyoxigraph could not evaluate it."""
    try:
        check_generated_query(text)
    except TooDeep:
        raise too_deep_query(text) from None
    return text
