"""What a source offers: items, and the ranges of bytes in which they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from headwater.errors import HeadwaterError
from headwater.terms.model import BadElement, Element

if TYPE_CHECKING:
    from headwater.terms.scanning.pattern_tables import ScanPatterns
    from headwater.terms.scanning.scanned_columns import ScannedColumns


class SourceError(HeadwaterError, RuntimeError):
    """A source that is missing or cannot be read; the message says what to do."""


@dataclass(frozen=True, slots=True)
class SourceItem:
    """One item of a source: a file, or a list in memory, and its size in bytes.

    A file has the `path` at which it is now, its inode, and when its content or its place was changed last.
    """

    name: str
    size: int
    path: str = ""
    inode: int = 0
    changed_ns: int = 0


@dataclass(frozen=True, slots=True)
class ItemRange:
    """Bytes of one item, from `start` to before `end`.

    `is_after_end`: the item used to end at `start`, and what follows was appended since. `limit`, where set, is where
    the item ended when the range was planned: what is appended behind it meanwhile belongs to a later range.
    `identity` says which file it is, whatever its name is when it is read (`file_identity`). With `is_gone` the file is
    not there any more, and nothing behind `start` can be read.
    """

    name: str
    start: int
    end: int
    is_whole: bool = False
    is_after_end: bool = False
    limit: int | None = None
    identity: str = ""
    is_gone: bool = False

    def split(self, size: int) -> Iterator[ItemRange]:
        """The same bytes in equal ranges of about `size`, unless the item must be read as a whole.

        A batch that goes on to the end of an element is a little longer than it was to be: that needs no more ranges.
        """
        count = 1 if self.is_whole else max(1, round((self.end - self.start) / size))
        bounds = [self.start + (self.end - self.start) * place // count for place in range(count + 1)]
        for start, end in pairwise(bounds):
            yield replace(self, start=start, end=end, is_after_end=self.is_after_end and start == self.start)


class Source(Protocol):
    """What the pipeline needs of a source. A source can be pickled and opens nothing before it is read."""

    def check(self) -> None:
        """Raise `SourceError` where there is nothing to read."""

    def list_items(self) -> list[SourceItem]:
        """The items that there are now, in order."""

    def items_beside(self, name: str) -> list[SourceItem]:
        """The files in the folder of an item, which it may be under another name; none where items are no files."""

    def needs_whole_read(self, item: SourceItem) -> bool:
        """Whether an item can only be read as a whole."""

    def complete_size(self, item: SourceItem) -> int:
        """How many bytes of an item consist of complete lines; more may be written behind them."""

    def find_batch_end(self, item: SourceItem, wanted: int, end: int) -> int:
        """The byte at which a batch ends that is to end at `wanted`: there, or where the element around it ends."""

    def read(self, item_range: ItemRange) -> Iterator[Element | BadElement]:
        """The elements that begin in a range, with their positions in the item."""

    def scan(self, item_range: ItemRange, patterns: ScanPatterns | None) -> ScannedColumns | None:
        """The same as columns of ids, only triples that match a pattern; None where only `read` is possible."""

    def text_at(self, name: str, position: tuple[int, ...]) -> str | None:
        """The statements of the element that begins at a position of an item; None where they are gone."""

    def line_numbers(self, name: str, positions: Sequence[tuple[int, ...]]) -> list[int | None]:
        """The lines at which elements of an item begin; None where lines have no numbers."""


@runtime_checkable
class ArrivalSource(Protocol):
    """A source that may stamp its elements when they arrive."""

    def settled_before(self) -> int | None:
        """Everything stamped before this instant can be read, and nothing will be stamped so any more.

        None where that is not known, or where elements carry times of their own. To be asked before items are listed.
        """
