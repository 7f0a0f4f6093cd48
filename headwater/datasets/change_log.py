"""Changes of a data set: a log on disk with one line for each version, and columns to which changes were applied.

    {"version": 8, "added": "<s> <p> <o> .\\n", "removed": "", "crc": 1234567890}

A line counts when it ends with its line feed and has no zero bytes, which stand where a power failure has left a hole.
So a change is there as a whole or not at all, even if the process that writes it dies, and it is on disk when the call
that makes it returns. Readers in other processes continue behind the last line that they read.

A log that is missing, that was cut while it was in use, or that has a line which is not as it was written is an error:
a data set is never opened with fewer statements in silence.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pyoxigraph import DefaultGraph, RdfFormat, serialize

from headwater.datasets.checksums import check_files
from headwater.datasets.errors import DataSetError
from headwater.datasets.folder import Manifest
from headwater.datasets.loading.load_parts import LoadPart
from headwater.datasets.mapped_files import Ints
from headwater.datasets.statement_columns import GroupKey, Pairs, StatementColumns
from headwater.datasets.stored_terms import StoredTerms
from headwater.terms.checking.checked_parsing import parse_quads
from headwater.terms.durable_files import Sync, is_written_line, write_at_end
from headwater.terms.ids.hash_collisions import HashCollision
from headwater.terms.ids.inline_layout import NO_TERM, is_inline
from headwater.terms.ids.term_ids import encode, term_text
from headwater.terms.ids.term_texts import TermKind, TermKinds, kinds_of_texts, term_of_text
from headwater.terms.model import NamedNode, Quad, Term

IdQuad = tuple[int, int, int, int]
"""The ids of graph, subject, predicate and object."""
OnStatement = Callable[[IdQuad, int], None]
"""Called with a statement and 1 if it is added, -1 if it is removed."""


def ignore_statement(quad: IdQuad, sign: int) -> None:
    """The `OnStatement` that does nothing."""


@dataclass(frozen=True)
class DataChange:
    """The statements that one version adds and removes."""

    version: int
    added: tuple[Quad, ...] = ()
    removed: tuple[Quad, ...] = ()

    def to_line(self) -> bytes:
        fields = {"version": self.version, "added": _quads_to_text(self.added), "removed": _quads_to_text(self.removed)}
        content = json.dumps(fields, ensure_ascii=False).encode()[:-1]
        return b'%b, "crc": %d}\n' % (content, zlib.crc32(content))

    @classmethod
    def from_line(cls, line: bytes) -> DataChange:
        """The change of a line; a `ValueError` where it is not as it was written."""
        content, mark, checksum = line.rpartition(b', "crc": ')
        if not mark or checksum.rstrip(b"}\n") != b"%d" % zlib.crc32(content):
            raise ValueError("its checksum is not that of what was written")
        fields = json.loads(line)
        return cls(fields["version"], _text_to_quads(fields["added"]), _text_to_quads(fields["removed"]))


def _quads_to_text(quads: Iterable[Quad]) -> str:
    text = serialize(quads, format=RdfFormat.N_QUADS)
    return "" if text is None else text.decode()


def _text_to_quads(text: str) -> tuple[Quad, ...]:
    return tuple(parse_quads(text.encode(), RdfFormat.N_QUADS)) if text else ()


class ChangeLog:
    """The log of a data set, and how far it was read."""

    def __init__(self, path: Path, version: int) -> None:
        """`version` is the one of the columns, before the first change."""
        self._name = str(path)
        self._bytes_read = 0
        self._lines_read = 0
        self._version = version

    def read_new_changes(self) -> Iterator[DataChange]:
        """Read the changes that were written since the last call; a `FileNotFoundError` if there is no log."""
        size = os.stat(self._name).st_size
        if size == self._bytes_read:
            return
        if size < self._bytes_read:
            raise self._damage(f"it has {size:,} bytes, and {self._bytes_read:,} were read before")
        with open(self._name, "rb") as stream:
            stream.seek(self._bytes_read)
            for line in stream:
                if not is_written_line(line):
                    if any(map(is_written_line, stream)):
                        # A process that dies leaves the last line unfinished, and none before it.
                        raise self._damage("it has zero bytes in it", self._lines_read + 1)
                    return
                try:
                    change = DataChange.from_line(line)
                except (ValueError, SyntaxError, KeyError, TypeError) as error:
                    raise self._damage(str(error), self._lines_read + 1) from None
                if change.version != self._version + 1:
                    reason = f"the change to version {self._version + 1} is missing"
                    raise self._damage(reason, self._lines_read + 1)
                self._bytes_read += len(line)
                self._lines_read += 1
                self._version = change.version
                yield change

    def _damage(self, reason: str, line: int | None = None) -> DataSetError:
        place = self._name if line is None else f"{self._name}, line {line},"
        return DataSetError(
            f"{place} is damaged: {reason}. Put the file back from a copy of the data set; or give up the changes from "
            f"there on with: truncate -s {self._bytes_read} {self._name}"
        )

    @property
    def bytes_read(self) -> int:
        """How many bytes were read so far."""
        return self._bytes_read

    def append(self, change: DataChange, *, sync: Sync = Sync.CONTENT_AND_NAME) -> None:
        """Write a change, which counts from then on. The caller holds the lock and has read all changes before it."""
        line = change.to_line()
        # What stands behind the last line that counts is of a process that died while it wrote.
        write_at_end(Path(self._name), line, self._bytes_read, sync=sync)
        self._bytes_read += len(line)
        self._lines_read += 1
        self._version = change.version


@dataclass
class GroupDelta:
    """Pairs of subject and object that were added to one group, and pairs that were removed from it."""

    added: set[tuple[int, int]] = field(default_factory=set)
    removed: set[tuple[int, int]] = field(default_factory=set)
    objects: dict[int, set[int]] = field(default_factory=dict)
    """The added objects by subject."""
    subjects: dict[int, set[int]] = field(default_factory=dict)
    """The added subjects by object."""

    def add(self, s: int, o: int) -> None:
        self.added.add((s, o))
        self.objects.setdefault(s, set()).add(o)
        self.subjects.setdefault(o, set()).add(s)

    def discard(self, s: int, o: int) -> None:
        self.added.discard((s, o))
        self.objects[s].discard(o)
        self.subjects[o].discard(s)


class UpdatableColumns:
    """Statements that can change: immutable columns on disk, and in memory what was added and removed since."""

    def __init__(self, base: StatementColumns) -> None:
        self.base = base
        self.deltas: dict[GroupKey, GroupDelta] = {}
        self.texts: dict[int, bytes] = {}
        self.size = base.size

    def apply_change(self, change: DataChange, on_statement: OnStatement) -> None:
        """Apply a change; `on_statement` is called before a statement is removed, and after one is added."""
        for quad in map(self._ids_of, change.removed):
            if self.has_statement(quad):
                on_statement(quad, -1)
                self._remove(quad)
        for quad in map(self._ids_of, change.added):
            if not self.has_statement(quad):
                self._add(quad)
                on_statement(quad, 1)

    def check_terms(self, quads: Iterable[Quad]) -> None:
        """Raise `HashCollision` where a term of some statements has the id of another one, here or among them."""
        new: dict[int, bytes] = {}
        for term in {term for quad in quads for term in quad if not isinstance(term, DefaultGraph)}:
            term_id, text = encode(term), term_text(term).encode()
            if not is_inline(term_id):
                known = self.text_of(term_id) or new.setdefault(term_id, text)
                if known != text:
                    raise HashCollision(term_id, term_of_text(known), term)

    def has_terms(self, quad: Quad) -> bool:
        """Whether no term of a statement has the id of another one; a statement that has is not here."""
        try:
            self.check_terms([quad])
        except HashCollision:
            return False
        return True

    def has_statement(self, quad: IdQuad) -> bool:
        graph, s, p, o = quad
        return o in self.objects_of((graph, p), s)

    def _ids_of(self, quad: Quad) -> IdQuad:
        graph = NO_TERM if isinstance(quad.graph_name, DefaultGraph) else self.id_of(quad.graph_name)
        return graph, self.id_of(quad.subject), self.id_of(quad.predicate), self.id_of(quad.object)

    def id_of(self, term: Term) -> int:
        """The id of a term, whose text is kept."""
        term_id = encode(term)
        if not is_inline(term_id) and term_id not in self.texts:
            self.texts[term_id] = term_text(term).encode()
        return term_id

    def _add(self, quad: IdQuad) -> None:
        graph, s, p, o = quad
        delta = self.deltas.setdefault((graph, p), GroupDelta())
        if (s, o) in delta.removed:
            delta.removed.discard((s, o))
        else:
            delta.add(s, o)
        self.size += 1

    def _remove(self, quad: IdQuad) -> None:
        graph, s, p, o = quad
        delta = self.deltas.setdefault((graph, p), GroupDelta())
        if (s, o) in delta.added:
            delta.discard(s, o)
        else:
            delta.removed.add((s, o))
        self.size -= 1

    def objects_of(self, key: GroupKey, s: int) -> list[int]:
        """The objects that the subject `s` has in a group, after all changes."""
        delta = self.deltas.get(key)
        objects = _find_values(self.base.pairs_by_subject(key), s)
        if delta is None:
            return objects
        kept = [o for o in objects if (s, o) not in delta.removed] if delta.removed else objects
        return [*kept, *delta.objects.get(s, ())]

    def subjects_of(self, key: GroupKey, o: int) -> list[int]:
        """The subjects that have the object `o` in a group, after all changes."""
        delta = self.deltas.get(key)
        subjects = _find_values(self.base.pairs_by_object(key), o)
        if delta is None:
            return subjects
        kept = [s for s in subjects if (s, o) not in delta.removed] if delta.removed else subjects
        return [*kept, *delta.subjects.get(o, ())]

    def pairs_by_subject(self, key: GroupKey) -> Pairs:
        """Subjects and objects of a group, sorted by subject."""
        return self._apply_delta(key, self.base.pairs_by_subject(key), is_by_object=False)

    def pairs_by_object(self, key: GroupKey) -> Pairs:
        """Objects and subjects of a group, sorted by object."""
        return self._apply_delta(key, self.base.pairs_by_object(key), is_by_object=True)

    def _apply_delta(self, key: GroupKey, pairs: Pairs, *, is_by_object: bool) -> Pairs:
        """Sorted pairs of the base without removed and with added ones, in the same order."""
        delta = self.deltas.get(key)
        if delta is None or not (delta.added or delta.removed):
            return pairs
        first, second = pairs
        keep = np.ones(first.shape[0], dtype=np.bool_)
        for s, o in delta.removed:
            one, other = (o, s) if is_by_object else (s, o)
            low, high = np.searchsorted(first, [one, one + 1]).tolist()
            keep[low:high] &= second[low:high] != other
        added = np.array(sorted(delta.added), dtype=np.int64).reshape(-1, 2)
        column, others = (added[:, 1], added[:, 0]) if is_by_object else (added[:, 0], added[:, 1])
        first, second = np.concatenate([first[keep], column]), np.concatenate([second[keep], others])
        order = np.lexsort((second, first))
        return first[order], second[order]

    def group_keys(self) -> set[GroupKey]:
        """The groups that may have statements."""
        return {*self.base.groups, *(key for key, delta in self.deltas.items() if delta.added)}

    def kinds_of(self, ids: Ints) -> TermKinds:
        """The kinds of the terms of hashed ids; unknown where the text is not here."""
        kinds = self.base.terms.texts.kinds_of(ids)
        unknown = np.flatnonzero(kinds == TermKind.UNKNOWN).tolist() if self.texts else []
        texts = {index: text for index in unknown if (text := self.texts.get(int(ids[index]))) is not None}
        if texts:
            kinds[list(texts)] = kinds_of_texts(texts.values())
        return kinds

    def text_of(self, term_id: int) -> bytes | None:
        """The text of a hashed id; None if it is not here."""
        text = self.texts.get(term_id)
        return self.base.terms.text_of(term_id) if text is None else text


def _find_values(pairs: Pairs, key: int) -> list[int]:
    """The second of all pairs whose first is `key`."""
    low = int(pairs[0].searchsorted(key))
    high = low
    column = pairs[0]
    if low < column.shape[0] and column[low] == key:
        high = int(column.searchsorted(key, side="right"))
    values: list[int] = pairs[1][low:high].tolist()
    return values


def dataset_to_parts(folder: Path, manifest: Manifest) -> tuple[list[LoadPart], int, set[str]]:
    """All statements of a data set as load parts, its version and the names of its graphs."""
    check_files(folder / manifest.base, every_byte=True)
    columns = UpdatableColumns(StatementColumns.open(folder / manifest.base))
    version, graphs = manifest.version, set(manifest.graphs)
    for change in ChangeLog(folder / manifest.log, manifest.version).read_new_changes():
        columns.apply_change(change, ignore_statement)
        version = change.version
        graphs |= {quad.graph_name.value for quad in change.added if isinstance(quad.graph_name, NamedNode)}
    groups = {key: columns.pairs_by_subject(key) for key in columns.group_keys()}
    new_terms = StoredTerms.of(map(term_of_text, columns.texts.values()))
    return [LoadPart(groups, columns.base.terms), LoadPart({}, new_terms)], version, graphs
