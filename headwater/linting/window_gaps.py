"""Windows that leave gaps: their step is larger than their range.

    [RANGE 10s STEP 1m]     nothing of the 50 s in between is ever answered

Such a window is right, and samples the stream; more often the two were exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.explain.notation import duration_text
from headwater.linting.lint_subject import LintSubject
from headwater.windows.model import CountWindow


def find_window_gaps(subject: LintSubject) -> Iterator[str]:
    """Windows whose step is larger than their range."""
    for source, window in zip(subject.plan.windows, subject.settings.windows, strict=True):
        if isinstance(window, CountWindow):
            size, step = window.size, window.step
            texts = f"{step} {window.unit}", f"the last {size}"
        else:
            size, step = window.width or 0, window.slide
            texts = duration_text(step or 0), f"the last {duration_text(size)}"
        if step is not None and 0 < size < step:
            yield (
                f"the window [{subject.notation.window(source.spec)}] of {subject.notation.iri(source.stream)} leaves "
                f"gaps: it moves on by {texts[0]} and holds {texts[1]}, so what comes in between is never answered; "
                "make the range at least as large as the step"
            )
