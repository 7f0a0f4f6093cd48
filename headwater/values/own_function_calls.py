"""Calls of users' functions: terms become values of Python, and what comes back becomes a term.

What a function raises is an error of the expression, as any other: the variable stays unbound. The log has the first of
each function, with the arguments.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from headwater.terms.model import XSD, Term
from headwater.terms.own_functions import OwnFunction, own_functions
from headwater.terms.stored_forms import restore_term
from headwater.terms.timestamps import datetime_to_time, format_time, parse_time, time_to_datetime
from headwater.values.term_order import text_key

logger = logging.getLogger(__name__)

_INTEGERS = frozenset(XSD + name for name in ("integer", "int", "long", "short", "byte", "nonNegativeInteger"))
_REALS = frozenset(XSD + name for name in ("double", "float"))
_told: set[tuple[str, str]] = set()


def scalar_functions() -> dict[NamedNode, Callable[..., Term | None]]:
    """The users' functions as pyoxigraph takes them."""
    return {NamedNode(iri): _caller(one) for iri, one in own_functions().items() if not one.is_aggregate}


def _caller(function: OwnFunction) -> Callable[..., Term | None]:
    def call(*arguments: Term) -> Term | None:
        return _call(function, [_argument(function, one) for one in arguments])

    return call


def call_aggregate(function: OwnFunction, values: Mapping[Term | None, int]) -> Term | None:
    """The value of a user's aggregate of a multiset, which it gets as a list that does not depend on any order.

    An error among the values makes the result an error, as it does for SUM.
    """
    if None in values:
        return None
    ordered = sorted((term for term in values if term is not None), key=text_key)
    return _call(function, [[_argument(function, term) for term in ordered for _ in range(values[term])]])


def _argument(function: OwnFunction, term: Term) -> Any:
    term = restore_term(term)
    return term if function.takes_terms else to_python(term)


def _call(function: OwnFunction, arguments: list[Any]) -> Term | None:
    try:
        return to_term(function.call(*arguments))
    except Exception as error:
        if (function.iri, type(error).__name__) not in _told:
            _told.add((function.iri, type(error).__name__))
            shown = ", ".join(map(repr, arguments))
            shown = shown if len(shown) <= 200 else shown[:200] + "…"
            reason = f"{type(error).__name__}: {error}"
            logger.warning("<%s>(%s) has no value (%s); further ones are not reported", function.iri, shown, reason)
        return None


def to_python(term: Term) -> Any:
    """A number, a boolean, a datetime or a text; the text of an IRI, and terms of other kinds as they are."""
    if isinstance(term, NamedNode):
        return term.value
    if not isinstance(term, Literal):
        return term
    datatype = term.datatype.value
    try:
        if datatype in _INTEGERS:
            return int(term.value)
        if datatype in _REALS:
            return float(term.value)
        if datatype == XSD + "decimal":
            return Decimal(term.value)
        if datatype == XSD + "dateTime":
            return time_to_datetime(parse_time(term))
    except (ValueError, InvalidOperation):
        return term.value
    if datatype == XSD + "boolean" and term.value in ("true", "1", "false", "0"):
        return term.value in ("true", "1")
    return term.value


def to_term(value: Any) -> Term | None:
    """What a function returned, as a term; a `TypeError` for what is none."""
    if value is None or isinstance(value, NamedNode | BlankNode | Literal | Triple):
        return value
    if isinstance(value, Decimal):
        return Literal(f"{value:f}", datatype=NamedNode(XSD + "decimal"))
    if isinstance(value, datetime):
        return Literal(format_time(datetime_to_time(value)), datatype=NamedNode(XSD + "dateTime"))
    if hasattr(value, "item") and callable(value.item):
        value = value.item()
    if isinstance(value, bool | int | float | str):
        return Literal(value)
    raise TypeError(f"it returned {value!r}, which is no term, number, boolean, text or datetime")
