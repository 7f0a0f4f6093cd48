"""Elements of a sample that cannot be read: bad syntax, no time, a column of the template that no row has."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from headwater.linting.lint_subject import LintSubject
from headwater.terms.names import iri_to_name


def find_unreadable_elements(subject: LintSubject) -> Iterator[str]:
    """Streams with bad elements, or with none at all."""
    for stream in dict.fromkeys(source.stream for source in subject.plan.windows):
        sample = subject.observed.samples.get(stream)
        if sample is None:
            continue
        name = iri_to_name(stream.value)
        if sample.bad:
            yield (
                f"{sample.bad:,} of {sample.bad + sample.elements:,} elements of the stream {name} cannot be read; "
                f"the first: {sample.first_bad}"
            )
        elif not sample.elements:
            yield (
                f"the stream {name} has no element: its files are empty, or the template leaves all rows out "
                "(`@where`, or `@each` of lists that are empty or not there)"
            )
        rows = "no row" if sample.is_whole else "none of its first rows"
        for column in sorted(sample.absent_columns):
            near = get_close_matches(column, sample.columns, 1)
            others = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(sample.columns))}"
            yield f"the template of the stream {name} reads {column!r}, which {rows} has; {others}"
