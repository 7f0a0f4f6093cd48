"""Windows whose durations have no unit: `[RANGE 5 STEP 5]`, which is taken for milliseconds."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.explain.notation import duration_text
from headwater.language.stream_clauses import RangeSpec
from headwater.linting.lint_subject import LintSubject
from headwater.terms.model import SECOND

_MILLISECOND = SECOND // 1_000


def find_bare_durations(subject: LintSubject) -> Iterator[str]:
    """Windows of which a duration is a number alone."""
    for source in subject.plan.windows:
        if isinstance(source.spec, RangeSpec) and source.spec.has_bare_number:
            number = source.spec.width // _MILLISECOND
            yield (
                "a number without a unit is taken for milliseconds: the window of "
                f"{subject.notation.iri(source.stream)} is [{subject.notation.window(source.spec)}]. "
                f"Write the unit, as in RANGE {number or 1}s for seconds or RANGE {duration_text(source.spec.width)}"
            )
