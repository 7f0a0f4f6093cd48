"""The texts of a data set's terms, by their ids: three columns on disk, sorted by id.

    ids      3 | 17 | 40 | …                 only ids that are hashes; the others hold their term themselves
    offsets  0 | 21 | 35 | 58 | …            text i is blob[offsets[i]:offsets[i + 1]]
    blob     <http://ex/a><http://…

Data sets of any size are written in bounded memory. Hashes are spread evenly, so equal ranges of ids have about equally
many texts, and the texts of all parts are merged one range after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headwater.datasets.mapped_files import map_bytes, map_ints, write_column
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.hash_collisions import HashCollision
from headwater.terms.ids.term_ids import encode
from headwater.terms.ids.term_texts import TermTexts, parse_terms, texts_of_terms
from headwater.terms.model import Term
from headwater.terms.scanning.memory import PADDING
from headwater.terms.scanning.padded_text import PaddedText
from headwater.terms.scanning.texts import copy_texts, is_same_text

_BYTES_AT_A_TIME = 64 << 20
_ALL_HASHES = 1 << 63


def merge_texts(parts: Sequence[TermTexts]) -> TermTexts:
    """Merge texts, without duplicates, in the order of their ids; raises `HashCollision` for two texts with one id."""
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
    collision = _find_collision(ids, lengths, addresses)
    if collision >= 0:
        texts = tuple(
            _find_text(parts, int(addresses[index]), int(lengths[index])) for index in (collision - 1, collision)
        )
        raise HashCollision(int(ids[collision]), *parse_terms(texts))
    offsets = np.zeros(int(is_first.sum()) + 1, dtype=np.int64)
    np.cumsum(lengths[is_first], out=offsets[1:])
    blob = PaddedText.empty(int(offsets[-1]))
    copy_texts(addresses[is_first], offsets, blob.address)
    return TermTexts(ids[is_first], offsets, blob.content)


@compiled
def _find_collision(ids, lengths, addresses):  # type: ignore[no-untyped-def]
    """The first index whose text differs from the one before, although both have one id; -1 if there is none."""
    for i in range(1, ids.shape[0]):
        if ids[i] == ids[i - 1] and (
            lengths[i] != lengths[i - 1] or not is_same_text(addresses[i], addresses[i - 1], lengths[i])
        ):
            return i
    return -1


def _find_text(parts: Sequence[TermTexts], address: int, length: int) -> bytes:
    for part in parts:
        start = address - part.blob.ctypes.data
        if 0 <= start < max(1, part.blob.shape[0]):
            return part.blob[start : start + length].tobytes()
    raise AssertionError("no part has this text")


@dataclass(frozen=True)
class StoredTerms:
    """Texts by id: mapped from a folder, or in memory."""

    texts: TermTexts

    @classmethod
    def open(cls, folder: Path) -> StoredTerms:
        ids, offsets = map_ints(folder / "terms.ids"), map_ints(folder / "terms.offsets")
        blob = map_bytes(folder / "terms.blob")
        if offsets.shape[0] != ids.shape[0] + 1 or offsets[-1] > blob.shape[0]:
            raise ValueError(f"the files of terms in {folder} do not fit together")
        return cls(TermTexts(ids, offsets, blob))

    @classmethod
    def of(cls, terms: Iterable[Term]) -> StoredTerms:
        """Hold the texts of some terms in memory."""
        texts = texts_of_terms((encode(term), term) for term in terms)
        # Compiled code reads whole words.
        return cls(merge_texts([TermTexts(texts.ids, texts.offsets, PaddedText.of(texts.blob).content)]))

    def text_of(self, term_id: int) -> bytes | None:
        """The text of an id; None if it is not here."""
        ids = self.texts.ids
        index = int(ids.searchsorted(term_id))
        if index == ids.shape[0] or ids[index] != term_id:
            return None
        start, end = self.texts.offsets[index : index + 2].tolist()
        return self.texts.blob[start:end].tobytes()

    def texts_between(self, low: int, high: int) -> TermTexts:
        """The texts of the ids from `low` to before `high`."""
        first, end = np.searchsorted(self.texts.ids, [low, min(high, _ALL_HASHES - 1)]).tolist()
        if high == _ALL_HASHES:
            end = self.texts.ids.shape[0]
        return TermTexts(self.texts.ids[first:end], self.texts.offsets[first : end + 1], self.texts.blob)


def write_terms(folder: Path, pieces: Iterable[TermTexts]) -> int:
    """Write texts, which come in the order of their ids; gives their count."""
    count = end = 0
    with (
        open(folder / "terms.ids", "wb") as ids,
        open(folder / "terms.offsets", "wb") as offsets,
        open(folder / "terms.blob", "wb") as blob,
    ):
        write_column(offsets, np.zeros(1, dtype=np.int64))
        for piece in pieces:
            write_column(ids, piece.ids)
            write_column(offsets, piece.offsets[1:] + end)
            write_column(blob, piece.blob)
            count, end = count + len(piece), end + int(piece.offsets[-1])
        # Compiled code reads whole words.
        write_column(blob, np.zeros(PADDING, dtype=np.uint8))
    return count


def merge_in_ranges(parts: Sequence[StoredTerms]) -> Iterator[TermTexts]:
    """Merge texts as `merge_texts` does, one range of ids after the other."""
    size = sum(int(part.texts.offsets[-1]) + 32 * len(part.texts) for part in parts)
    step = _ALL_HASHES // (size // _BYTES_AT_A_TIME + 1)
    for low in range(0, _ALL_HASHES, step):
        yield merge_texts([part.texts_between(low, min(low + step, _ALL_HASHES)) for part in parts])
