"""Terms and their ids inside one evaluator (CQ5, OA10).

Ids are those of `terms.ids.term_ids`: a value that fits is in the id itself, every other term has a hash as its id. The
vocabulary keeps the terms of hashed ids: the texts that streams bring (`text_table`), and the terms decoded from them.
Terms of static data are looked up outside, on demand.
There are no reference counts. Instead, `sweep` forgets every term that is not in use. It is worth while when the
vocabulary is twice as large as after the last sweep, or has grown by a share of the ids that a sweep reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

import numpy as np

from headwater.execution.id_owners import IdOwners
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.text_table import TextTable, UsedIds
from headwater.terms.ids.distinct_ids import DistinctIds
from headwater.terms.ids.encoded_rows import EncodedRows
from headwater.terms.ids.hash_collisions import HashCollision
from headwater.terms.ids.term_ids import decode_inline, encode, is_inline, term_text
from headwater.terms.ids.term_key import ALL_HASH_BITS
from headwater.terms.ids.term_texts import (
    TermKind,
    TermKinds,
    TermTexts,
    concat_texts,
    kinds_of_texts,
    term_of_text,
    texts_of_ids,
    texts_of_mapping,
)
from headwater.terms.model import Row, Term
from headwater.terms.scanning.byte_hashes import hash_texts
from headwater.values.ordered_rows import SortTexts

_CACHE_SIZE = 1 << 16
"""How many terms of inline ids are cached; their ids give them again."""

_IDS_PER_TERM = 32
"""For so many ids in use, one more unused term is tolerated: a sweep that reads them all must be worth it."""


class Vocabulary:
    """Maps terms to ids and ids to terms. `find_text` and `find_kinds` look up ids of static data.

    With `gives_other_ids`, a term whose id another one has gets the next id: where all ids are made here, and none of
    them goes anywhere else.
    """

    def __init__(
        self,
        find_text: Callable[[int], bytes | None] = lambda _: None,
        find_kinds: Callable[[Ints], TermKinds] | None = None,
        *,
        gives_other_ids: bool = False,
    ) -> None:
        self._gives_other_ids = gives_other_ids
        self._find_text = find_text
        self._find_kinds = find_kinds
        self._ids: dict[Term, int] = {}
        self._terms: dict[int, Term] = {}
        self._texts = TextTable()
        """Terms that are not decoded."""
        self._inline_terms: dict[int, Term] = {}
        self._inline_ids: dict[Term, int] = {}
        self._sort_texts = SortTexts(self.term_of, self.decode_terms)
        self._owners: IdOwners | None = None
        self._pinned: frozenset[int] = frozenset()
        self._size_after_sweep = 1024

    def own_ids(self, owners: IdOwners) -> None:
        """Have the terms that are known now own their ids, and those that come later."""
        self._owners = owners
        owners.claim_texts([term_text(term).encode() for term in self._terms.values()], forever=True)

    def id_of(self, term: Term | None) -> int:
        """The id of a term, which owns it from now on; `UNBOUND` for none."""
        if term is None:
            return UNBOUND
        known_id = self._ids.get(term)
        if known_id is None:
            known_id = self._inline_ids.get(term)
        if known_id is not None:
            return known_id
        if self._owners is not None and not is_inline(encode(term)):
            self._owners.claim_texts([term_text(term).encode()])
        return self.id_of_owner(term)

    def id_of_owner(self, term: Term) -> int:
        """The id of a term that owns it: one of an element."""
        known_id = self._ids.get(term)
        if known_id is None:
            known_id = self._inline_ids.get(term)
        if known_id is not None:
            return known_id
        term_id = encode(term)
        if is_inline(term_id):
            if len(self._inline_ids) >= _CACHE_SIZE:
                self._inline_ids.clear()
            self._inline_ids[term] = term_id
            return term_id
        while (first := self._first_with(term_id, term)) != term:
            if not self._gives_other_ids:
                raise HashCollision(term_id, first, term)
            term_id = term_id + 1 & ALL_HASH_BITS
        self._ids[term] = term_id
        return term_id

    def _first_with(self, term_id: int, term: Term) -> Term:
        """The term that has a hashed id, or has it from now on."""
        return cast(Term, self.term_of(term_id)) if term_id in self._texts else self._terms.setdefault(term_id, term)

    def term_of(self, term_id: int) -> Term | None:
        """The term of an id; None for `UNBOUND`."""
        term = self._terms.get(term_id)
        if term is None:
            term = self._inline_terms.get(term_id)
        if term is None:
            text = None
            if term_id >= 0:
                text = self._texts.get(term_id)
                if text is None:
                    text = self._find_text(term_id)
            if text is not None:
                term = self._terms[term_id] = term_of_text(text)
            elif term_id != UNBOUND:
                if len(self._inline_terms) >= _CACHE_SIZE:
                    self._inline_terms.clear()
                term = self._inline_terms[term_id] = decode_inline(term_id)
        return term

    def decode_terms(self, ids: Ints) -> None:
        """Decode the terms of some different ids together, as far as their texts are here."""
        hashed = ids[ids >= 0]
        if self._terms:
            unknown = [term_id for term_id in hashed.tolist() if term_id not in self._terms]
            hashed = np.array(unknown, dtype=np.int64)
        places = self._texts.places(hashed)
        for term_id, text in self._texts.texts_at(places[places >= 0]).items():
            self._terms[term_id] = term_of_text(text)

    def text_of(self, term_id: int) -> bytes:
        """The N-Triples text of a hashed id."""
        text = self._texts.get(term_id)
        if text is None and term_id not in self._terms:
            text = self._find_text(term_id)
        return term_text(self._terms[term_id]).encode() if text is None else text

    def encode_rows(self, ids: Ints) -> EncodedRows:
        """Rows of ids with the texts of their hashed ids, so that others can decode them."""
        hashed = DistinctIds(ids, only_hashes=True).ids
        places = self._texts.places(hashed)
        is_here = places >= 0
        texts = self._texts.texts_at(places[is_here])
        if not is_here.all():
            others = texts_of_mapping({term_id: self.text_of(term_id) for term_id in hashed[~is_here].tolist()})
            texts = concat_texts([texts, others])
        return EncodedRows(ids, texts)

    def kinds_of(self, ids: Ints) -> TermKinds:
        """The kind of term of each hashed id."""
        kinds = np.zeros(ids.shape[0], np.uint8) if self._find_kinds is None else self._find_kinds(ids)
        unknown = np.flatnonzero(kinds == TermKind.UNKNOWN)
        places = self._texts.places(ids[unknown])
        is_here = places >= 0
        kinds[unknown[is_here]] = self._texts.kinds_at(places[is_here])
        unknown = unknown[~is_here]
        if unknown.shape[0]:
            kinds[unknown] = kinds_of_texts(map(self.text_of, ids[unknown].tolist()))
        return kinds

    @property
    def sort_texts(self) -> SortTexts:
        """For each id the text by which rows are sorted, and the term."""
        if len(self._sort_texts) >= _CACHE_SIZE:
            self._sort_texts = SortTexts(self.term_of, self.decode_terms)
        return self._sort_texts

    def add_texts(self, texts: Iterable[TermTexts]) -> None:
        """Add the texts of ids that came with a stream."""
        for table in texts:
            self._texts.add(table)

    def ids_of_texts(self, texts: Sequence[bytes]) -> Ints:
        """The hashed ids of terms that are given as texts."""
        hashes = hash_texts(texts)[0] if self._owners is None else self._owners.claim_texts(texts)
        self._texts.add(texts_of_ids(hashes, texts))
        return hashes

    def ids_of_rows(self, rows: Iterable[Row], width: int) -> Ints:
        """Rows of terms as rows of ids."""
        listed = [[self.id_of(term) for term in row] for row in rows]
        return np.array(listed, dtype=np.int64).reshape(len(listed), width)

    def ids_of_remote_rows(self, rows: Iterable[Row], width: int) -> tuple[Ints, list[HashCollision]]:
        """The same for rows from elsewhere, whose terms own their ids for good; those that collide are left out."""
        listed: list[list[int]] = []
        collisions: list[HashCollision] = []
        for row in rows:
            try:
                listed.append([self.id_of(term) for term in row])
            except HashCollision as collision:
                collisions.append(collision)
        ids = np.array(listed, dtype=np.int64).reshape(len(listed), width)
        if self._owners is not None:
            self._owners.claim_texts(list(map(self.text_of, ids[ids >= 0].tolist())), forever=True)
        return ids, collisions

    def terms_of_rows(self, rows: Ints) -> list[Row]:
        """Rows of ids as rows of terms."""
        term_of = self.term_of
        return [tuple([term_of(term_id) for term_id in row]) for row in rows.tolist()]

    @property
    def size(self) -> int:
        return len(self._terms) + len(self._texts)

    @property
    def needs_sweep(self) -> bool:
        return self.size > 2 * self._size_after_sweep

    def pin_terms(self) -> None:
        """Never forget the terms that are known now: those of a query and of its static data."""
        if self._owners is not None:
            new = self._terms.keys() - self._pinned
            self._owners.claim_texts([term_text(self._terms[one]).encode() for one in new], forever=True)
        self._pinned = frozenset(self._terms)

    def sweep(self, used: Iterable[Ints]) -> None:
        """Forget every term whose id is in none of these arrays, and that is not pinned."""
        if not self.size:
            return
        unpinned = [term_id for term_id in self._terms if term_id not in self._pinned]
        marks = [self._texts.start_marking(), UsedIds(np.array(unpinned, dtype=np.int64))]
        read_ids = 0
        for array in used:
            read_ids += array.size
            ids = np.ascontiguousarray(array).reshape(-1)
            for mark in marks:
                mark.mark(ids)
        self._texts.keep_used(marks[0])
        unused = {term_id for term_id, is_used in zip(unpinned, marks[1].is_used.tolist(), strict=True) if not is_used}
        if unused:
            self._terms = {term_id: term for term_id, term in self._terms.items() if term_id not in unused}
            self._ids = {term: term_id for term, term_id in self._ids.items() if term_id not in unused}
        self._sort_texts = SortTexts(self.term_of, self.decode_terms)
        self._size_after_sweep = max(1024, self.size, read_ids // _IDS_PER_TERM)
