"""Elements of a sample that cannot be read: bad syntax, no time, a column of the template that no row has."""

from __future__ import annotations

from collections.abc import Iterator

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
            yield f"the stream {name} has no element: its files are empty, or `@where` of the template leaves all out"
