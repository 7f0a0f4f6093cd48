"""The order of terms as texts, for ORDER BY in queries that pyoxigraph evaluates.

pyoxigraph compares literals whose values SPARQL cannot compare by their texts. That is no order: 9 < 10 by value, and
"10" < "1x" < "9" by text, so the result depends on which rows it happens to compare. Here a term becomes a text, and
texts are in the order of `headwater.values.term_order.order_key`, whatever else is sorted:

    ORDER BY ?v    →    ORDER BY <urn:headwater:order>(?v)
"""

from __future__ import annotations

import math
from fractions import Fraction

from headwater.language.expressions import Expression, FunctionCall
from headwater.terms.model import Literal, NamedNode, Term
from headwater.terms.stored_forms import restore_term
from headwater.values.term_order import OrderKey, order_key

ORDER = NamedNode("urn:headwater:order")

_END = "\x00"
_ESCAPE = "\x01"
_LONGEST = 999_999
_COMPLEMENT = str.maketrans("0123456789", "9876543210")


def in_total_order(key: Expression) -> Expression:
    """The expression by which pyoxigraph sorts as `order_key` does."""
    return FunctionCall(ORDER, (key,))


def write_order(term: Term) -> Literal:
    """The function behind `ORDER`."""
    return Literal(order_text(restore_term(term)))


def order_text(term: Term) -> str:
    """A text that sorts terms by code points as `order_key` sorts them; equal where their keys are equal."""
    return _key_text(order_key(term))


def _key_text(key: OrderKey) -> str:
    return "".join(map(_part_text, key)) + _END


def _part_text(part: object) -> str:
    match part:
        case str():
            return _string_text(part)
        case tuple():
            return _key_text(part)
        case float() if math.isinf(part):
            return "2" if part > 0 else " "
        case int() | float() | Fraction():
            return _number_text(Fraction(part))
    raise TypeError(f"no order of {part!r}")


def _string_text(text: str) -> str:
    """The text with an end that is below every character, so that a prefix comes first."""
    return text.replace(_ESCAPE, _ESCAPE + _ESCAPE).replace(_END, _ESCAPE + " ") + _END


def _number_text(number: Fraction) -> str:
    """The sign, the number of digits, the digits of the whole part, and those behind the point.

    The whole part is rounded down, so what is behind the point is positive also for numbers below zero.
    """
    whole = math.floor(number)
    digits = str(abs(whole))
    if whole < 0:
        head = f"0{_LONGEST - len(digits):06d}{digits.translate(_COMPLEMENT)}"
    else:
        head = f"1{len(digits):06d}{digits}"
    return f"{head}{_digits_behind_point(number - whole)}{_END}"


def _digits_behind_point(rest: Fraction) -> str:
    """All digits of a fraction of a power of ten; every number and duration of RDF is one."""
    length = max(_exponent(rest.denominator, 2), _exponent(rest.denominator, 5))
    return str(rest.numerator * 10**length // rest.denominator).zfill(length) if length else ""


def _exponent(number: int, prime: int) -> int:
    """How often a prime divides a number."""
    count = 0
    while number % prime == 0:
        number //= prime
        count += 1
    return count
