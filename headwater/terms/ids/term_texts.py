"""From terms to the texts that columns carry, and back (CQ5).

Only terms that an answer or an expression may need have a text; an inline id needs none. Texts are in N-Triples syntax
and become terms one by one when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import cast

import numpy as np
import numpy.typing as npt
from pyoxigraph import RdfFormat, parse

from headwater.terms.ids.term_ids import term_text
from headwater.terms.model import BlankNode, Literal, NamedNode, Term

Ints = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.uint8]
"""A `Kind` for each of some ids."""


class Kind(IntEnum):
    """What a term is, as its text begins; triples have none of these names."""

    UNKNOWN = 0
    IRI = 1
    BLANK = 2
    LITERAL = 3
    TRIPLE = 4


def kinds_of_texts(texts: Iterable[bytes]) -> Kinds:
    """What terms are whose texts these are."""
    beginnings = np.frombuffer(b"".join([text[:2] for text in texts]), np.uint8).reshape(-1, 2)
    return kinds_of_beginnings(beginnings[:, 0], beginnings[:, 1])


def kinds_of_beginnings(first: npt.NDArray[np.uint8], second: npt.NDArray[np.uint8]) -> Kinds:
    """What terms are whose texts begin with these two letters."""
    is_pointed = first == ord("<")
    choices = [first == ord('"'), first == ord("_"), is_pointed & (second == ord("<")), is_pointed]
    found = np.select(choices, [Kind.LITERAL, Kind.BLANK, Kind.TRIPLE, Kind.IRI], Kind.UNKNOWN)
    return found.astype(np.uint8)


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
        for number, term_id in enumerate(self.ids.tolist()):
            yield term_id, text[bounds[number] : bounds[number + 1]]

    def kinds_of(self, ids: Ints) -> Kinds:
        """What some ids stand for, unknown where they are not here; the ids here must be in order."""
        found = np.full(ids.shape[0], Kind.UNKNOWN, dtype=np.uint8)
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


def parse_terms(texts: tuple[bytes, ...]) -> list[Term]:
    """The terms of N-Triples texts."""
    # A term stands in the place of an object, because there every kind of term may stand.
    document = b"".join(b"<t:t> <t:t> %s .\n" % text for text in texts)
    return [quad.object for quad in parse(document, format=RdfFormat.N_TRIPLES)]


def texts_of(terms: Iterable[tuple[int, Term]]) -> TermTexts:
    """The texts of terms by their ids."""
    return as_term_texts({number: term_text(term).encode() for number, term in terms})


def as_term_texts(texts: Mapping[int, bytes]) -> TermTexts:
    """Ids and their texts as columns."""
    return as_columns(np.array(list(texts), dtype=np.int64), list(texts.values()))


def as_columns(ids: Ints, texts: Sequence[bytes]) -> TermTexts:
    """The texts of some ids as columns."""
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return TermTexts(ids, offsets, np.frombuffer(b"".join(texts), dtype=np.uint8))


def picked_texts(texts: TermTexts, ids: Ints) -> TermTexts:
    """The texts of these ids alone."""
    wanted = np.isin(texts.ids, ids)
    if wanted.all():
        return texts
    places = np.flatnonzero(wanted)
    starts, lengths = texts.offsets[places], np.diff(texts.offsets)[places]
    kept = np.zeros(places.shape[0] + 1, dtype=np.int64)
    np.cumsum(lengths, out=kept[1:])
    # Where each byte of what is kept stands in the whole.
    bytes_ = np.arange(kept[-1]) + np.repeat(starts - kept[:-1], lengths)
    return TermTexts(texts.ids[places], kept, texts.blob[bytes_])


def different(ids: Ints) -> Ints:
    """Each id once, in order. Sorting is many times as fast here as the hashing of `numpy.unique`."""
    ordered = np.sort(ids, axis=None)
    is_first = np.ones(ordered.shape[0], dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def joined_texts(parts: Sequence[TermTexts]) -> TermTexts:
    """Several that have no id in common, as one: looking through many small ones takes longer."""
    ends = np.cumsum([part.blob.shape[0] for part in parts])
    offsets = [part.offsets[:-1] + end - part.blob.shape[0] for part, end in zip(parts, ends, strict=True)]
    return TermTexts(
        np.concatenate([part.ids for part in parts]),
        np.concatenate([*offsets, ends[-1:]]),
        np.concatenate([part.blob for part in parts]),
    )


@lru_cache(256)
def _datatype(iri: str) -> NamedNode:
    return NamedNode(iri)


def term_of_text(text: bytes) -> Term:
    """The term that is written so in N-Triples."""
    if b"\\" not in text:
        written = text.decode()
        if written[0] == "<" and written[1] != "<":
            return NamedNode(written[1:-1])
        if written[0] == "_":
            return BlankNode(written[2:])
        if written[0] == '"':
            end = written.rindex('"')
            after = written[end + 1 :]
            if not after:
                return Literal(written[1:end])
            if after.startswith("^^<"):
                return Literal(written[1:end], datatype=_datatype(after[3:-1]))
    (quad,) = parse(b"<t:t> <t:t> " + text + b" .", format=RdfFormat.N_TRIPLES)
    return cast(Term, quad.object)
