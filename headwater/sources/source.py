"""What a source offers, and the parts in which it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from headwater.errors import HeadwaterError
from headwater.terms.model import BadElement, Element

if TYPE_CHECKING:
    from headwater.terms.scanning.pattern_tables import Patterns
    from headwater.terms.scanning.scanned_columns import Scanned


class SourceError(HeadwaterError, RuntimeError):
    """A source that is missing or cannot be read; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Found:
    """One item of a source: a file and its size in bytes."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Span:
    """A part of one item, from byte `start` to before `end`.

    `after_end` says that the item used to end at `start`: what follows was appended since. `limit`, where set, is where
    the item ended when the span was planned: what is appended behind it meanwhile belongs to a later span.
    """

    name: str
    start: int
    end: int
    whole: bool = False
    after_end: bool = False
    limit: int | None = None

    def parts(self, size: int) -> Iterator[Span]:
        """The same bytes in spans of at most `size`, where an item can be read in parts."""
        if self.whole or self.end - self.start <= size:
            yield self
            return
        for start in range(self.start, self.end, size):
            end = min(start + size, self.end)
            yield replace(self, start=start, end=end, after_end=self.after_end and start == self.start)


class Source(Protocol):
    """What the pipeline asks of a source. A source can be pickled and opens nothing before it is read."""

    def check(self) -> None:
        """Raise `SourceError` where there is nothing to read."""

    def listing(self) -> list[Found]:
        """What there is to read now, in order."""

    def is_whole(self, item: Found) -> bool:
        """Whether an item can only be read as a whole."""

    def complete(self, item: Found) -> int:
        """How many bytes of an item consist of complete lines; more may be written behind them."""

    def read(self, span: Span) -> Iterator[Element | BadElement]:
        """The elements that begin in a span, with their positions in the item."""

    def columns(self, span: Span, patterns: Patterns | None) -> Scanned | None:
        """The same as columns of ids, those triples alone that match a pattern; None where only `read` can."""

    def text_at(self, name: str, position: tuple[int, ...]) -> str | None:
        """The statements of the element that begins at a position of an item; None where they are gone."""

    def line_numbers(self, name: str, positions: Sequence[tuple[int, ...]]) -> list[int | None]:
        """The lines at which elements of an item began, where lines have numbers."""
