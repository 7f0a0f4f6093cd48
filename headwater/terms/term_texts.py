"""The texts of hashed terms, as one blob: what a chunk of columns carries so that ids can become terms again (CQ5).

Only terms that an answer or an expression may need have a text here; an inline id needs none. Texts are in N-Triples
syntax, in the order of their ids, and become terms one by one when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
from pyoxigraph import RdfFormat, parse

from headwater.terms.ids import term_text
from headwater.terms.model import BlankNode, Literal, NamedNode, Term

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TermTexts:
    """Ids in ascending order, and the text of each between two entries of `ends`."""

    ids: Ints
    ends: Ints
    blob: bytes

    @classmethod
    def of(cls, terms: Iterable[tuple[int, Term]]) -> TermTexts:
        """The texts of terms by their ids."""
        return cls.of_texts((number, term_text(term).encode()) for number, term in terms)

    @classmethod
    def of_texts(cls, texts: Iterable[tuple[int, bytes]]) -> TermTexts:
        ordered = sorted(dict(texts).items())
        ids = np.array([number for number, _ in ordered], dtype=np.int64)
        ends = np.zeros(len(ordered) + 1, dtype=np.int64)
        np.cumsum([len(text) for _, text in ordered], out=ends[1:])
        return cls(ids, ends, b"".join(text for _, text in ordered))

    def items(self) -> Iterator[tuple[int, bytes]]:
        ends = self.ends.tolist()
        blob = self.blob
        for place, number in enumerate(self.ids.tolist()):
            yield number, blob[ends[place] : ends[place + 1]]

    @property
    def nbytes(self) -> int:
        return len(self.blob) + self.ids.nbytes + self.ends.nbytes


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
                return Literal(written[1:end], datatype=NamedNode(after[3:-1]))
    (quad,) = parse(b"<t:t> <t:t> " + text + b" .", format=RdfFormat.N_TRIPLES)
    return cast(Term, quad.object)
