"""Who owns an id: two different terms are never one, although terms are compared by ids of 63 bits.

Everything that comes in by ids brings the checks of its texts along (`terms.ids.text_hash`). The first term that is
seen with an id owns it as long as a window can hold it; terms of static data and of queries own theirs for good.
Another term with that id is refused where it comes in: a statement of a stream goes to the dead letters, a query that
computes such a term is suspended (`HashCollision`). So inside the windows equal ids are equal terms, and nothing else
has to compare texts.

An owner takes 28 bytes. Owners that no window can hold any more are forgotten, now and then; whether one counts does
not depend on that, but on the time at which it was last seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from headwater.execution.program_steps import LeftOutElement, StepResult
from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.hash_collisions import HashCollision
from headwater.terms.ids.owner_table import (
    FOREVER,
    Checks,
    OwnerArrays,
    claim_rows,
    enter_ids,
    find_places,
    find_unknown,
)
from headwater.terms.ids.term_ids import decode_inline, encode_with_check
from headwater.terms.ids.term_texts import Ints, TermTexts, select_texts, term_of_text
from headwater.terms.model import Element, Term
from headwater.terms.scanning.byte_hashes import checks_of_blob, hash_texts
from headwater.windows.element_sequences import Elements

FindTexts = Callable[[Ints], Mapping[int, bytes]]
"""The texts of those of some ids that static data has."""

COLLISION_REASON = (
    "a term of this element has the same internal id as another term that is in use, which happens by chance; "
    "the statements with it are left out, because the two terms could not be told apart"
)

_FEWEST_BEFORE_SWEEP = 1 << 14
_MOST_KNOWN = 1 << 16
_MOST_LIKELY = 1 << 24
_LIKELY_SLOTS_PER_ID = 16
_SINCE_EVER = -(1 << 62)


class IdOwners:
    """The owner of each id that a program compares."""

    def __init__(self) -> None:
        self._table = OwnerArrays.empty()
        self._size = 0
        self._size_after_sweep = _FEWEST_BEFORE_SWEEP
        self._oldest = self._now = _SINCE_EVER
        self._known: dict[Term, int] = {}
        """Terms of elements that own their ids, and their places in the table, -1 for inline ids."""
        self._find_static: FindTexts | None = None
        self._likely = np.zeros(1, dtype=np.bool_)
        """At the low bits of an id: whether static data may have it."""

    def __len__(self) -> int:
        return self._size

    def watch_static_data(self, ids: Sequence[Ints], find_texts: FindTexts) -> None:
        """The static data has these hashed ids, and owns them; a `HashCollision` where another term does."""
        count = sum(one.shape[0] for one in ids)
        if _LIKELY_SLOTS_PER_ID * count > _MOST_LIKELY:
            self._likely = np.ones(1, dtype=np.bool_)
        else:
            self._likely = np.zeros(1 << (_LIKELY_SLOTS_PER_ID * count).bit_length(), dtype=np.bool_)
        self._find_static = find_texts
        for one in ids if count else ():
            self.add_static_ids(one)

    def add_static_ids(self, ids: Ints) -> None:
        """The static data has these ids, too, from now on."""
        hashed = ids[ids >= 0]
        self._likely[hashed & (self._likely.shape[0] - 1)] = True
        if self._size:
            places = np.empty(hashed.shape[0], dtype=np.int64)
            find_places(self._table, np.ascontiguousarray(hashed), places)
            if (places >= 0).any():
                self._own_static(hashed[places >= 0])

    def admit(self, stream: str, elements: Elements, step: StepResult) -> Elements:
        """Have the terms of elements own their ids; gives the elements without statements whose terms are refused."""
        if isinstance(elements, ElementColumns):
            is_refused = self._claim_columns(elements)
            if is_refused is not None:
                step.colliding.extend((stream, one) for one in _colliding_elements(elements, is_refused))
                elements = elements.select_triples(~is_refused)
            return self._with_owned_texts(elements)
        refused = self._claim_objects(elements)
        if not refused:
            return elements
        kept: list[Element] = []
        for element in elements:
            triples = tuple(one for one in element.triples if refused.isdisjoint(one))
            if len(triples) < len(element.triples):
                text = "\n".join(f"{triple} ." for triple in element.triples)
                step.colliding.append((stream, LeftOutElement(element.time, element.position, text)))
            kept.append(replace(element, triples=triples))
        return kept

    def _claim_columns(self, elements: ElementColumns) -> npt.NDArray[np.bool_] | None:
        """A mask of the triples that are refused, None where none is."""
        if elements.checks is None or not elements.triples.shape[0]:
            return None
        self._own_static_terms(elements.triples.reshape(-1))
        is_refused = self._claim(elements.triples, elements.checks, elements.starts, elements.times)
        return is_refused if is_refused.any() else None

    def _claim_objects(self, elements: Sequence[Element]) -> frozenset[Term]:
        """The terms that are refused."""
        known, newest, new = self._known, self._table.newest, dict[Term, int]()
        for element in elements:
            time = element.time
            for triple in element.triples:
                for term in triple:
                    place = known.get(term)
                    if place is None:
                        new[term] = time
                    elif place >= 0 and newest[place] < time:
                        newest[place] = time
        return self._claim_new_objects(new) if new else frozenset()

    def _claim_new_objects(self, new: Mapping[Term, int]) -> frozenset[Term]:
        """Have terms that were not seen before, or are forgotten, own their ids; gives those that are refused."""
        pairs = [encode_with_check(term) for term in new]
        ids = np.array([term_id for term_id, _ in pairs], dtype=np.int64)
        checks = np.array([check for _, check in pairs], dtype=np.uint32)
        self._own_static_terms(ids)
        is_refused = self._claim_each(ids, checks, np.fromiter(new.values(), np.int64, len(new)))
        if len(self._known) + len(new) > _MOST_KNOWN:
            self._known = {}
        refused = frozenset(term for term, one in zip(new, is_refused.tolist(), strict=True) if one)
        self._known.update(zip(new, self._places(ids).tolist(), strict=True))
        for term in refused:
            del self._known[term]
        return refused

    def claim_texts(self, texts: Sequence[bytes], *, forever: bool = False) -> Ints:
        """Have terms of a query own their ids, and give the ids; a `HashCollision` where another term owns one.

        Terms that are computed own them as long as what they were computed from.
        """
        ids, checks = hash_texts(texts)
        self._own_static_terms(ids)
        times = np.full(ids.shape[0], FOREVER if forever else self._now, dtype=np.int64)
        is_refused = self._claim_each(ids, checks, times)
        if is_refused.any():
            place = int(is_refused.argmax())
            raise HashCollision(int(ids[place]), None, term_of_text(texts[place]))
        return ids

    def _claim_each(self, ids: Ints, checks: Checks, times: Ints) -> npt.NDArray[np.bool_]:
        """Claim single ids; a mask of those that are refused."""
        return self._claim(ids.reshape(-1, 1), checks.reshape(-1, 1), np.arange(ids.shape[0] + 1), times)

    def _claim(self, ids: Ints, checks: Checks, starts: Ints, times: Ints) -> npt.NDArray[np.bool_]:
        is_refused = np.zeros(ids.shape[0], dtype=np.bool_)
        ids, checks = np.ascontiguousarray(ids), np.ascontiguousarray(checks)
        starts, times = np.ascontiguousarray(starts), np.ascontiguousarray(times)
        element, places = 0, np.empty(ids.shape[1], dtype=np.int64)
        while True:
            element, self._size, replaced = claim_rows(
                self._table, self._size, ids, checks, starts, times, element, self._oldest, is_refused, places
            )
            if replaced:
                self._known = {}
            if element == times.shape[0]:
                break
            more = int(starts[element + 1] - starts[element]) * ids.shape[1]
            self._make_room(max(2 * self._size, self._size + more))
        newest = int(times.max()) if times.shape[0] else FOREVER
        if self._now < newest < FOREVER:
            self._now = newest
        return is_refused

    def _make_room(self, capacity: int) -> None:
        before, size = self._table, self._size
        self._table = OwnerArrays.empty(capacity)
        enter_ids(self._table, before.ids[:size], before.checks[:size], before.newest[:size])

    def _places(self, ids: Ints) -> Ints:
        """The places of some ids in the table; -1 where they are not there."""
        places = np.empty(ids.shape[0], dtype=np.int64)
        find_places(self._table, np.ascontiguousarray(ids), places)
        return places

    def _own_static_terms(self, ids: Ints) -> None:
        """Have the static data own those of some ids that it has and nobody owns yet."""
        if self._find_static is None:
            return
        found = np.empty(ids.shape[0], dtype=np.int64)
        count = find_unknown(self._table, np.ascontiguousarray(ids), self._likely, found)
        if count:
            self._own_static(np.unique(found[:count]))

    def _own_static(self, ids: Ints) -> None:
        assert self._find_static is not None
        texts = self._find_static(ids)
        if texts:
            self.claim_static_texts(list(texts.values()))

    def claim_static_texts(self, texts: Sequence[bytes]) -> None:
        """Have terms of static data own their ids; a `HashCollision` where another term owns one."""
        ids, checks = hash_texts(texts)
        is_refused = self._claim_each(ids, checks, np.full(len(texts), FOREVER, dtype=np.int64))
        if is_refused.any():
            place = int(is_refused.argmax())
            raise HashCollision(int(ids[place]), None, term_of_text(texts[place]))

    def forget_before(self, oldest: int) -> None:
        """No window holds anything from before a time; owners that were last seen before it count no more."""
        self._oldest = max(self._oldest, oldest)
        if self._size <= 2 * self._size_after_sweep:
            return
        kept = np.flatnonzero(self._table.newest[: self._size] >= self._oldest)
        before, self._size, self._known = self._table, kept.shape[0], {}
        self._table = OwnerArrays.empty(self._size)
        enter_ids(self._table, before.ids[kept], before.checks[kept], before.newest[kept])
        self._size_after_sweep = max(_FEWEST_BEFORE_SWEEP, self._size)

    def _with_owned_texts(self, elements: ElementColumns) -> ElementColumns:
        """The elements with the texts of owners alone: there may be others, of late elements and of other shards."""
        if elements.checks is None or not elements.texts:
            return elements
        owned = tuple(self._owned_texts(one, elements.graphs) for one in elements.texts)
        is_same = all(one is other for one, other in zip(owned, elements.texts, strict=True))
        return elements if is_same else replace(elements, texts=owned)

    def _owned_texts(self, texts: TermTexts, graphs: Ints) -> TermTexts:
        """The texts of owners, and those of graph names, which nobody need own."""
        places = self._places(texts.ids)
        checks = checks_of_blob(texts.blob, texts.offsets)
        is_owned = (places >= 0) & (self._table.checks[places] == checks)
        return select_texts(texts, is_owned | ((places < 0) & np.isin(texts.ids, graphs)))


def _colliding_elements(elements: ElementColumns, is_refused: npt.NDArray[np.bool_]) -> Iterable[LeftOutElement]:
    """The elements that have refused triples, with their texts as far as those are here."""
    assert elements.checks is not None
    texts: dict[tuple[int, int], str] = {}
    for table in elements.texts if elements.is_whole else ():
        listed = [text for _, text in table.items()]
        ids, checks = hash_texts(listed)
        texts.update(zip(zip(ids.tolist(), checks.tolist(), strict=True), map(bytes.decode, listed), strict=True))
    places = np.unique(elements.starts.searchsorted(np.flatnonzero(is_refused), side="right") - 1)
    for place in places.tolist():
        text = None
        if elements.is_whole:
            low, high = elements.starts[place : place + 2].tolist()
            rows = zip(elements.triples[low:high].tolist(), elements.checks[low:high].tolist(), strict=True)
            text = "\n".join(" ".join(_text_of(pair, texts) for pair in zip(*row, strict=True)) + " ." for row in rows)
        yield LeftOutElement(int(elements.times[place]), tuple(elements.positions[place].tolist()), text)


def _text_of(pair: tuple[int, int], texts: Mapping[tuple[int, int], str]) -> str:
    term_id, _ = pair
    return texts[pair] if term_id >= 0 else str(decode_inline(term_id))
