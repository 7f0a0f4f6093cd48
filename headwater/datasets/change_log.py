"""Changes of a data set: a log on disk with one line for each version, and what they add up to in memory.

    {"version": 8, "added": "<s> <p> <o> .\\n", "removed": ""}

A line is written in one piece and counts when it has its line feed, so a change is there or it is not, whatever
happens to the process that makes it. Readers in other processes read on from where they were.

`Overlay` says what is different from the columns underneath: a few statements more, a few less.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pyoxigraph import DefaultGraph, RdfFormat, parse, serialize

from headwater.datasets.folder import Manifest
from headwater.datasets.loading.parts import Part
from headwater.datasets.mapped_files import Ints
from headwater.datasets.statement_columns import Columns, Pairs, Place
from headwater.datasets.stored_terms import StoredTerms
from headwater.terms.ids.inline_layout import NO_TERM, is_inline
from headwater.terms.ids.term_ids import encode, term_text
from headwater.terms.ids.term_texts import Kind, Kinds, kinds_of_texts, term_of_text
from headwater.terms.model import NamedNode, Quad, Term

IdQuad = tuple[int, int, int, int]
"""Graph, subject, predicate, object."""
Tell = Callable[[IdQuad, int], None]
"""Hears of a statement that comes (1) or goes (-1)."""


def tell_nobody(quad: IdQuad, sign: int) -> None:
    """Nobody wants to hear."""


@dataclass(frozen=True)
class Change:
    """What one version adds and removes."""

    version: int
    added: tuple[Quad, ...] = ()
    removed: tuple[Quad, ...] = ()

    def to_line(self) -> bytes:
        written = {"version": self.version, "added": _text(self.added), "removed": _text(self.removed)}
        return json.dumps(written, ensure_ascii=False).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Change:
        found = json.loads(line)
        return cls(found["version"], _quads(found["added"]), _quads(found["removed"]))


def _text(quads: Iterable[Quad]) -> str:
    found = serialize(quads, format=RdfFormat.N_QUADS)
    return "" if found is None else found.decode()


def _quads(text: str) -> tuple[Quad, ...]:
    return tuple(parse(text, format=RdfFormat.N_QUADS)) if text else ()


class ChangeLog:
    """The log of a data set, read from where one was."""

    def __init__(self, path: Path) -> None:
        self._name = str(path)
        self._read = 0

    def news(self) -> Iterator[Change]:
        """The changes that came since the last call."""
        try:
            if os.stat(self._name).st_size == self._read:
                return
        except FileNotFoundError:
            return
        with open(self._name, "rb") as stream:
            stream.seek(self._read)
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                yield Change.from_line(line)

    @property
    def size(self) -> int:
        """How many bytes were read."""
        return self._read

    def append(self, change: Change) -> None:
        """Write a change, which counts from then on; whoever writes has the lock and has read all news."""
        line = change.to_line()
        with open(self._name, "ab") as stream:
            if stream.tell() != self._read:
                # Somebody died in the middle of a line.
                stream.truncate(self._read)
            stream.write(line)
        self._read += len(line)


@dataclass
class Altered:
    """What is different in one group: pairs of subject and object."""

    added: set[tuple[int, int]] = field(default_factory=set)
    removed: set[tuple[int, int]] = field(default_factory=set)
    objects: dict[int, set[int]] = field(default_factory=dict)
    """The objects of each subject that has some more."""
    subjects: dict[int, set[int]] = field(default_factory=dict)

    def add(self, s: int, o: int) -> None:
        self.added.add((s, o))
        self.objects.setdefault(s, set()).add(o)
        self.subjects.setdefault(o, set()).add(s)

    def discard(self, s: int, o: int) -> None:
        self.added.discard((s, o))
        self.objects[s].discard(o)
        self.subjects[o].discard(s)


class Overlay:
    """Statements over columns that nobody changes."""

    def __init__(self, base: Columns) -> None:
        self.base = base
        self.groups: dict[Place, Altered] = {}
        self.texts: dict[int, bytes] = {}
        self.size = base.size

    def apply(self, change: Change, tell: Tell) -> None:
        """Take a change in; `tell` hears of each statement that really goes, before it does, or came, after it did."""
        for quad in map(self._ids, change.removed):
            if self._has(quad):
                tell(quad, -1)
                self._remove(quad)
        for quad in map(self._ids, change.added):
            if not self._has(quad):
                self._add(quad)
                tell(quad, 1)

    def _has(self, quad: IdQuad) -> bool:
        graph, s, p, o = quad
        return self.contains((graph, p), s, o)

    def _ids(self, quad: Quad) -> IdQuad:
        graph = NO_TERM if isinstance(quad.graph_name, DefaultGraph) else self.id_of(quad.graph_name)
        return graph, self.id_of(quad.subject), self.id_of(quad.predicate), self.id_of(quad.object)

    def id_of(self, term: Term) -> int:
        """The id of a term, whose text is known from then on."""
        number = encode(term)
        if not is_inline(number) and number not in self.texts:
            self.texts[number] = term_text(term).encode()
        return number

    def _add(self, quad: IdQuad) -> None:
        graph, s, p, o = quad
        altered = self.groups.setdefault((graph, p), Altered())
        if (s, o) in altered.removed:
            altered.removed.discard((s, o))
        else:
            altered.add(s, o)
        self.size += 1

    def _remove(self, quad: IdQuad) -> None:
        graph, s, p, o = quad
        altered = self.groups.setdefault((graph, p), Altered())
        if (s, o) in altered.added:
            altered.discard(s, o)
        else:
            altered.removed.add((s, o))
        self.size -= 1

    def contains(self, place: Place, s: int, o: int) -> bool:
        return o in self.objects(place, s)

    def objects(self, place: Place, s: int) -> list[int]:
        """The objects of a subject."""
        altered = self.groups.get(place)
        found = _of_key(self.base.pairs(place), s)
        if altered is None:
            return found
        kept = [o for o in found if (s, o) not in altered.removed] if altered.removed else found
        return [*kept, *altered.objects.get(s, ())]

    def subjects(self, place: Place, o: int) -> list[int]:
        """The subjects of an object."""
        altered = self.groups.get(place)
        found = _of_key(self.base.reversed_pairs(place), o)
        if altered is None:
            return found
        kept = [s for s in found if (s, o) not in altered.removed] if altered.removed else found
        return [*kept, *altered.subjects.get(o, ())]

    def pairs(self, place: Place) -> Pairs:
        """Subjects and objects of a group, in the order of the subjects."""
        return self._changed(place, self.base.pairs(place), reverse=False)

    def reversed_pairs(self, place: Place) -> Pairs:
        """Objects and subjects of a group, in the order of the objects."""
        return self._changed(place, self.base.reversed_pairs(place), reverse=True)

    def _changed(self, place: Place, pairs: Pairs, *, reverse: bool) -> Pairs:
        altered = self.groups.get(place)
        if altered is None or not (altered.added or altered.removed):
            return pairs
        first, second = pairs
        keep = np.ones(first.shape[0], dtype=np.bool_)
        for s, o in altered.removed:
            one, other = (o, s) if reverse else (s, o)
            low, high = np.searchsorted(first, [one, one + 1]).tolist()
            keep[low:high] &= second[low:high] != other
        more = np.array(sorted(altered.added), dtype=np.int64).reshape(-1, 2)
        column, others = (more[:, 1], more[:, 0]) if reverse else (more[:, 0], more[:, 1])
        first, second = np.concatenate([first[keep], column]), np.concatenate([second[keep], others])
        order = np.lexsort((second, first))
        return first[order], second[order]

    def places(self) -> set[Place]:
        """The groups that may have statements."""
        return {*self.base.groups, *(place for place, altered in self.groups.items() if altered.added)}

    def kinds_of(self, ids: Ints) -> Kinds:
        """What ids stand for, as far as it is known here."""
        found = self.base.terms.texts.kinds_of(ids)
        unknown = np.flatnonzero(found == Kind.UNKNOWN).tolist() if self.texts else []
        texts = {place: text for place in unknown if (text := self.texts.get(int(ids[place]))) is not None}
        if texts:
            found[list(texts)] = kinds_of_texts(texts.values())
        return found

    def text_of(self, number: int) -> bytes | None:
        """The text of an id that is a hash; None where nobody knows it."""
        found = self.texts.get(number)
        return self.base.terms.text_of(number) if found is None else found


def _of_key(pairs: Pairs, key: int) -> list[int]:
    low = int(pairs[0].searchsorted(key))
    high = low
    column = pairs[0]
    if low < column.shape[0] and column[low] == key:
        high = int(column.searchsorted(key, side="right"))
    found: list[int] = pairs[1][low:high].tolist()
    return found


def changed_parts(folder: Path, manifest: Manifest) -> tuple[list[Part], int, set[str]]:
    """All statements of a data set as parts, its version and the names of its graphs."""
    overlay = Overlay(Columns.open(folder / manifest.base))
    version, graphs = manifest.version, set(manifest.graphs)
    for change in ChangeLog(folder / manifest.log).news():
        overlay.apply(change, tell_nobody)
        version = change.version
        graphs |= {quad.graph_name.value for quad in change.added if isinstance(quad.graph_name, NamedNode)}
    groups = {place: overlay.pairs(place) for place in overlay.places()}
    new_terms = StoredTerms.of(map(term_of_text, overlay.texts.values()))
    return [Part(groups, overlay.base.terms), Part({}, new_terms)], version, graphs
