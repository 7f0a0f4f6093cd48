"""Linked data that does not stream, as evaluators read it.

A pyoxigraph `Store` is such data, and so are the data sets on disk (`headwater.datasets`). Literals are in their
stored form (`headwater.terms.stored_forms`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from headwater.algebra.plan import QueryPlan
from headwater.algebra.wanted_patterns import WantedPattern, wanted_patterns_of
from headwater.terms.ids.term_texts import Ints
from headwater.terms.model import Literal, Quad
from headwater.terms.stored_forms import restore_term, to_stored_term

Version: TypeAlias = tuple[int, ...]
"""The versions of the data sets of a program, in their order."""


class StaticData(Protocol):
    """Statements in graphs."""

    def quads_for_pattern(self, subject: Any, predicate: Any, object: Any, graph_name: Any = None, /) -> Iterator[Quad]:
        """The statements that match; None stands for anything."""

    def named_graphs(self) -> Iterator[Any]:
        """The names of the graphs, the empty ones too."""


@runtime_checkable
class VersionedData(Protocol):
    """Static data that has versions and can be moved from one to another, between two ticks."""

    @property
    def version(self) -> Version:
        """The version that readers see."""

    def differences(self, version: Version) -> Collection[Quad] | None:
        """The statements that may differ at another version; None: any may."""

    def move(self, version: Version) -> None:
        """Show another version from now on."""


@runtime_checkable
class IdentifiedData(Protocol):
    """Static data whose terms have ids already (`terms.ids`)."""

    def hashed_ids(self) -> Sequence[Ints]:
        """All ids that are hashes, in several arrays."""

    def computed_ids(self) -> Ints:
        """Hashed ids of terms that were computed from the data."""

    def texts_of_ids(self, ids: Ints) -> Mapping[int, bytes]:
        """The texts of those of some hashed ids that are here."""


@runtime_checkable
class PreparedData(VersionedData, Protocol):
    """Data that can prepare a version in the background before it moves there."""

    def latest(self) -> Version:
        """The newest version there is."""

    def prepare(self, version: Version, patience: float) -> Version:
        """The newest version up to this one that a move can go to at once; the rest is prepared in the background.

        The call may take up to `patience` seconds.
        """


def is_before(one: Version, other: Version) -> bool:
    """Whether a version of the same data sets is not newer than another one."""
    return len(one) == len(other) and all(a <= b for a, b in zip(one, other, strict=True))


def select_statements(static: StaticData, plan: QueryPlan, graph: Any) -> Iterator[Quad]:
    """The statements of a graph that can matter to a plan, each once."""
    patterns = wanted_patterns_of(plan)
    if patterns is None:
        yield from static.quads_for_pattern(None, None, None, graph)
        return
    found: set[Quad] = set()
    for one in patterns:
        if isinstance(one.subject, Literal) or isinstance(one.predicate, Literal):
            continue
        value = None if one.object is None else to_stored_term(one.object)
        found.update(static.quads_for_pattern(one.subject, one.predicate, value, graph))
    yield from found


def can_change_answers(patterns: Collection[WantedPattern] | None, changed: Collection[Quad] | None) -> bool:
    """Whether changed statements can change the answers of a plan that reads these patterns (`wanted_patterns_of`)."""
    if changed is None or patterns is None:
        return True
    return any(_matches(pattern, quad) for quad in changed for pattern in patterns)


def _matches(pattern: WantedPattern, quad: Quad) -> bool:
    return (
        pattern.predicate in (None, quad.predicate)
        and pattern.subject in (None, quad.subject)
        and pattern.object in (None, restore_term(quad.object))
    )
