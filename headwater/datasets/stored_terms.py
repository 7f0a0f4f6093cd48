"""The texts of a data set's terms, by their ids: three columns on disk, sorted by id.

    ids      3 | 17 | 40 | …                 only ids that are hashes; the others hold their term themselves
    offsets  0 | 21 | 35 | 58 | …            text i is blob[offsets[i]:offsets[i + 1]]
    blob     <http://ex/a><http://…

Data sets of any size are written in bounded memory: hashes are spread evenly, so equal ranges of ids have about equally
many texts, and one range after the other is put together from all parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headwater.datasets.mapped_files import Ints, append, mapped_bytes, mapped_ints
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.dictionary import HashCollision
from headwater.terms.ids.term_ids import encode
from headwater.terms.ids.term_texts import TermTexts, parse_terms, texts_of
from headwater.terms.model import Term
from headwater.terms.scanning.memory import PADDING
from headwater.terms.scanning.padded_text import PaddedText
from headwater.terms.scanning.texts import gather, same_text

_BYTES_AT_A_TIME = 64 << 20
_ALL_HASHES = 1 << 63


def merged(parts: Sequence[TermTexts]) -> TermTexts:
    """All texts of some parts, each once, in the order of their ids; `HashCollision` for two texts with one id."""
    if not any(map(len, parts)):
        return TermTexts(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.uint8))
    ids = np.concatenate([part.ids for part in parts])
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    addresses = np.concatenate([part.offsets[:-1] + part.blob.ctypes.data for part in parts])
    order = np.argsort(ids, kind="stable")
    ids, lengths, addresses = ids[order], lengths[order], addresses[order]
    is_first = np.empty(ids.shape[0], dtype=np.bool_)
    is_first[0] = True
    np.not_equal(ids[1:], ids[:-1], out=is_first[1:])
    clash = _first_clash(ids, lengths, addresses)
    if clash >= 0:
        texts = tuple(_text_at(parts, int(addresses[place]), int(lengths[place])) for place in (clash - 1, clash))
        raise HashCollision(int(ids[clash]), *parse_terms(texts))
    offsets = np.zeros(int(is_first.sum()) + 1, dtype=np.int64)
    np.cumsum(lengths[is_first], out=offsets[1:])
    blob = PaddedText.empty(int(offsets[-1]))
    gather(addresses[is_first], offsets, blob.address)
    return TermTexts(ids[is_first], offsets, blob.content)


@compiled
def _first_clash(ids, lengths, addresses):  # type: ignore[no-untyped-def]
    """The first text that differs from the one before although both have one id; -1 where there is none."""
    for i in range(1, ids.shape[0]):
        if ids[i] == ids[i - 1] and (
            lengths[i] != lengths[i - 1] or not same_text(addresses[i], addresses[i - 1], lengths[i])
        ):
            return i
    return -1


def _text_at(parts: Sequence[TermTexts], address: int, length: int) -> bytes:
    for part in parts:
        start = address - part.blob.ctypes.data
        if 0 <= start < max(1, part.blob.shape[0]):
            return part.blob[start : start + length].tobytes()
    raise AssertionError("no part has this text")


@dataclass(frozen=True)
class StoredTerms:
    """Texts in a folder."""

    texts: TermTexts

    @classmethod
    def open(cls, folder: Path) -> StoredTerms:
        ids, offsets = mapped_ints(folder / "terms.ids"), mapped_ints(folder / "terms.offsets")
        return cls(TermTexts(ids, offsets, mapped_bytes(folder / "terms.blob")))

    @classmethod
    def of(cls, terms: Iterable[Term]) -> StoredTerms:
        """The texts of some terms, in memory."""
        texts = texts_of((encode(term), term) for term in terms)
        # Compiled code reads whole words.
        return cls(merged([TermTexts(texts.ids, texts.offsets, PaddedText.of(texts.blob).content)]))

    def text_of(self, number: int) -> bytes | None:
        """The text of an id, None where it is not here."""
        ids = self.texts.ids
        place = int(ids.searchsorted(number))
        if place == ids.shape[0] or ids[place] != number:
            return None
        start, end = self.texts.offsets[place : place + 2].tolist()
        return self.texts.blob[start:end].tobytes()

    def between(self, low: int, high: int) -> TermTexts:
        """The texts of the ids from `low` to before `high`."""
        first, behind = np.searchsorted(self.texts.ids, [low, min(high, _ALL_HASHES - 1)]).tolist()
        if high == _ALL_HASHES:
            behind = self.texts.ids.shape[0]
        return TermTexts(self.texts.ids[first:behind], self.texts.offsets[first : behind + 1], self.texts.blob)


def write_terms(folder: Path, pieces: Iterator[TermTexts]) -> int:
    """Write texts that come in the order of their ids; gives how many."""
    count = end = 0
    with (
        open(folder / "terms.ids", "wb") as ids,
        open(folder / "terms.offsets", "wb") as offsets,
        open(folder / "terms.blob", "wb") as blob,
    ):
        append(offsets, np.zeros(1, dtype=np.int64))
        for piece in pieces:
            append(ids, piece.ids)
            append(offsets, piece.offsets[1:] + end)
            append(blob, piece.blob)
            count, end = count + len(piece), end + int(piece.offsets[-1])
        # Compiled code reads whole words.
        append(blob, np.zeros(PADDING, dtype=np.uint8))
    return count


def merged_in_ranges(parts: Sequence[StoredTerms]) -> Iterator[TermTexts]:
    """What `merged` gives, one range of ids after the other."""
    size = sum(int(part.texts.offsets[-1]) + 32 * len(part.texts) for part in parts)
    step = _ALL_HASHES // (size // _BYTES_AT_A_TIME + 1)
    for low in range(0, _ALL_HASHES, step):
        yield merged([part.between(low, min(low + step, _ALL_HASHES)) for part in parts])


def in_order(texts: Sequence[TermTexts]) -> Iterator[TermTexts]:
    """Some texts in memory, as `write_terms` wants them."""
    yield merged(texts)


__all__ = ["Ints", "StoredTerms", "in_order", "merged", "merged_in_ranges", "write_terms"]
