"""FROM and FROM NAMED of graphs that are not loaded: a run over such data is refused."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.linting.lint_subject import LintSubject
from headwater.terms.names import iri_to_name


def find_unloaded_graphs(subject: LintSubject) -> Iterator[str]:
    """Graphs that a dataset clause names and that are not loaded."""
    loaded = subject.observed.loaded
    if loaded is None:
        return
    for graph in dict.fromkeys((*(subject.plan.default_graphs or ()), *(subject.plan.named_graphs or ()))):
        if graph not in loaded.named:
            yield (
                f"FROM {subject.notation.iri(graph)}: no graph of that name is loaded; load it with "
                f"--data FILE@{iri_to_name(graph.value)}, or leave FROM out to read data that was loaded without a name"
            )
