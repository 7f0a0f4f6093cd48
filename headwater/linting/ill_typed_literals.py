"""Literals whose text is none of their type: `"12,5"^^xsd:double`. They count as errors in expressions and aggregates.

Of the types of XML Schema those are known with which SPARQL computes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from headwater.algebra.nodes import Bgp, PathMatch, Values
from headwater.language.expressions import Constant
from headwater.linting.lint_subject import LintSubject
from headwater.terms.model import XSD, Literal
from headwater.terms.names import iri_to_name

_ZONE = r"(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?"
_DAY = r"(-?[0-9]{4,})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?|24:00:00(?:\.0+)?)"
_DURATION_TIME = r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?"
_FLOATING = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_WHOLE_TYPES = (
    *("integer", "long", "int", "short", "byte", "nonPositiveInteger", "negativeInteger", "nonNegativeInteger"),
    *("positiveInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
)
NUMERIC_TYPES = frozenset(XSD + name for name in (*_WHOLE_TYPES, "decimal", "double", "float"))
_FORMS: dict[str, re.Pattern[str]] = {
    **{XSD + name: _WHOLE for name in _WHOLE_TYPES},
    XSD + "decimal": re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"),
    XSD + "double": _FLOATING,
    XSD + "float": _FLOATING,
    XSD + "boolean": re.compile(r"true|false|0|1"),
    XSD + "dateTime": re.compile(f"{_DAY}T{_CLOCK}{_ZONE}"),
    XSD + "date": re.compile(_DAY + _ZONE),
    XSD + "time": re.compile(_CLOCK + _ZONE),
    XSD + "duration": re.compile(rf"-?P(?=.)(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?{_DURATION_TIME}"),
    XSD + "dayTimeDuration": re.compile(rf"-?P(?=.)(?:[0-9]+D)?{_DURATION_TIME}"),
    XSD + "yearMonthDuration": re.compile(r"-?P(?=.)(?:[0-9]+Y)?(?:[0-9]+M)?"),
}
_WITH_DAYS = (XSD + "dateTime", XSD + "date")


def is_ill_typed(literal: Literal) -> bool:
    """Whether the text of a literal is none of its type; of an unknown type that is not said."""
    form = _FORMS.get(literal.datatype.value)
    if form is None:
        return False
    # Blanks around a value are no part of it.
    match = form.fullmatch(literal.value.strip(" \t\r\n"))
    return match is None or (literal.datatype.value in _WITH_DAYS and not _is_day(*match.groups()[:3]))


def _is_day(year: str, month: str, day: str) -> bool:
    # Leap years repeat after 400 years, and Python's calendar begins with 1.
    try:
        date(int(year) % 400 + 400, int(month), int(day))
    except ValueError:
        return False
    return True


def find_ill_typed_literals(subject: LintSubject) -> Iterator[str]:
    """Literals of the query, and of the samples of its streams, whose text is none of their type."""
    for literal in dict.fromkeys(filter(is_ill_typed, _literals_of(subject))):
        yield f"{literal} has a type that its text does not fit, so comparing or computing fails{_remedy(literal)}"
    for stream in dict.fromkeys(source.stream for source in subject.plan.windows):
        sample = subject.observed.samples.get(stream)
        found = [] if sample is None else [literal for literal in sample.literals if is_ill_typed(literal)]
        if found:
            yield (
                f"{len(found):,} different values of the stream {iri_to_name(stream.value)} have a type that their "
                f"text does not fit, such as {min(found, key=str)}: aggregates and comparisons over them fail; mend "
                f"the stream or its template{_remedy(min(found, key=str))}"
            )


def _literals_of(subject: LintSubject) -> Iterator[Literal]:
    """The literals that stand in the query."""
    terms: list[object] = [part.value for part in subject.expressions() if isinstance(part, Constant)]
    for node in subject.nodes:
        match node:
            case Bgp(triples):
                terms += [triple.object for triple in triples]
            case PathMatch(start, _, end):
                terms += [start, end]
            case Values(_, rows):
                terms += [term for row in rows for term in row]
    return (term for term in terms if isinstance(term, Literal))


def _remedy(literal: Literal) -> str:
    kind = literal.datatype.value
    if kind in (XSD + "decimal", XSD + "double", XSD + "float") and "," in literal.value:
        return "; write a point for the comma"
    if kind == XSD + "dateTime" and re.fullmatch(_DAY, literal.value):
        return "; a dateTime has a time of day, as in 2026-03-02T07:00:00Z"
    if kind == XSD + "dateTime" and " " in literal.value.strip():
        return "; a dateTime has a T between day and time, as in 2026-03-02T07:00:00Z"
    return ""
