"""The brackets that turn a stream into something finite: `[RANGE 10m STEP 1m]` and its relatives.

One grammar for all dialects:

    RANGE d | RANGE TRIPLES n | TRIPLES n | COUNT n | ELEMENTS n | NOW | ALL
    | FROM NOW[-d] TO NOW[-d] | FROM "instant"^^xsd:dateTime [TO NOW]

each but NOW and ALL followed, in any order, by `STEP d`, `SLIDE d`, `STEP` alone or `TUMBLING` (both: as far as the
window is wide) and by `@predicate`, the property that holds the time of an element.
"""

from __future__ import annotations

import re

from headwater.language.lexer import SourceText, Token
from headwater.language.parser_triples import TriplesParser
from headwater.language.stream_clauses import (
    AllSpec,
    CountSpec,
    Dialect,
    IntervalSpec,
    LandmarkSpec,
    NowSpec,
    RangeSpec,
    WindowSpec,
)
from headwater.terms.durations import DurationError, read_duration
from headwater.terms.model import NamedNode
from headwater.terms.timestamps import parse_time

WINDOW_STARTS = ("RANGE", "TRIPLES", "COUNT", "ELEMENTS", "NOW", "ALL", "FROM")
_COUNT_UNITS = {"TRIPLES": "triples", "COUNT": "elements", "ELEMENTS": "elements"}
_STEPS = ("STEP", "SLIDE")
_WORDS_AFTER_DURATION = frozenset({"STEP", "SLIDE", "TUMBLING", "AS", "TO"})
_TUMBLING = -1
_BARE_NUMBER = re.compile(r"[0-9.]+")
_TIMESTAMP_PREDICATE = re.compile(r"@\s*(<[^\x00-\x20<>\"{}|^`\\]*>|[\w\-.]*:[\w\-.:]*[\w\-:]|:)")


class WindowParser(TriplesParser):
    """Reads window brackets and durations."""

    def __init__(self, source: SourceText, dialect: Dialect, is_streaming: bool, base: str | None) -> None:
        super().__init__(source, dialect, is_streaming, base)
        self._options_left: tuple[str, ...] = ()
        self._has_bare_number = False

    def duration(self, purpose: str) -> int:
        """A duration above zero, in microseconds."""
        start = self.token.start
        try:
            duration = read_duration(self.text, start, _WORDS_AFTER_DURATION)
        except DurationError as problem:
            self.fail(str(problem), problem.offset, ("a duration such as 10m or PT10M",))
        if duration is None:
            self.raise_unexpected("a duration such as 10m or PT10M", hint=f" as {purpose}")
        length, end = duration
        self._has_bare_number |= _BARE_NUMBER.fullmatch(self.text, start, end) is not None
        if length == 0:
            self.fail(f"{purpose} must be longer than zero", start)
        self.skip_to(end)
        return length

    def number_above_zero(self, purpose: str) -> int:
        """An integer of at least 1."""
        token = self.token
        number = self.integer()
        if number == 0:
            self.fail(f"{purpose} must be more than zero", token)
        return number

    def window(self) -> WindowSpec:
        """`[ … ]`."""
        self.expect("[")
        token = self.token
        if token.key not in WINDOW_STARTS:
            self.raise_unexpected(*WINDOW_STARTS)
        self.advance()
        result = self._window_after(token)
        self.close("]", *self._options_left)
        return result

    def _window_after(self, token: Token) -> WindowSpec:
        """A window by time or by count, after its first word."""
        self._options_left = ()
        if token.key == "NOW":
            return NowSpec()
        if token.key == "ALL":
            return AllSpec()
        if token.key == "FROM":
            return self._interval()
        if token.key == "RANGE" and self.token.key != "TRIPLES":
            self._has_bare_number = False
            width = self.duration("the width of a window")
            slide, predicate = self._options(counted=False)
            return RangeSpec(width, width if slide == _TUMBLING else slide, predicate, self._has_bare_number)
        if token.key == "RANGE":
            token = self.advance()
        number = self.token
        size = self.number_above_zero("the size of a window")
        if self.token.is_word and self.token.key not in (*_STEPS, "TUMBLING"):
            self.fail(f"{token.text} takes a number of {_COUNT_UNITS[token.key]}, not a duration", number)
        step, predicate = self._options(counted=True)
        return CountSpec(size, size if step == _TUMBLING else step, _COUNT_UNITS[token.key], predicate)

    def _options(self, counted: bool, tumbling: bool = True) -> tuple[int | None, NamedNode | None]:
        """What follows the size: the step, -1 where it equals the width, and the timestamp's predicate."""
        step: int | None = None
        predicate: NamedNode | None = None
        while True:
            if step is None and self.token.key in _STEPS:
                step = self._step_length(counted, tumbling)
            elif step is None and tumbling and self.accept("TUMBLING"):
                step = _TUMBLING
            elif predicate is None and self.token.text.startswith("@"):
                predicate = self._timestamp_predicate()
            else:
                self._options_left = () if step is not None else (*_STEPS, *(("TUMBLING",) if tumbling else ()))
                return step, predicate

    def _step_length(self, counted: bool, tumbling: bool) -> int:
        self.advance()
        if tumbling and (self.token.key == "]" or self.token.text.startswith("@")):
            return _TUMBLING
        return self.number_above_zero("STEP") if counted else self.duration("STEP")

    def _timestamp_predicate(self) -> NamedNode:
        match = _TIMESTAMP_PREDICATE.match(self.text, self.token.start)
        if match is None:
            self.advance()
            self.raise_unexpected("iri", "pname", hint=": after @ comes the property that holds the time")
        self.skip_to(match.end())
        kind = "iri" if match[1].startswith("<") else "pname"
        return self.resolve_token(Token(kind, match[1], match.start(1), match.end(1)))

    def _interval(self) -> WindowSpec:
        """`FROM … TO …`, after FROM."""
        begin = self.token
        if begin.key == "string":
            literal = self.literal()
            try:
                start = parse_time(literal.value)
            except ValueError:
                self.fail(f"{literal.value} is not a date and time such as 2024-01-31T12:00:00Z", begin)
            if self.accept("TO"):
                self.expect("NOW")
            slide, predicate = self._options(counted=False, tumbling=False)
            return LandmarkSpec(start, slide, predicate)
        start_offset = self._now_minus()
        self.expect("TO")
        end_offset = self._now_minus()
        if start_offset <= end_offset:
            self.fail("this window ends before it begins: the offset after FROM must be the longer one", begin)
        slide, predicate = self._options(counted=False)
        width = start_offset - end_offset
        return IntervalSpec(start_offset, end_offset, width if slide == _TUMBLING else slide, predicate)

    def _now_minus(self) -> int:
        self.expect("NOW")
        return self.duration("the offset from NOW") if self.accept("-") else 0
