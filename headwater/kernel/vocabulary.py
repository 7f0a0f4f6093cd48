"""Terms and their ids inside one evaluator (CQ5, OA10).

Ids are those of `headwater.terms.ids`: values that fit are inside the id, everything else is a hash whose term is kept
here. Nothing is counted on the way; instead `sweep` forgets every term that is no longer in use, and is worth calling
when the dictionary has grown to twice what was left after the last sweep.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from headwater.kernel.delta import UNBOUND
from headwater.kernel.index import Ints
from headwater.terms.dictionary import HashCollision
from headwater.terms.ids import decode_inline, encode, is_inline
from headwater.terms.model import Row, Term
from headwater.terms.term_texts import TermTexts, term_of_text


class Vocabulary:
    """Gives ids to terms and terms to ids."""

    def __init__(self) -> None:
        self._ids: dict[Term, int] = {}
        self._terms: dict[int, Term] = {}
        self._texts: dict[int, bytes] = {}
        """Terms that nobody has asked for yet, as they came."""
        self._after_sweep = 1024

    def id_of(self, term: Term | None) -> int:
        """The id of a term; `UNBOUND` for none."""
        if term is None:
            return UNBOUND
        known = self._ids.get(term)
        if known is not None:
            return known
        number = encode(term)
        if not is_inline(number):
            other = self._terms.setdefault(number, term)
            if other != term:
                raise HashCollision(number, other, term)
        self._ids[term] = number
        return number

    def term_of(self, number: int) -> Term | None:
        """The term of an id; None for `UNBOUND`."""
        if number == UNBOUND:
            return None
        known = self._terms.get(number)
        if known is None:
            text = self._texts.pop(number, None)
            known = self._terms[number] = decode_inline(number) if text is None else term_of_text(text)
        return known

    def learn(self, texts: Iterable[TermTexts]) -> None:
        """Take in the terms of ids that came without them."""
        known = self._texts
        for part in texts:
            for number, text in part.items():
                if known.setdefault(number, text) != text:
                    raise HashCollision(number, term_of_text(known[number]), term_of_text(text))

    def rows_of(self, rows: Iterable[Row], width: int) -> Ints:
        """Rows of terms as rows of ids."""
        listed = [[self.id_of(term) for term in row] for row in rows]
        return np.array(listed, dtype=np.int64).reshape(len(listed), width)

    def terms_of(self, rows: Ints) -> list[Row]:
        """Rows of ids as rows of terms."""
        term_of = self.term_of
        return [tuple(term_of(number) for number in row) for row in rows.tolist()]

    @property
    def size(self) -> int:
        return len(self._terms) + len(self._texts)

    @property
    def wants_sweep(self) -> bool:
        return len(self._ids) + len(self._terms) + len(self._texts) > 4 * self._after_sweep

    def sweep(self, used: Iterable[Ints]) -> None:
        """Forget every term whose id is in none of these arrays."""
        alive: set[int] = set()
        for array in used:
            alive.update(np.unique(array).tolist())
        self._terms = {number: term for number, term in self._terms.items() if number in alive}
        self._ids = {term: number for term, number in self._ids.items() if number in alive}
        self._texts = {number: text for number, text in self._texts.items() if number in alive}
        self._after_sweep = max(1024, self.size)
