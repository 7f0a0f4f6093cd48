"""Timestamps in January or February 1970: seconds that were read as milliseconds.

A number of seconds since 1970 that means an instant from 2000 to 2100 is, as milliseconds, an instant in the first
seven weeks of 1970. Streams that count from zero begin before those weeks.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.linting.lint_subject import LintSubject
from headwater.terms.model import SECOND
from headwater.terms.names import iri_to_name
from headwater.terms.timestamps import format_time

_SECONDS_AS_MILLISECONDS = range(946_684_800 * 1_000, 4_102_444_800 * 1_000)
"""The seconds from 2000 to 2100, each taken for a millisecond, in microseconds."""
_SECONDS_AS_MICROSECONDS = range(946_684_800, 4_102_444_800)
"""The same seconds, each taken for a microsecond."""


def is_implausible(time: int | None) -> bool:
    """Whether a timestamp looks like seconds that were read as milliseconds."""
    return time is not None and time in _SECONDS_AS_MILLISECONDS


def implausible_time_text(stream: str, time: int) -> str:
    """What is said about such a stream; `time` is one of its timestamps."""
    return (
        f"the times of the stream {iri_to_name(stream)} are in 1970 (one is {format_time(time)}, and would be "
        f"{format_time(time * 1_000)} if its number meant seconds, or milliseconds where Python takes microseconds): "
        "seconds were probably read as milliseconds. Write `@time {column} as seconds` in the template, milliseconds "
        "into the file, or give microseconds in Python"
    )


def is_in_seconds(time: int | None) -> bool:
    """Whether the first time that a program gives looks like seconds where microseconds are meant."""
    return time is not None and time in _SECONDS_AS_MICROSECONDS


def seconds_text(stream: str, time: int) -> str:
    """What is said about a stream that begins so."""
    return (
        f"the times of {stream} are in the first hours of 1970 (one is {format_time(time)}, and would be "
        f"{format_time(time * SECOND)} if its number meant seconds): Python gives microseconds, as in "
        "int(time.time() * 1_000_000)"
    )


def topic_of(sentence: str) -> str | None:
    """The part that is the same in all sentences about the times of a stream; None of other sentences."""
    topic, mark, _ = sentence.partition(" (one is ")
    return topic if mark else None


def find_implausible_times(subject: LintSubject) -> Iterator[str]:
    """Streams whose samples begin in those weeks."""
    for stream in dict.fromkeys(source.stream for source in subject.plan.windows):
        sample = subject.observed.samples.get(stream)
        if sample is not None and sample.first_time is not None and is_implausible(sample.first_time):
            yield implausible_time_text(stream.value, sample.first_time)
