"""Where the items of a stream are now: a file is followed when it gets another name, and a new one under its old name.

An offset has the name under which a file was first listed, and the identity of what was read of it. An item that is
listed and belongs to no offset is new: also where an offset has the same name, because that file was renamed or cut to
nothing. A file that is not found any more is `is_gone`; if it was not read to its end, a bad element says so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from headwater.sources.following.file_identity import (
    Recognition,
    beginning_of,
    end_of,
    identify,
    inode_of,
    recognise,
)
from headwater.sources.offsets import ItemOffset
from headwater.sources.source import Source, SourceItem

logger = logging.getLogger(__name__)

_COPY_SECONDS = 10.0
"""So long a copy of a file that was read may be one that is made before the file is cut to nothing."""


class FollowedItems:
    """The items of one stream; remembers where they were, so that only files that changed are looked into."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._known: dict[int, tuple[SourceItem, str]] = {}
        """By the index of an offset, where its item was when it was recognised, and by what."""
        self._missing: set[int] = set()
        """The indexes of offsets whose items were read to their ends, and then deleted."""

    def follow(
        self, offsets: Sequence[ItemOffset], items: Sequence[SourceItem], *, is_final: bool
    ) -> tuple[tuple[ItemOffset, ...], dict[int, SourceItem]]:
        """The offsets with those of new items behind them, and by their indexes where the items are now.

        `is_final` says that items will not be listed again: what could be a copy of another one is a new item then.
        """
        listed = {item.name: item for item in items}
        found = self._recognise_by_name(offsets, listed)
        followed = list(offsets)
        lost = [
            index
            for index, offset in enumerate(offsets)
            if index not in found and offset.identity and not offset.is_gone
        ]
        sought = [index for index in lost if index not in self._missing or offsets[index].name in listed]
        self._find_elsewhere(sought, offsets, found)
        for index in lost:
            if index not in found:
                followed[index] = self._leave(index, offsets[index], is_replaced=offsets[index].name in listed)
        self._known = {
            index: (item, offsets[index].identity) for index, item in found.items() if offsets[index].identity
        }
        taken = {item.path or item.name for item in found.values()}
        for item in items:
            if (item.path or item.name) not in taken and (is_final or not _is_fresh_copy(item, followed, found)):
                found[len(followed)] = item
                followed.append(ItemOffset(item.name))
        return tuple(followed), found

    def _recognise_by_name(
        self, offsets: Sequence[ItemOffset], listed: Mapping[str, SourceItem]
    ) -> dict[int, SourceItem]:
        """The items that are where they were."""
        found: dict[int, SourceItem] = {}
        for index, offset in enumerate(offsets):
            item = listed.get(offset.name)
            if offset.is_gone or item is None:
                continue
            if (
                not offset.identity
                or not item.path
                or self._known.get(index) == (item, offset.identity)
                or recognise(item.path, offset.identity) is not Recognition.OTHER
            ):
                found[index] = item
        return found

    def _find_elsewhere(self, lost: Iterable[int], offsets: Sequence[ItemOffset], found: dict[int, SourceItem]) -> None:
        """Look for items beside their old places: first by inode, then by content."""
        beside: dict[str, SourceItem] = {}
        beginnings: dict[str, str] = {}
        folders: set[str] = set()
        for index in lost:
            offset = offsets[index]
            if offset.folder not in folders:
                folders.add(offset.folder)
                beside |= {item.path: item for item in self._source.items_beside(offset.name)}
            taken = {item.path for item in found.values()}
            free = [item for item in beside.values() if item.path not in taken and item.size >= offset.end]
            free.sort(key=lambda item: item.inode != inode_of(offset.identity))
            for item in free:
                if item.path not in beginnings:
                    beginnings[item.path] = beginning_of(identify(item.path, item.size) or "0:0::")
                begins_so = beginning_of(offset.identity) in ("", beginnings[item.path])
                if begins_so and recognise(item.path, offset.identity) is Recognition.SAME:
                    found[index] = replace(item, name=offset.name)
                    break

    def _leave(self, index: int, offset: ItemOffset, *, is_replaced: bool) -> ItemOffset:
        """The offset of an item that is not found: gone where it matters, otherwise it may come back."""
        was_read = offset.is_at_end or offset.is_whole
        if not is_replaced and was_read:
            self._missing.add(index)
            return offset
        if was_read:
            logger.warning(
                "%s is another file than before, and that one is not beside it: what was appended to it since it was "
                "read last, up to byte %d, is lost",
                offset.name,
                offset.end,
            )
        return replace(offset, is_gone=True)


def _is_fresh_copy(item: SourceItem, offsets: Sequence[ItemOffset], found: Mapping[int, SourceItem]) -> bool:
    """Whether an item is not old and begins with all that was read of another one: a copy that a rotation makes first.

    When the other one is cut, the copy is what is read on. Where it is not, it is an item of its own after a while.
    """
    if not item.path or time.time() - item.changed_ns / 1e9 > _COPY_SECONDS:
        return False
    mine = ""
    for index in found:
        identity = offsets[index].identity
        if not identity or not beginning_of(identity) or item.size < end_of(identity):
            continue
        mine = mine or beginning_of(identify(item.path, item.size) or "0:0::")
        if mine == beginning_of(identity) and recognise(item.path, identity) is Recognition.SAME:
            return True
    return False
