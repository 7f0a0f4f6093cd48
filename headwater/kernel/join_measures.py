"""What the operators of a plan are doing: which ways mappings took, which indexes are kept, how many rows there are.

For each multiway join the probing order is a matter of the moment (OA6, CQ7); these are the choices it made:

    join of (?person ?loc) (?loc ?name)     1st step: 12 to input 1, 88 to input 0     index of input 0 on ?loc: dropped
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headwater.kernel.columns.relation import IndexUse
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator
from headwater.kernel.operators.operator import Operator


@dataclass(frozen=True, slots=True)
class IndexMeasures:
    """An index of one input: on which variables, how often it was inserted into and asked since the last review, how
    often it was dropped, whether it is there now, its structure (`hash`, or `ordered` by its last expression), and how
    often rows were scanned since it was dropped."""

    variables: tuple[str, ...]
    inserts: int
    probes: int
    drops: int
    is_built: bool
    structure: str
    scans: int


@dataclass(frozen=True, slots=True)
class InputMeasures:
    """One input of a join: its variables, how many rows it holds, how many mappings went to it as the first step, the
    second, …, and its indexes."""

    variables: tuple[str, ...]
    rows: int
    chosen: tuple[int, ...]
    indexes: tuple[IndexMeasures, ...]


@dataclass(frozen=True, slots=True)
class JoinMeasures:
    """One multiway join: its inputs, the results that it holds, whether its order is fixed; and the comparisons between
    its inputs, whether ordered indexes serve them, and how often that changed."""

    inputs: tuple[InputMeasures, ...]
    results: int
    has_fixed_order: bool
    comparisons: tuple[str, ...]
    is_ordered: bool
    switches: int


def operators(root: Operator) -> Iterator[Operator]:
    """An operator and all below it, each once."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        operator = waiting.pop()
        if id(operator) not in seen:
            seen.add(id(operator))
            yield operator
            waiting.extend(operator.inputs)


def joins_of(root: Operator) -> tuple[JoinMeasures, ...]:
    """The joins of a plan at work, those nearest to the result first."""
    return tuple(_join(operator) for operator in operators(root) if isinstance(operator, MultiwayJoinOperator))


def state_bytes(root: Operator) -> int:
    """The memory of the state of all operators."""
    return sum(operator.nbytes for operator in operators(root))


def fix_orders(root: Operator) -> None:
    """Have all joins probe their inputs in the order of the plan, whatever the stream is like: for comparison."""
    for operator in operators(root):
        if isinstance(operator, MultiwayJoinOperator):
            operator.fix_order(tuple(range(len(operator.inputs))))


def _join(join: MultiwayJoinOperator) -> JoinMeasures:
    uses = join.index_uses()
    steps = range(1, len(join.inputs))
    inputs = tuple(
        InputMeasures(
            one.variables,
            join.sizes[number],
            tuple(join.steps[step, number] for step in steps),
            tuple(_index(join.ranges.column_names(number, one.variables), use) for use in uses[number]),
        )
        for number, one in enumerate(join.inputs)
    )
    choice = join.range_choice
    comparisons = tuple(map(str, join.ranges.conditions))
    return JoinMeasures(
        inputs, join.result_count, join.order is not None, comparisons, choice.is_ordered, choice.switches
    )


def _index(variables: tuple[str, ...], use: IndexUse) -> IndexMeasures:
    named = tuple(variables[column] for column in use.key)
    structure = "ordered" if use.is_ordered else "hash"
    return IndexMeasures(named, use.inserts, use.probes, use.drops, use.is_built, structure, use.scans)
