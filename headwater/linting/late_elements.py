"""Elements that come behind the watermark that those before them have set, and are in no answer.

    08:00:10  08:06:05  08:02:20        the third is 3m45s behind the second: with --delay 4m it is in time

An element that is ahead of all others makes those that follow it late; then its own time is what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.explain.notation import duration_text
from headwater.linting.lint_subject import LintSubject
from headwater.terms.model import SECOND
from headwater.terms.names import iri_to_name
from headwater.terms.timestamps import format_time

_MINUTE, _HOUR = 60 * SECOND, 3_600 * SECOND


def late_cure(late_by: int) -> str:
    """What to do about elements that were at most so much behind one before them, in microseconds."""
    delay = duration_text(_round_up(late_by))
    waits = f'--delay {delay} (delay="{delay}") waits for such elements'
    behind = f"behind an element before it by {duration_text(late_by)}"
    if late_by < _HOUR:
        return f"it was {behind}: {waits}"
    return f"it was {behind}: check the times, --max-ahead puts an element aside that is ahead of all others; {waits}"


def unawaited_cure() -> str:
    """What to do about elements whose windows were closed because nothing came."""
    return (
        "its windows had been closed because the stream was silent, or because an earlier run had ended: a longer "
        '--idle (idle="10s") waits for such elements, and --no-drain leaves windows open at the end'
    )


def _round_up(microseconds: int) -> int:
    """A duration that is not shorter and reads well."""
    unit = next((unit for unit in (_HOUR, _MINUTE, SECOND) if microseconds >= unit), 1_000)
    return -(-microseconds // unit) * unit


def find_late_elements(subject: LintSubject) -> Iterator[str]:
    """Streams in whose samples elements are late, as long as no delay is allowed for."""
    for stream in dict.fromkeys(source.stream for source in subject.plan.windows):
        sample = subject.observed.samples.get(stream)
        if sample is None or sample.first_late is None:
            continue
        time, behind = sample.first_late
        some = "1 comes" if sample.late == 1 else f"{sample.late:,} come"
        yield (
            f"of the first {sample.elements:,} elements of the stream {iri_to_name(stream.value)} {some} late, and "
            f"without --delay a run leaves them out: the first is of {format_time(time)}, behind an element of "
            f"{format_time(behind)}{_advice(sample.late, sample.elements, sample.late_by)}"
        )


def _advice(late: int, elements: int, late_by: int) -> str:
    delay = duration_text(_round_up(late_by))
    if late_by < _HOUR and 2 * late <= elements:
        return f"; --delay {delay} would wait for all of them"
    return (
        ": check the times; --max-ahead 1h puts an element aside that is ahead of all others, and --delay "
        f"{delay} would wait for all of them"
    )
