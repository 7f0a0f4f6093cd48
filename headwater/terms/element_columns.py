"""Elements as columns of ids: what a scanner reads, what travels between processes, what the kernel takes in.

    times      when each element is
    starts     where each element's triples begin, and one more entry for the end of the last
    triples    subject, predicate and object of each triple, as ids
    positions  where each element stood in its source (`Element.position`), a row of numbers each
    texts      the terms of hashed ids, as far as somebody may ask for them

A source may leave out triples that no query asks for; the elements stay, with fewer triples or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain

import numpy as np
import numpy.typing as npt

from headwater.terms.ids.term_ids import decode_inline, encode, is_inline
from headwater.terms.ids.term_texts import (
    Ints,
    TermTexts,
    different,
    joined_texts,
    picked_texts,
    term_of_text,
    texts_of,
)
from headwater.terms.model import Element, Term, Triple


@dataclass(frozen=True, slots=True)
class ElementColumns:
    """Elements of one stream in the order of their arrival."""

    times: Ints
    starts: Ints
    triples: Ints
    positions: Ints
    texts: tuple[TermTexts, ...] = ()
    is_whole: bool = True
    """Whether no triple was left out, and every hashed term has its text."""

    def __len__(self) -> int:
        return int(self.times.shape[0])

    @classmethod
    def of(cls, elements: Sequence[Element], encoded: Callable[[Term], int] = encode) -> ElementColumns:
        """The columns of elements, with the text of every hashed term; `encoded` may remember ids."""
        ids = list(chain.from_iterable(_ids(element, encoded) for element in elements))
        triples = np.array(ids, dtype=np.int64).reshape(-1, 3)
        terms = {t for element in elements for triple in element.triples for t in triple}
        hashed = ((encoded(term), term) for term in terms)
        texts = texts_of(pair for pair in hashed if not is_inline(pair[0]))
        return cls.without_texts(elements, triples, (texts,) if len(texts) else ())

    @classmethod
    def without_texts(
        cls, elements: Sequence[Element], triples: Ints, texts: tuple[TermTexts, ...] = ()
    ) -> ElementColumns:
        """The columns of elements whose ids are known, and whose terms whoever asks knows."""
        if len(elements) == 1:
            (one,) = elements
            starts = np.array((0, len(one.triples)), dtype=np.int64)
            positions = np.array((one.position,), dtype=np.int64)
            return cls(np.array((one.time,), dtype=np.int64), starts, triples, positions, texts)
        times = np.array([element.time for element in elements], dtype=np.int64)
        sizes = [len(element.triples) for element in elements]
        starts = np.array([*accumulate(sizes, initial=0)], dtype=np.int64)
        given = [element.position for element in elements]
        width = max(map(len, given), default=0)
        if len(given) > 1:
            given = [position + (0,) * (width - len(position)) for position in given]
        positions = np.array(given, dtype=np.int64).reshape(len(given), width)
        return cls(times, starts, triples, positions, texts)

    def elements(self) -> list[Element]:
        """The elements as objects. Every term must have its text."""
        known = {number: term_of_text(text) for texts in self.texts for number, text in texts.items()}
        starts, times, positions = self.starts.tolist(), self.times.tolist(), self.positions.tolist()
        ids = self.triples.tolist()

        def term(number: int) -> Term:
            found = known.get(number)
            if found is None:
                found = known[number] = decode_inline(number)
            return found

        made = [Triple(term(s), term(p), term(o)) for s, p, o in ids]  # type: ignore[arg-type]
        return [
            Element(times[i], tuple(made[starts[i] : starts[i + 1]]), position=tuple(positions[i]))
            for i in range(len(times))
        ]

    def picked(self, places: Ints | npt.NDArray[np.bool_]) -> ElementColumns:
        """Some of the elements, by number or by mask."""
        numbers = np.flatnonzero(places) if places.dtype == np.bool_ else places
        if numbers.shape[0] == len(self) and (places.dtype == np.bool_ or bool((np.diff(numbers) == 1).all())):
            return self
        counts = (self.starts[1:] - self.starts[:-1])[numbers]
        starts = np.zeros(numbers.shape[0] + 1, dtype=np.int64)
        np.cumsum(counts, out=starts[1:])
        within = np.arange(int(starts[-1])) - np.repeat(starts[:-1], counts)
        rows = np.repeat(self.starts[numbers], counts) + within
        return replace(
            self,
            times=self.times[numbers],
            starts=starts,
            triples=self.triples[rows],
            positions=self.positions[numbers],
        )

    def slice(self, low: int, high: int) -> ElementColumns:
        """Neighbouring elements; they share memory with these."""
        if low == 0 and high == len(self):
            return self
        begin, end = self.starts[low], self.starts[high]
        return replace(
            self,
            times=self.times[low:high],
            starts=self.starts[low : high + 1] - begin,
            triples=self.triples[begin:end],
            positions=self.positions[low:high],
        )

    def in_time_order(self) -> ElementColumns:
        """The same elements by time, those of one instant as they came."""
        if len(self) < 2 or bool((self.times[1:] >= self.times[:-1]).all()):
            return self
        return self.picked(np.argsort(self.times, kind="stable"))

    def triple_by_triple(self) -> ElementColumns:
        """Each triple as an element of its own."""
        counts = self.starts[1:] - self.starts[:-1]
        if bool((counts == 1).all()):
            return self
        return replace(
            self,
            times=np.repeat(self.times, counts),
            starts=np.arange(self.triples.shape[0] + 1),
            positions=np.repeat(self.positions, counts, axis=0),
        )

    def with_own_texts(self) -> ElementColumns:
        """Without the texts of terms that these elements do not have, and each text once."""
        ids = different(self.triples)
        own: list[TermTexts] = []
        for texts in self.texts:
            found = picked_texts(texts, ids)
            if len(found):
                own.append(found)
                ids = np.setdiff1d(ids, found.ids, assume_unique=True)
        return replace(self, texts=(joined_texts(own),) if own else ())

    def with_positions(self, positions: Ints) -> ElementColumns:
        return replace(self, positions=positions)

    @property
    def nbytes(self) -> int:
        arrays = (self.times, self.starts, self.triples, self.positions)
        return sum(array.nbytes for array in arrays) + sum(
            t.ids.nbytes + t.offsets.nbytes + t.blob.nbytes for t in self.texts
        )


def joined(parts: Iterable[ElementColumns]) -> ElementColumns:
    """The elements of several, one behind the other."""
    full = [part for part in parts if len(part)]
    if len(full) == 1:
        return full[0]
    if not full:
        return NO_ELEMENTS
    ends = np.cumsum([part.triples.shape[0] for part in full])
    starts = [part.starts[:-1] + end - part.triples.shape[0] for part, end in zip(full, ends, strict=True)]
    width = max(part.positions.shape[1] for part in full)
    texts = {id(one): one for part in full for one in part.texts}
    return ElementColumns(
        np.concatenate([part.times for part in full]),
        np.concatenate([*starts, ends[-1:]]),
        np.concatenate([part.triples for part in full]),
        np.concatenate([_widened(part.positions, width) for part in full]),
        tuple(texts.values()),
        all(part.is_whole for part in full),
    )


def _widened(positions: Ints, width: int) -> Ints:
    if positions.shape[1] == width:
        return positions
    wide = np.zeros((positions.shape[0], width), dtype=np.int64)
    wide[:, : positions.shape[1]] = positions
    return wide


def _ids(element: Element, encoded: Callable[[Term], int]) -> Iterable[int]:
    for triple in element.triples:
        yield encoded(triple.subject)
        yield encoded(triple.predicate)
        yield encoded(triple.object)


NO_ELEMENTS = ElementColumns(
    np.zeros(0, dtype=np.int64),
    np.zeros(1, dtype=np.int64),
    np.zeros((0, 3), dtype=np.int64),
    np.zeros((0, 0), dtype=np.int64),
)
