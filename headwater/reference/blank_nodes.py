"""BNODE(label): one node per label and solution (SPARQL 1.1, section 17.4.2.9).

pyoxigraph gives one node per label, whatever the solution. So each solution gets a word of its own, and the node is
made from both by a function of ours.

    BIND(BNODE(?l) AS ?b)    →    BIND(STRUUID() AS ?w) BIND(<urn:headwater:bnode>(?l, ?w) AS ?b)
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from headwater.algebra.nodes import Extend, Node
from headwater.algebra.scope import map_expression, map_plan, sub_expressions
from headwater.algebra.window_graphs import INTERNAL
from headwater.language.expressions import Expression, FunctionCall, VariableReference
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Term, Variable

_NODE = NamedNode(INTERNAL + "bnode")


def _labelled_node(label: Term, solution: Term) -> Term | None:
    if not isinstance(label, Literal) or label.datatype.value != XSD + "string" or not isinstance(solution, Literal):
        return None
    return BlankNode("b" + blake2b(f"{solution.value} {label.value}".encode(), digest_size=12).hexdigest())


FUNCTIONS: dict[NamedNode, Callable[..., Term | None]] = {_NODE: _labelled_node}
"""What a store has to be given to evaluate such queries."""


def make_nodes_per_solution(plan: Node, new_variable: Callable[[], Variable]) -> Node:
    """The plan with BNODE(label) replaced in each run of bindings."""

    def change(node: Node) -> Node:
        if not isinstance(node, Extend) or not _makes_labelled_nodes(node.expression):
            return node
        return _with_solution_word(node, new_variable())

    return map_plan(plan, change)


def _makes_labelled_nodes(expression: Expression) -> bool:
    parts = sub_expressions(expression)
    return any(isinstance(part, FunctionCall) and part.name == "BNODE" and part.arguments for part in parts)


def _with_solution_word(node: Extend, word: Variable) -> Node:
    """The binding with a word for its solution: that of the bindings below it, if they have one."""

    def change(part: Expression) -> Expression | None:
        if isinstance(part, FunctionCall) and part.name == "BNODE" and part.arguments:
            return FunctionCall(_NODE, (*part.arguments, VariableReference(known or word)))
        return None

    known: Variable | None = None
    below: Node = node.inner
    while isinstance(below, Extend) and known is None:
        if isinstance(below.expression, FunctionCall) and below.expression.name == "STRUUID":
            known = below.variable
        below = below.inner
    inner = node.inner if known else Extend(node.inner, word, FunctionCall("STRUUID", ()))
    return Extend(inner, node.variable, map_expression(node.expression, change))
