"""Calls of functions that do not exist. Unlike the other rules this one refuses the query: a run of it could only fail.

Functions inside SERVICE are the endpoint's.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from headwater.algebra.nodes import ExistsPlan, Node, Service
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import expressions_of, sub_expressions
from headwater.language.builtins import ARGUMENT_COUNTS, CAST_FUNCTIONS
from headwater.language.errors import QueryError
from headwater.language.expressions import Aggregate, FunctionCall
from headwater.terms.model import XSD, NamedNode
from headwater.terms.own_functions import own_scalar


def refuse_unknown_functions(plan: QueryPlan) -> None:
    """Raise a `QueryError` at the first call of a function by an IRI that is none of the known ones."""
    for call in _calls_in(plan.root):
        if isinstance(call.name, NamedNode) and not _is_known(call.name.value):
            raise QueryError(_message(call.name.value), plan.text, call.at)


def _is_known(name: str) -> bool:
    return name in CAST_FUNCTIONS or own_scalar(name) is not None


def _message(name: str) -> str:
    known = (
        "the built-in functions of SPARQL 1.1, called without a prefix, the casts of xsd:, and what engine.function(…) "
        "has named before"
    )
    local = name.rsplit("#", 1)[-1].rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    if local.upper() in ARGUMENT_COUNTS:
        return f"there is no function <{name}>: write {local.upper()}(…), which is built in"
    casts = {cast.removeprefix(XSD): cast for cast in CAST_FUNCTIONS}
    near = get_close_matches(local, casts, 1, 0.6) if name.startswith(XSD) else []
    hint = f"did you mean xsd:{near[0]}? " if near else ""
    return f"there is no function <{name}>: {hint}Known are {known}"


def _calls_in(plan: Node) -> Iterator[FunctionCall]:
    waiting: list[Node] = [plan]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Service):
            continue
        for expression in expressions_of(node):
            for part in sub_expressions(expression):
                if isinstance(part, FunctionCall):
                    yield part
                elif isinstance(part, ExistsPlan):
                    waiting.append(part.plan)
                elif isinstance(part, Aggregate) and part.argument is not None:
                    yield from (one for one in sub_expressions(part.argument) if isinstance(one, FunctionCall))
        waiting.extend(node.children)
