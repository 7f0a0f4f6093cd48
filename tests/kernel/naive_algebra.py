"""The slow twin of the kernel's operators: SPARQL's definitions on bags, evaluated from scratch.

A bag is a `Counter` of rows; a mapping is a dict of the variables that are bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from headwater.kernel.columns.delta import UNBOUND
from tests.kernel.manual_input import Bag

Variables = tuple[str, ...]
Mapping = dict[str, int]


@dataclass(frozen=True)
class Table:
    """A bag of rows and the names of their columns."""

    variables: Variables
    bag: Bag

    def mappings(self) -> list[tuple[Mapping, int]]:
        return [
            ({v: x for v, x in zip(self.variables, row, strict=True) if x != UNBOUND}, n) for row, n in self.bag.items()
        ]


def table(variables: Variables, mappings: list[tuple[Mapping, int]]) -> Table:
    bag: Bag = Counter()
    for mapping, n in mappings:
        bag[tuple(mapping.get(v, UNBOUND) for v in variables)] += n
    return Table(variables, +bag)


def compatible(one: Mapping, other: Mapping) -> bool:
    return all(other[v] == x for v, x in one.items() if v in other)


def joined_variables(left: Table, right: Table) -> Variables:
    return (*left.variables, *(v for v in right.variables if v not in left.variables))


def join(left: Table, right: Table) -> Table:
    return table(
        joined_variables(left, right),
        [(a | b, n * m) for a, n in left.mappings() for b, m in right.mappings() if compatible(a, b)],
    )


def left_join(left: Table, right: Table, condition: Callable[[Mapping], bool]) -> Table:
    result = []
    for a, n in left.mappings():
        partners = [(a | b, n * m) for b, m in right.mappings() if compatible(a, b) and condition(a | b)]
        result += partners or [(a, n)]
    return table(joined_variables(left, right), result)


def exists(left: Table, right: Table, condition: Callable[[Mapping], bool], *, negated: bool) -> Table:
    def has_partner(a: Mapping) -> bool:
        return any(compatible(a, b) and condition(a | b) for b, _ in right.mappings())

    return table(left.variables, [(a, n) for a, n in left.mappings() if has_partner(a) != negated])


def minus(left: Table, right: Table) -> Table:
    def is_hidden(a: Mapping) -> bool:
        return any(compatible(a, b) and a.keys() & b.keys() for b, _ in right.mappings())

    return table(left.variables, [(a, n) for a, n in left.mappings() if not is_hidden(a)])


def distinct(inner: Table) -> Table:
    return Table(inner.variables, Counter(set(inner.bag)))


def union(*branches: Table) -> Table:
    variables = tuple(dict.fromkeys(v for branch in branches for v in branch.variables))
    return table(variables, [pair for branch in branches for pair in branch.mappings()])


def project(inner: Table, variables: Variables) -> Table:
    return table(variables, inner.mappings())


def select(inner: Table, condition: Callable[[Mapping], bool]) -> Table:
    return table(inner.variables, [(a, n) for a, n in inner.mappings() if condition(a)])


def extend(inner: Table, variable: str, function: Callable[[Mapping], int]) -> Table:
    return table((*inner.variables, variable), [(a | {variable: function(a)}, n) for a, n in inner.mappings()])


def smallest(inner: Table, n: int) -> Table:
    """The first n rows in the order of their ids."""
    return Table(inner.variables, Counter(sorted(inner.bag.elements())[:n]))
