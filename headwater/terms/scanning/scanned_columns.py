"""What a scan gives: triples as columns of ids, the elements they belong to, and where their texts stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headwater.terms.ids.hash_collisions import HashCollision
from headwater.terms.ids.term_texts import TermTexts, parse_terms, texts_of_mapping
from headwater.terms.model import BadElement
from headwater.terms.scanning.padded_text import PaddedText
from headwater.terms.scanning.texts import collect_texts, copy_texts

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ScannedColumns:
    """The wanted triples of a text, row by row, and its elements.

    Element `i` has the rows `element_rows[i]` to before `element_rows[i + 1]`: none where no pattern wants any of its
    triples. Elements without wanted triples are there all the same, since their times count. In N-Triples and N-Quads,
    which have no times, an element is a run of lines with one graph name, at time 0.
    """

    triples: Ints
    """(n, 3): the ids of subject, predicate and object."""
    marks: npt.NDArray[np.uint8]
    """Whose texts are wanted: bit 0 the subject's, bit 1 the predicate's, bit 2 the object's; bit 3 is always set."""
    spans: npt.NDArray[np.int32]
    """(n, 3, 2): offset and length of each term's text; no rows where no text was asked for.

    An offset below zero is `~offset` in `rewritten`, which has the canonical texts of terms that are written otherwise.
    """
    checks: npt.NDArray[np.uint32]
    """(n, 3): the checks of the texts (`terms.ids.text_hash`), of no meaning where the id is inline; no rows where none
    were asked for."""
    element_times: Ints
    """Microseconds since 1970."""
    element_graphs: Ints
    """The id of the graph name; `NO_TERM` for the default graph."""
    element_graph_spans: npt.NDArray[np.int32]
    element_positions: Ints
    """The byte offset of each element's first line, `first_position` included."""
    element_sizes: Ints
    """How many triples each element has, wanted or not."""
    element_rows: Ints
    """One entry more than there are elements."""
    bad: tuple[BadElement, ...]
    """Lines that cannot be read, as the line-by-line reader reports them."""
    lines: int
    """How many lines the text has, up to where the reading stopped."""
    parsed_lines: int
    """How many of them were left to the parser."""
    is_open: bool
    """Whether lines behind the end of the text may belong to the last element (only where an `end` was given)."""
    has_graph_texts: bool
    text: PaddedText
    rewritten: PaddedText

    def __len__(self) -> int:
        return len(self.triples)

    @property
    def subjects(self) -> Ints:
        return self.triples[:, 0]

    @property
    def predicates(self) -> Ints:
        return self.triples[:, 1]

    @property
    def objects(self) -> Ints:
        return self.triples[:, 2]

    @property
    def elements(self) -> Ints:
        """The number of each row's element."""
        return np.repeat(np.arange(len(self.element_times)), np.diff(self.element_rows))

    @property
    def times(self) -> Ints:
        """The time of each row."""
        return np.repeat(self.element_times, np.diff(self.element_rows))

    @property
    def graphs(self) -> Ints:
        """The id of each row's graph name."""
        return np.repeat(self.element_graphs, np.diff(self.element_rows))

    def text_at(self, row: int, place: int) -> bytes:
        """The canonical text of one term (0 subject, 1 predicate, 2 object)."""
        start, length = self.spans[row, place].tolist()
        return self._text(start, length)

    def statement_texts(self, row: int) -> tuple[bytes, bytes, bytes, bytes]:
        """The canonical texts of the graph name, which is empty for the default graph, and of the triple of a row."""
        start, length = self.element_graph_spans[self.elements[row]].tolist()
        return self._text(start, length), self.text_at(row, 0), self.text_at(row, 1), self.text_at(row, 2)

    def _text(self, start: int, length: int) -> bytes:
        text, start = (self.text, start) if start >= 0 else (self.rewritten, ~start)
        return text.array[start : start + length].tobytes()

    def texts(self, rows: npt.NDArray[np.bool_] | Ints | None = None) -> TermTexts:
        """The texts of the marked terms of all rows, or of those that a mask or row numbers choose.

        Names of graphs are among them where they were asked for. Raises `HashCollision` for two terms with one id.
        """
        if not len(self.spans):
            return TermTexts(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.uint8))
        triples, spans, marks = self.triples, self.spans, self.marks
        named = np.arange(len(self.element_times) if self.has_graph_texts else 0)
        if rows is not None:
            if self.has_graph_texts:
                named = np.unique(self.elements[rows])
            triples, spans, marks = triples[rows], spans[rows], marks[rows]
        base, extra = self.text.address, self.rewritten.address
        names, name_spans = self.element_graphs[named], self.element_graph_spans[named]
        found, clash = collect_texts(base, extra, triples, spans, marks, names, name_spans)
        if clash.any():
            raise self._collision(*clash.tolist())
        ids, addresses, lengths = found.T.copy()
        offsets = np.zeros(ids.shape[0] + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        blob = PaddedText.empty(int(offsets[-1]))
        copy_texts(addresses, offsets, blob.address)
        return TermTexts(ids, offsets, blob.content)

    def text_tables(self) -> tuple[TermTexts, ...]:
        """The texts of the marked terms; of terms with one id, all but the first are in tables of their own."""
        try:
            texts = self.texts()
        except HashCollision:
            return self._tables_of_collisions()
        return (texts,) if len(texts) else ()

    def _tables_of_collisions(self) -> tuple[TermTexts, ...]:
        tables: list[dict[int, bytes]] = []
        for row, place in np.argwhere((self.marks[:, None] >> np.arange(3)) & 1).tolist():
            term_id, text = int(self.triples[row, place]), self.text_at(row, place)
            if term_id >= 0 and not any(one.get(term_id) == text for one in tables):
                table = next((one for one in tables if term_id not in one), None)
                if table is None:
                    tables.append(table := {})
                table[term_id] = text
        return tuple(map(texts_of_mapping, tables))

    def _collision(self, known: int, known_length: int, other: int, other_length: int, term_id: int) -> HashCollision:
        texts = (self._at(known, known_length), self._at(other, other_length))
        return HashCollision(term_id, *parse_terms(texts))

    def _at(self, address: int, length: int) -> bytes:
        start = address - self.text.address
        if not 0 <= start < self.text.length:
            start = ~(address - self.rewritten.address)
        return self._text(start, length)
