"""Terms and their ids inside one evaluator (CQ5, OA10).

Ids are those of `terms.ids.term_ids`: values that fit are inside the id, everything else is a hash whose term is kept
here, as the text that it came with (`text_table`) until somebody asks.
Terms of static data stay outside until somebody asks for them.
Nothing is counted on the way; instead `sweep` forgets every term that is no longer in use, and is worth calling when
the dictionary has grown to twice what was left after the last sweep, or by a share of what has to be looked through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

import numpy as np

from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.text_table import Marks, TextTable
from headwater.terms.ids.dictionary import HashCollision
from headwater.terms.ids.encoded_rows import EncodedRows
from headwater.terms.ids.term_ids import decode_inline, encode, is_inline, term_text
from headwater.terms.ids.term_texts import (
    Kind,
    Kinds,
    TermTexts,
    as_columns,
    as_term_texts,
    different,
    joined_texts,
    kinds_of_texts,
    term_of_text,
)
from headwater.terms.model import Row, Term
from headwater.terms.scanning.byte_hashes import text_hashes
from headwater.values.row_order import SEPARATOR

_REMEMBERED_VALUES = 1 << 16
"""How many terms of inline ids are kept at hand; they can be had again from their ids."""


_IDS_PER_TERM = 32
"""A term more is kept for so many ids in use: looking through these must pay in terms that are forgotten."""


class _Written(dict[int, tuple[str, Term | None]]):
    """Terms as they are written, each written when it is first asked for.

    `by_parts` says that rows of these texts are in the same order as the rows' texts: see `rows_in_order`.
    """

    def __init__(self, term_of: Callable[[int], Term | None]) -> None:
        super().__init__()
        self._term_of = term_of
        self.by_parts = True

    def __missing__(self, number: int) -> tuple[str, Term | None]:
        term = self._term_of(number)
        text = "" if term is None else str(term)
        if text and not text.isprintable() and min(text) <= SEPARATOR:
            self.by_parts = False
        made = self[number] = text, term
        return made


class Vocabulary:
    """Gives ids to terms and terms to ids."""

    def __init__(
        self,
        outside: Callable[[int], bytes | None] = lambda _: None,
        kinds_outside: Callable[[Ints], Kinds] | None = None,
    ) -> None:
        self._outside = outside
        self._kinds_outside = kinds_outside
        self._ids: dict[Term, int] = {}
        self._terms: dict[int, Term] = {}
        self._texts = TextTable()
        """Terms as they came."""
        self._values: dict[int, Term] = {}
        self._value_ids: dict[Term, int] = {}
        self._written = _Written(self.term_of)
        self._kept: frozenset[int] = frozenset()
        self._after_sweep = 1024

    def id_of(self, term: Term | None) -> int:
        """The id of a term; `UNBOUND` for none."""
        if term is None:
            return UNBOUND
        known = self._ids.get(term)
        if known is None:
            known = self._value_ids.get(term)
        if known is not None:
            return known
        number = encode(term)
        if is_inline(number):
            if len(self._value_ids) >= _REMEMBERED_VALUES:
                self._value_ids.clear()
            self._value_ids[term] = number
            return number
        other = self.term_of(number) if number in self._texts else self._terms.setdefault(number, term)
        if other != term:
            raise HashCollision(number, cast(Term, other), term)
        self._ids[term] = number
        return number

    def term_of(self, number: int) -> Term | None:
        """The term of an id; None for `UNBOUND`."""
        known = self._terms.get(number)
        if known is None:
            known = self._values.get(number)
        if known is None:
            text = None
            if number >= 0:
                text = self._texts.get(number)
                if text is None:
                    text = self._outside(number)
            if text is not None:
                known = self._terms[number] = term_of_text(text)
            elif number != UNBOUND:
                if len(self._values) >= _REMEMBERED_VALUES:
                    self._values.clear()
                known = self._values[number] = decode_inline(number)
        return known

    def make_terms(self, ids: Ints) -> None:
        """Make the terms of some different ids at once, as far as their texts are here: they will be asked for."""
        hashed = ids[ids >= 0]
        if self._terms:
            unknown = [number for number in hashed.tolist() if number not in self._terms]
            hashed = np.array(unknown, dtype=np.int64)
        places = self._texts.places(hashed)
        for number, text in self._texts.at(places[places >= 0]).items():
            self._terms[number] = term_of_text(text)

    def text_of(self, number: int) -> bytes:
        """How the term of a hashed id is written in N-Triples."""
        text = self._texts.get(number)
        if text is None and number not in self._terms:
            text = self._outside(number)
        return term_text(self._terms[number]).encode() if text is None else text

    def encoded(self, ids: Ints) -> EncodedRows:
        """Rows of ids with what it takes to have the terms again."""
        hashed = different(ids[ids >= 0])
        places = self._texts.places(hashed)
        is_here = places >= 0
        texts = self._texts.at(places[is_here])
        if not is_here.all():
            others = as_term_texts({number: self.text_of(number) for number in hashed[~is_here].tolist()})
            texts = joined_texts([texts, others])
        return EncodedRows(ids, texts)

    def kinds_of(self, ids: Ints) -> Kinds:
        """What hashed ids stand for."""
        found = np.zeros(ids.shape[0], np.uint8) if self._kinds_outside is None else self._kinds_outside(ids)
        unknown = np.flatnonzero(found == Kind.UNKNOWN)
        places = self._texts.places(ids[unknown])
        is_here = places >= 0
        found[unknown[is_here]] = self._texts.kinds_at(places[is_here])
        unknown = unknown[~is_here]
        if unknown.shape[0]:
            found[unknown] = kinds_of_texts(map(self.text_of, ids[unknown].tolist()))
        return found

    @property
    def written(self) -> _Written:
        """For each id the text by which rows are ordered (as it is written, nothing for `UNBOUND`) and the term."""
        if len(self._written) >= _REMEMBERED_VALUES:
            self._written = _Written(self.term_of)
        return self._written

    def learn(self, texts: Iterable[TermTexts]) -> None:
        """Take in the terms of ids that came without them."""
        for part in texts:
            self._texts.add(part)

    def ids_of_texts(self, texts: Sequence[bytes]) -> Ints:
        """The ids of terms that do not fit into their ids, and that come as they are written."""
        hashes = text_hashes(texts)
        self._texts.add(as_columns(hashes, texts))
        return hashes

    def rows_of(self, rows: Iterable[Row], width: int) -> Ints:
        """Rows of terms as rows of ids."""
        listed = [[self.id_of(term) for term in row] for row in rows]
        return np.array(listed, dtype=np.int64).reshape(len(listed), width)

    def terms_of(self, rows: Ints) -> list[Row]:
        """Rows of ids as rows of terms."""
        term_of = self.term_of
        return [tuple([term_of(number) for number in row]) for row in rows.tolist()]

    @property
    def size(self) -> int:
        return len(self._terms) + len(self._texts)

    @property
    def wants_sweep(self) -> bool:
        return self.size > 2 * self._after_sweep

    def keep(self) -> None:
        """Never forget what is known now: the terms of a query and of its static data."""
        self._kept = frozenset(self._terms)

    def sweep(self, used: Iterable[Ints]) -> None:
        """Forget every term whose id is in none of these arrays, and that is not kept."""
        if not self.size:
            return
        loose = [number for number in self._terms if number not in self._kept]
        marks = [self._texts.marks(), Marks(np.array(loose, dtype=np.int64))]
        looked_at = 0
        for array in used:
            looked_at += array.size
            ids = np.ascontiguousarray(array).reshape(-1)
            for one in marks:
                one.see(ids)
        self._texts.keep(marks[0])
        gone = {number for number, is_used in zip(loose, marks[1].seen.tolist(), strict=True) if not is_used}
        if gone:
            self._terms = {number: term for number, term in self._terms.items() if number not in gone}
            self._ids = {term: number for term, number in self._ids.items() if number not in gone}
        self._written = _Written(self.term_of)
        self._after_sweep = max(1024, self.size, looked_at // _IDS_PER_TERM)
