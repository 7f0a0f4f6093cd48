"""Static parts that are products, taken apart where streams lead to each of their factors.

    STREAM … {?camera :sees ?car}  STREAM … {?gate :registers ?car}
    { ?gate :in ?from . ?camera :in ?to  FILTER(?from != ?to) }

The filter stands at the static patterns, which share no variable: their join is each gate with each camera. But the
streams say which gate and which camera belong together. So the patterns become two views, and the filter comes after
the join with the streams. Where no stream leads to a factor, the product is the cheaper of two evils: it is made once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from headwater.algebra.nodes import ExistsPlan, Extend, Filter, Node
from headwater.algebra.scope import certain_variables, expression_variables, sub_expressions, visible_variables
from headwater.kernel.compiling.static_parts import PlacedPart, group_by_shared_variables
from headwater.terms.model import NamedNode, Variable

Lifted = tuple[Filter | Extend, NamedNode]
"""A FILTER or BIND that is applied after a join, and the graph that is active there."""


def take_products_apart(
    parts: Sequence[PlacedPart],
    is_static: Callable[[Node, NamedNode], bool],
    split: Callable[[Node, NamedNode], Iterable[PlacedPart]],
) -> tuple[list[PlacedPart], list[Lifted]]:
    """The parts of a join, products among the static ones taken apart, and what is to be applied after the join.

    `split` gives the parts of a join. What was lifted is given in the order in which it is applied.
    """
    result: list[PlacedPart] = []
    lifted: list[Lifted] = []
    dynamic = {variable for part in parts if not is_static(*part) for variable in visible_variables(part[0])}
    for place, (node, graph) in enumerate(parts):
        if isinstance(node, Filter | Extend) and is_static(node, graph):
            others = {v for other, (one, _) in enumerate(parts) if other != place for v in visible_variables(one)}
            above, below = _lift(node, others)
            factors = list(split(below, graph))
            groups = group_by_shared_variables(factors)
            if above and len(groups) > 1 and all(_variables(group) & dynamic for group in groups):
                result.extend(factors)
                lifted.extend((one, graph) for one in reversed(above))
                continue
        result.append((node, graph))
    return result, lifted


def _lift(node: Node, others: set[Variable]) -> tuple[list[Filter | Extend], Node]:
    """The FILTERs and BINDs on top of a part that mean the same after a join, and what is below them."""
    above: list[Filter | Extend] = []
    while isinstance(node, Filter | Extend):
        expression = node.condition if isinstance(node, Filter) else node.expression
        reads_pattern = any(isinstance(part, ExistsPlan) for part in sub_expressions(expression))
        # What is bound here, or by no other part, has the same value after a join.
        certain = certain_variables(node.inner)
        is_unchanged = all(one in certain or one not in others for one in expression_variables(expression))
        if reads_pattern or not is_unchanged or (isinstance(node, Extend) and node.variable in others):
            break
        above.append(node)
        node = node.inner
    return above, node


def _variables(parts: Iterable[PlacedPart]) -> set[Variable]:
    return {variable for node, _ in parts for variable in visible_variables(node)}
