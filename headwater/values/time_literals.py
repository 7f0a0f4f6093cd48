"""Instants as literals: the value of `timestamp()`."""

from __future__ import annotations

from headwater.terms.model import MILLISECOND, XSD, Literal, NamedNode


def time_literal(time: int) -> Literal:
    """Milliseconds, as stream files write them; a decimal where microseconds do not fit."""
    if time % MILLISECOND == 0:
        return Literal(str(time // MILLISECOND), datatype=NamedNode(XSD + "integer"))
    sign, whole = ("-", -time) if time < 0 else ("", time)
    text = f"{sign}{whole // MILLISECOND}.{whole % MILLISECOND:03d}".rstrip("0")
    return Literal(text, datatype=NamedNode(XSD + "decimal"))
