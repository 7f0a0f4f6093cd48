"""Aggregates as functions of a multiset (SPARQL 1.1, section 18.5.1): no answer depends on an order of the values.

SPARQL folds SUM and AVG over the values one by one and leaves SAMPLE, GROUP_CONCAT and the choice between equal values
to the engine; then the answer depends on what came first. Here it is the same for any order, batch or shard:

- SUM and AVG are those of the exact sum, rounded once (see `numeric`); over doubles the sum is what `math.fsum` gives.
- MIN and MAX follow `value_order`; among equal values the term with the smallest text wins.
- SAMPLE is the term with the smallest text. GROUP_CONCAT joins the texts in their order.
- PARTIAL_SUM, which has no syntax, is the exact sum as a literal: SUM and AVG of the partial sums of the parts of
  a group are SUM and AVG of the group (CS10).

An error among the values (None: an unbound variable, an expression without a value) makes the result an error, except
that COUNT and SAMPLE pass over it.

>>> from headwater.values.numeric import integer_literal
>>> from collections import Counter
>>> values = Counter([integer_literal(1), integer_literal(2), integer_literal(2)])
>>> aggregate("AVG", values).value
'1.666666666666666666'
>>> aggregate("SUM", values, distinct=True).value
'3'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from headwater.terms.model import Literal, NamedNode, Term
from headwater.terms.own_functions import own_aggregate
from headwater.values.numeric import ExactSum, integer_literal
from headwater.values.own_function_calls import call_aggregate
from headwater.values.query_guard import current_guard
from headwater.values.term_order import order_key, text_key

Multiset: TypeAlias = Mapping[Term | None, int]
"""How often each value occurs; None stands for errors. No count is below one."""


def aggregate(function: str, values: Multiset, *, distinct: bool = False, separator: str | None = None) -> Term | None:
    """The value of an aggregate; None for an error."""
    if distinct:
        values = dict.fromkeys(values, 1)
    if function == "GROUP_CONCAT":
        return group_concat(values, " " if separator is None else separator)
    own = own_aggregate(function)
    return _FUNCTIONS[function](values) if own is None else call_aggregate(own, values)


def count(values: Multiset) -> Literal:
    return integer_literal(sum(times for term, times in values.items() if term is not None))


def total(values: Multiset) -> Literal | None:
    """SUM."""
    exact = _exact_sum(values)
    return None if exact is None else exact.sum()


def average(values: Multiset) -> Literal | None:
    """AVG."""
    exact = _exact_sum(values)
    return None if exact is None else exact.average()


def partial_sum(values: Multiset) -> Literal | None:
    """The exact sum as a literal: SUM and AVG of such literals are those of all that was added up in them."""
    exact = _exact_sum(values)
    return None if exact is None else exact.to_literal()


def _exact_sum(values: Multiset) -> ExactSum | None:
    exact = ExactSum()
    for term, times in values.items():
        if term is None or not exact.add_value(term, times):
            return None
    return exact


def minimum(values: Multiset) -> Term | None:
    """MIN: the least term in the order of ORDER BY; None where there is no value, or an error among them."""
    return None if None in values else least(term for term in values if term is not None)


def maximum(values: Multiset) -> Term | None:
    """MAX: the greatest term in the order of ORDER BY; None where there is no value, or an error among them."""
    return None if None in values else greatest(term for term in values if term is not None)


def least(terms: Iterable[Term]) -> Term | None:
    return min(terms, key=lambda term: (order_key(term), text_key(term)), default=None)


def greatest(terms: Iterable[Term]) -> Term | None:
    keyed = [(order_key(term), term) for term in terms]
    highest = max((key for key, _ in keyed), default=None)
    return min((term for key, term in keyed if key == highest), key=text_key, default=None)


def sample(values: Multiset) -> Term | None:
    return min((term for term in values if term is not None), key=text_key, default=None)


def group_concat(values: Multiset, separator: str) -> Literal | None:
    """The texts joined; terms without text (blank nodes, triples) are errors, as for STR."""
    texts: list[str] = []
    length = -len(separator)
    for term, times in values.items():
        if not isinstance(term, Literal | NamedNode):
            return None
        length += times * (len(term.value) + len(separator))
        current_guard().check_literal(length)
        texts.extend([term.value] * times)
    return Literal(separator.join(sorted(texts)))


_FUNCTIONS: dict[str, Callable[[Multiset], Term | None]] = {
    "COUNT": count,
    "SUM": total,
    "AVG": average,
    "PARTIAL_SUM": partial_sum,
    "MIN": minimum,
    "MAX": maximum,
    "SAMPLE": sample,
}
