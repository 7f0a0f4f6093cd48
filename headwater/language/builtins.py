"""The built-in functions of SPARQL 1.1 (section 17.4) with the number of arguments that each takes."""

from __future__ import annotations

from headwater.terms.model import XSD, NamedNode
from headwater.terms.own_functions import own_scalar

AGGREGATES = {
    "COUNT": "COUNT",
    "SUM": "SUM",
    "MIN": "MIN",
    "MAX": "MAX",
    "AVG": "AVG",
    "AVERAGE": "AVG",
    "SAMPLE": "SAMPLE",
    "GROUP_CONCAT": "GROUP_CONCAT",
}
"""Every spelling of an aggregate and the name it goes by in the tree."""

STREAM_AGGREGATES = {
    spelling: name for spelling, name in AGGREGATES.items() if name in {"COUNT", "SUM", "MIN", "MAX", "AVG"}
}
"""Those that C-SPARQL's AGGREGATE clause knows (CS2)."""

SAME_FUNCTION = {"URI": "IRI", "ISURI": "ISIRI"}
"""Functions with two spellings: the tree has the second."""

VOLATILE_FUNCTIONS = frozenset({"NOW", "RAND", "UUID", "STRUUID", "BNODE"})
"""Those whose value depends on more than their arguments."""

CAST_FUNCTIONS = frozenset(
    XSD + name
    for name in (
        *("boolean", "double", "float", "decimal", "integer", "string", "date", "time", "dateTime"),
        *("duration", "yearMonthDuration", "dayTimeDuration", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"),
    )
)
"""The functions named by an IRI that are known besides those of users (`own_functions`); pyoxigraph refuses others."""

_ANY = 1_000_000_000


def _all(names: str, fewest: int, most: int) -> dict[str, tuple[int, int]]:
    return {name: (fewest, most) for name in names.split()}


ARGUMENT_COUNTS: dict[str, tuple[int, int]] = {
    **_all("RAND NOW UUID STRUUID", 0, 0),
    **_all("BNODE", 0, 1),
    **_all("STR LANG DATATYPE IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI", 1, 1),
    **_all("YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512", 1, 1),
    **_all("ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC BOUND", 1, 1),
    **_all("LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM", 2, 2),
    **_all("SUBSTR REGEX", 2, 3),
    **_all("IF", 3, 3),
    **_all("REPLACE", 3, 4),
    **_all("CONCAT COALESCE", 0, _ANY),
}
"""For each built-in function the fewest and the most arguments."""


def is_volatile(function: str | NamedNode) -> bool:
    """Whether a function may give two values for the same arguments; of an unknown one that is assumed."""
    if isinstance(function, NamedNode):
        return function.value not in CAST_FUNCTIONS and own_scalar(function.value) is None
    return function in VOLATILE_FUNCTIONS


def describe_count(fewest: int, most: int) -> str:
    """The number of arguments in words."""
    if fewest == most:
        return f"{fewest} argument" if fewest == 1 else f"{fewest} arguments"
    return f"{fewest} to {most} arguments"
