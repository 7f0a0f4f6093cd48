"""The generator of queries reaches every construct often enough: a construct that hardly ever comes is not tested."""

from __future__ import annotations

from collections import Counter
from random import Random

from headwater.algebra.nodes import ExistsPlan, LeftJoin, Node, Project, Slice
from headwater.algebra.plan import QueryKind
from headwater.algebra.scope import (
    all_variables,
    certain_variables,
    expressions_of,
    nodes_of,
    sub_expressions,
    visible_variables,
)
from headwater.kernel.compiling.existence import is_closed
from headwater.language.expressions import Expression, FunctionCall, Timestamp
from headwater.terms.model import Variable
from tests.kernel.generated_queries import a_case

CASES = 400
LEAST = {
    "timestamp()": 20,
    "timestamp(?v, <stream>)": 10,
    "NOW()": 40,
    "GRAPH ?g": 20,
    "WINDOW ?g": 5,
    "STREAM ?g": 20,
    "LIMIT in a sub-query": 20,
    "a join on what may be unbound": 20,
    "EXISTS": 60,
    "EXISTS that looks outside": 10,
    "EXISTS inside an expression": 10,
    "OPTIONAL with a condition": 10,
    "a path": 40,
    "AGGREGATE": 5,
    "DESCRIBE": 15,
    "CONSTRUCT": 15,
    "ASK": 15,
}
"""In how many of the cases each has to be at least."""


def constructs(text: str, root: Node, kind: QueryKind) -> set[str]:
    parts: list[Expression] = [p for n in nodes_of(root) for e in expressions_of(n) for p in sub_expressions(e)]
    exists = [part for part in parts if isinstance(part, ExistsPlan)]
    direct = [e for n in nodes_of(root) for e in expressions_of(n)]
    found = {
        "timestamp()": any(isinstance(part, Timestamp) and part.stream is None for part in parts),
        "timestamp(?v, <stream>)": any(isinstance(part, Timestamp) and part.stream is not None for part in parts),
        "NOW()": any(isinstance(part, FunctionCall) and part.name == "NOW" for part in parts),
        **{word: word in text for word in ("GRAPH ?g", "WINDOW ?g", "STREAM ?g", "AGGREGATE")},
        "LIMIT in a sub-query": any(isinstance(node, Slice) for node in list(nodes_of(root))[1:]),
        "a join on what may be unbound": any(_shares_unbound(node) for node in nodes_of(root)),
        "EXISTS": bool(exists),
        "EXISTS that looks outside": any(not is_closed(e.plan, _around(root, e)) for e in exists),
        "EXISTS inside an expression": any(isinstance(p, ExistsPlan) and p not in direct for p in parts),
        "OPTIONAL with a condition": any(isinstance(n, LeftJoin) and n.condition is not None for n in nodes_of(root)),
        "a path": any(path in text for path in (" ^:p", ":p|:q", ":p/:q", " !")),
    }
    return {kind.name, *(what for what, is_there in found.items() if is_there)}


def _shares_unbound(node: Node) -> bool:
    if len(node.children) != 2:
        return False
    left, right = node.children
    return bool(
        set(visible_variables(left))
        & set(visible_variables(right)) - (certain_variables(left) & certain_variables(right))
    )


def _around(root: Node, exists: ExistsPlan) -> frozenset[Variable]:
    """Roughly the variables that EXISTS may look at."""
    outside = frozenset(v for n in nodes_of(root) if isinstance(n, Project) for v in visible_variables(n.inner))
    return outside & all_variables(exists.plan)


def test_every_construct_comes_often_enough() -> None:
    seen: Counter[str] = Counter()
    for number in range(CASES):
        case = a_case(Random(number))
        plan, _ = case.plan()
        seen.update(constructs(case.text, plan.root, plan.kind))
    assert {what: seen[what] for what, least in LEAST.items() if seen[what] < least} == {}
