"""From terms to the texts that columns carry, and back (CQ5).

Only terms that an answer or an expression may need have a text; an inline id needs none. Texts are in N-Triples syntax.
They are parsed one by one, when a term is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from pyoxigraph import RdfFormat

from headwater.terms.checking.checked_parsing import parse_quads
from headwater.terms.ids.gathered_texts import gather_texts
from headwater.terms.ids.hash_collisions import HashCollision
from headwater.terms.ids.term_ids import term_text
from headwater.terms.model import BlankNode, Literal, NamedNode, Term
from headwater.terms.packing import Plain

Ints = npt.NDArray[np.int64]
TermKinds = npt.NDArray[np.uint8]
"""A `TermKind` for each of some ids."""


class TermKind(IntEnum):
    """The kind of a term, which the first two characters of its text show."""

    UNKNOWN = 0
    IRI = 1
    BLANK = 2
    LITERAL = 3
    TRIPLE = 4


def kinds_of_texts(texts: Iterable[bytes]) -> TermKinds:
    """The kinds of the terms with these texts."""
    beginnings = np.frombuffer(b"".join([text[:2] for text in texts]), np.uint8).reshape(-1, 2)
    return kinds_of_beginnings(beginnings[:, 0], beginnings[:, 1])


def kinds_of_beginnings(first: npt.NDArray[np.uint8], second: npt.NDArray[np.uint8]) -> TermKinds:
    """The kinds of terms, from the first two bytes of their texts."""
    is_bracket = first == ord("<")
    choices = [first == ord('"'), first == ord("_"), is_bracket & (second == ord("<")), is_bracket]
    kinds = np.select(choices, [TermKind.LITERAL, TermKind.BLANK, TermKind.TRIPLE, TermKind.IRI], TermKind.UNKNOWN)
    return kinds.astype(np.uint8)


@dataclass(frozen=True, slots=True)
class TermTexts:
    """Ids with the canonical N-Triples texts of their terms; text `i` is `blob[offsets[i]:offsets[i + 1]]`."""

    ids: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    blob: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.ids)

    def items(self) -> Iterator[tuple[int, bytes]]:
        """Ids and texts, in the order of their first occurrence."""
        text = self.blob.tobytes()
        bounds = self.offsets.tolist()
        for i, term_id in enumerate(self.ids.tolist()):
            yield term_id, text[bounds[i] : bounds[i + 1]]

    def kinds_of(self, ids: Ints) -> TermKinds:
        """The kinds of ids, `UNKNOWN` for those without a text here. The ids here must be sorted."""
        found = np.full(ids.shape[0], TermKind.UNKNOWN, dtype=np.uint8)
        if not len(self):
            return found
        places = np.minimum(self.ids.searchsorted(ids), len(self) - 1)
        is_here = self.ids[places] == ids
        starts = self.offsets[places[is_here]]
        found[is_here] = kinds_of_beginnings(self.blob[starts], self.blob[starts + 1])
        return found

    def terms(self) -> dict[int, Term]:
        """Ids and terms."""
        ids, texts = zip(*self.items(), strict=True) if len(self) else ((), ())
        return dict(zip(ids, parse_terms(texts), strict=True))


def texts_to_plain(texts: TermTexts) -> Plain:
    """Texts as plain values."""
    return [texts.ids, texts.offsets, texts.blob]


def texts_from_plain(value: Plain) -> TermTexts:
    """The texts that `texts_to_plain` gave; a `ValueError` where they do not fit together."""
    ids, offsets, blob = value
    if ids.dtype != np.int64 or offsets.dtype != np.int64 or blob.dtype != np.uint8 or ids.ndim != 1 or blob.ndim != 1:
        raise ValueError("texts of terms have other types")
    if not is_partition(offsets, ids.shape[0], blob.shape[0]):
        raise ValueError("texts of terms do not fit together")
    return TermTexts(ids, offsets, blob)


def is_partition(starts: Ints, count: int, size: int) -> bool:
    """Whether starts, and one end, cut something of a size into so many pieces; compiled code relies on it."""
    return (
        starts.shape == (count + 1,)
        and bool(starts[0] >= 0 and starts[-1] <= size)
        and bool((starts[1:] >= starts[:-1]).all())
    )


def parse_terms(texts: tuple[bytes, ...]) -> list[Term]:
    """The terms of N-Triples texts."""
    # A term stands in the place of an object, because there every kind of term may stand.
    document = b"".join(b"<t:t> <t:t> %s .\n" % text for text in texts)
    return [quad.object for quad in parse_quads(document, RdfFormat.N_TRIPLES)]


def texts_of_terms(terms: Iterable[tuple[int, Term]]) -> TermTexts:
    """The texts of terms by their ids."""
    return texts_of_mapping({term_id: term_text(term).encode() for term_id, term in terms})


def texts_of_mapping(texts: Mapping[int, bytes]) -> TermTexts:
    """Ids and their texts as columns."""
    return texts_of_ids(np.array(list(texts), dtype=np.int64), list(texts.values()))


def texts_of_ids(ids: Ints, texts: Sequence[bytes]) -> TermTexts:
    """The texts of some ids as columns."""
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return TermTexts(ids, offsets, np.frombuffer(b"".join(texts), dtype=np.uint8))


def select_texts(texts: TermTexts, is_wanted: npt.NDArray[np.bool_]) -> TermTexts:
    """Some of the texts, without the others."""
    if is_wanted.all():
        return texts
    places = np.flatnonzero(is_wanted)
    return TermTexts(texts.ids[places], *gather_texts(texts.blob, texts.offsets[places], texts.offsets[places + 1]))


def concat_texts(parts: Sequence[TermTexts]) -> TermTexts:
    """Tables of texts without common ids as one table, because looking into many small ones takes longer."""
    ends = np.cumsum([part.blob.shape[0] for part in parts])
    offsets = [part.offsets[:-1] + end - part.blob.shape[0] for part, end in zip(parts, ends, strict=True)]
    return TermTexts(
        np.concatenate([part.ids for part in parts]),
        np.concatenate([*offsets, ends[-1:]]),
        np.concatenate([part.blob for part in parts]),
    )


def unite_texts(parts: Sequence[TermTexts]) -> TermTexts:
    """Tables of texts that may have ids in common as one table. An id that has two texts is a collision."""
    known: dict[int, bytes] = {}
    for part in parts:
        for term_id, text in part.items():
            if known.setdefault(term_id, text) != text:
                raise HashCollision(term_id, term_of_text(known[term_id]), term_of_text(text))
    return texts_of_mapping(known)


@lru_cache(256)
def _datatype(iri: str) -> NamedNode:
    return NamedNode(iri)


def term_of_text(text: bytes) -> Term:
    """The term with this N-Triples text."""
    if b"\\" not in text:
        string = text.decode()
        if string[0] == "<" and string[1] != "<":
            return NamedNode(string[1:-1])
        if string[0] == "_":
            return BlankNode(string[2:])
        if string[0] == '"':
            end = string.rindex('"')
            suffix = string[end + 1 :]
            if not suffix:
                return Literal(string[1:end])
            if suffix.startswith("^^<"):
                return Literal(string[1:end], datatype=_datatype(suffix[3:-1]))
    (quad,) = parse_quads(b"<t:t> <t:t> " + text + b" .", RdfFormat.N_TRIPLES)
    return quad.object
