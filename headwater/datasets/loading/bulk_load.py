"""Bulk loading: RDF files are written as load parts, which are then merged into a data set.

    files ──slices──▶ loading/part-1, part-2, …  (journal.json says what they cover)  ──▶ base-N  ──▶ dataset.json

A stream that can be read once is written as parts likewise; a load that has read from one and was interrupted begins
anew. Readers see what the manifest names, and it is replaced at the very end; until then they see the state before.
What the journal covers is not read again when the same command is given after an interruption.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, TypeAlias

from headwater.datasets.errors import DataSetError, StrictLoadError, report_dataset_damage
from headwater.datasets.folder import MANIFEST, LoadedFile, Manifest, is_left_by_load, lock_dataset, read_manifest
from headwater.datasets.loading.load_parts import LoadPart, write_part
from headwater.datasets.loading.publish import publish_version
from headwater.datasets.loading.statement_blocks import LineStream, StatementBlock, read_blocks, read_stream_blocks
from headwater.datasets.mapped_files import Ints
from headwater.terms.arguments import make_folder
from headwater.terms.durable_files import create_folder, remove_files, replace_file, replacing_file, sync_tree
from headwater.terms.ids.hash_collisions import HashCollision
from headwater.terms.ids.term_ids import encode, term_text
from headwater.terms.ids.term_key import adopt_key, term_key
from headwater.terms.ids.term_texts import TermTexts
from headwater.terms.model import BadElement
from headwater.terms.names import name_to_iri
from headwater.terms.rdf_documents import FORMATS, file_ending

PART_STATEMENTS = 1_000_000
"""How many statements a load part has, about."""

LoadSource: TypeAlias = str | Path | IO[bytes]
"""An RDF file, a folder of them, a named pipe, or an open stream of N-Triples or N-Quads."""


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load has come."""

    file: str
    bytes_read: int
    total_bytes: int
    statements: int
    bad: int
    phase: str = "reading"


OnProgress = Callable[[LoadProgress], None]


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The result of a load: `statements` counts those of the data set, `read` those that were read from files."""

    statements: int
    read: int
    files: int
    known_files: int
    bad: int
    bad_lines: Path | None
    version: int
    first_bad: str = ""
    """Where and why the first line could not be read."""
    unreadable: tuple[str, ...] = ()
    """Where and why files could not be read of which nothing could; they do not count as loaded."""


@dataclass
class _FileState:
    """How far a file was read: `end` and `lines` count in its unpacked content."""

    size: int
    modified_ns: int
    graph: str | None
    end: int = 0
    lines: int = 0
    done: bool = False
    statements: int = 0
    bad: int = 0
    first_bad: str = ""

    @property
    def is_unreadable(self) -> bool:
        """Whether nothing of it could be read."""
        return bool(self.bad) and not self.statements

    @property
    def file(self) -> LoadedFile:
        """The file as it was when its reading began."""
        return LoadedFile(self.size, self.modified_ns, self.graph)


@dataclass
class _Journal:
    """The load parts on disk, and how far each file is in them."""

    parts: list[str] = field(default_factory=list)
    files: dict[str, _FileState] = field(default_factory=dict)
    read: int = 0
    bad: int = 0
    has_streams: bool = False
    """Whether a part has statements of a stream, which cannot be read again."""
    key: str = field(default_factory=lambda: term_key().hex())
    """The key of the ids in the parts, as hexadecimal digits."""

    @classmethod
    def open(cls, path: Path) -> _Journal:
        """The journal of an interrupted load; a new one where there is none, or its ids have another key."""
        if not path.exists():
            return cls()
        try:
            fields = json.loads(path.read_text("utf-8"))
            if not adopt_key(bytes.fromhex(fields.get("key", ""))):
                shutil.rmtree(path.parent)
                return cls()
            journal = cls(**{**fields, "files": {name: _FileState(**one) for name, one in fields["files"].items()}})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataSetError(
                f"{path} is damaged ({error}): delete the folder {path.parent} and give the command again; what was "
                "loaded before this load stays"
            ) from None
        if journal.has_streams:
            shutil.rmtree(path.parent)
            return cls()
        return journal


def load(
    folder: str | Path,
    sources: Iterable[LoadSource],
    *,
    graph: str | None = None,
    strict: bool = False,
    on_progress: OnProgress = lambda _: None,
) -> LoadReport:
    """Load RDF files, or all RDF files in some folders, into a data set, which is made if there is none.

    With `graph`, triples of the default graph are loaded into the graph of that name. Files that were loaded before and
    have not changed since are left out. Lines that cannot be read are reported and the rest is loaded; with `strict`
    the first of them ends the load, and nothing of it is loaded.

    Named pipes, and streams that are open, give N-Triples or N-Quads and are read once, in memory that does not grow
    with them. They are loaded each time; what they brought is lost where the load is interrupted.
    """
    target = Path(folder)
    given = list(sources)
    streams = [found for source in given if (found := _stream_of(source)) is not None]
    files = list_rdf_files(source for source in given if _stream_of(source) is None)  # type: ignore[misc]
    if (
        target.exists()
        and not (target / MANIFEST).exists()
        and (target.is_file() or not all(is_left_by_load(one.name) for one in target.iterdir()))
    ):
        raise DataSetError(f"{target} is a file or holds other files: name a new folder, or that of a data set")
    make_folder("a data set", target)
    with report_dataset_damage(target), lock_dataset(target):
        before = read_manifest(target) if (target / MANIFEST).exists() else None
        owners: dict[int, bytes] = {}
        while True:
            one = _Load(target, before, graph, strict, on_progress, owners)
            try:
                return one.run(files, streams)
            except HashCollision as collision:
                if streams:
                    one.give_up()
                    raise DataSetError(
                        f"{collision}; a stream cannot be read again without them: load its statements from a file"
                    ) from None
                if collision.known is None or collision.term_id in owners:
                    raise
                # It is read again, without the statements that have the other term.
                owners[collision.term_id] = term_text(collision.known).encode()
                one.give_up()


def _stream_of(source: LoadSource) -> LineStream | None:
    """A source that can be read only once; None for a file or a folder."""
    if not isinstance(source, str | Path):
        return LineStream(str(getattr(source, "name", "the stream")), lambda: nullcontext(source))
    path = Path(source)
    return LineStream(str(path), lambda: open(path, "rb")) if path.is_fifo() else None


def list_rdf_files(sources: Iterable[str | Path]) -> list[Path]:
    """List the files that some paths name, and all RDF files in those that are folders."""
    files: dict[Path, None] = {}
    for source in map(Path, sources):
        if source.is_dir():
            inside = sorted(path for path in source.rglob("*") if path.is_file() and file_ending(path) in FORMATS)
            if not inside:
                raise DataSetError(f"there is no RDF file in {source}: their names end in {', '.join(FORMATS)}")
            files |= dict.fromkeys(path.resolve() for path in inside)
        elif not source.is_file():
            raise DataSetError(f"there is no file {source}: check its path")
        elif file_ending(source) not in FORMATS:
            raise DataSetError(
                f"{source} has no ending of an RDF file: {', '.join(FORMATS)}, or that and .gz, .bz2, .xz"
            )
        else:
            files[source.resolve()] = None
    return list(files)


class _UnfinishedDocument:
    """The blocks of a document that was not read to its end.

    Many blocks are written to disk as load parts, which the journal does not list before the document has ended.
    """

    def __init__(self, staging: Path) -> None:
        self._staging = staging
        self.blocks: list[StatementBlock] = []
        self.spilled: list[str] = []
        self.spilled_statements = 0

    def add_block(self, block: StatementBlock) -> None:
        self.blocks.append(block)
        waiting = sum(one.rows.shape[0] for one in self.blocks)
        if waiting >= PART_STATEMENTS:
            name = f"spilled-{uuid.uuid4().hex}"
            write_part(self._staging / name, [b.rows for b in self.blocks], [b.texts for b in self.blocks], [])
            self.spilled.append(name)
            self.spilled_statements += waiting
            self.blocks = []


class _Load:
    def __init__(
        self,
        target: Path,
        before: Manifest | None,
        graph: str | None,
        strict: bool,
        on_progress: OnProgress,
        owners: Mapping[int, bytes],
    ) -> None:
        self._owners = owners
        self._target = target
        self._before = before
        self._staging = target / "loading"
        # It may have the key with which ids are made from now on.
        self._journal = _Journal.open(self._staging / "journal.json")
        self._name = None if graph is None else name_to_iri(graph)
        self._graph = None if self._name is None else encode(self._name)
        self._strict = strict
        self._on_progress = on_progress
        self._rows: list[Ints] = []
        self._texts: list[TermTexts] = []
        self._bad: list[BadElement] = []
        self._unwritten = 0
        self._unsynced: list[str] = []
        self._first_bad = ""
        self._streams: list[_FileState] = []

    def give_up(self) -> None:
        """Remove what was read."""
        remove_files(self._staging)

    def run(self, files: Sequence[Path], streams: Sequence[LineStream] = ()) -> LoadReport:
        """Load the files that are new or changed, and the streams, and publish them.

        It goes on from the journal of an interrupted load.
        """
        known = self._before.files if self._before is not None else {}
        graph = None if self._name is None else self._name.value
        wanted: dict[Path, LoadedFile] = {}
        for path in files:
            status = path.stat()
            if known.get(str(path)) != (one := LoadedFile(status.st_size, status.st_mtime_ns, graph)):
                wanted[path] = one
        if not wanted and not streams and self._before is not None:
            return self._report(self._before, 0, len(files))
        if any(wanted.get(Path(name)) != one.file for name, one in self._journal.files.items()):
            # Another load was interrupted, or its files have changed; parts do not say which file a statement is from.
            remove_files(self._staging)
            self._journal = _Journal()
        create_folder(self._staging)
        total = sum(one.size for one in wanted.values())
        read = 0
        for path, one in wanted.items():
            state = self._journal.files.setdefault(str(path), _FileState(one.size, one.modified_ns, one.graph))
            if not state.done:
                self._read_file(path, state, read, total)
            read += one.size
        for stream in streams:
            self._read_stream(stream)
        self._write_part()
        self._on_progress(self._progress("", total, total, "sorting"))
        manifest = self._publish()
        return self._report(manifest, len(wanted) + len(streams), len(files) - len(wanted))

    def _report(self, manifest: Manifest, files: int, known: int) -> LoadReport:
        bad = self._journal.bad
        lines = self._target / "bad-lines.jsonl" if bad else None
        counts = (manifest.statements, self._journal.read, files, known, bad)
        read = (*self._journal.files.values(), *self._streams)
        unreadable = tuple(one.first_bad for one in read if one.is_unreadable)
        return LoadReport(*counts, lines, manifest.version, self._first_bad, unreadable)

    def _progress(self, file: str, read: int, total: int, phase: str = "reading") -> LoadProgress:
        journal = self._journal
        return LoadProgress(file, read, total, journal.read + self._unwritten, journal.bad + len(self._bad), phase)

    def _read_file(self, path: Path, state: _FileState, before: int, total: int) -> None:
        """Read a file and write load parts; a document counts only when it was read to its end."""
        document = _UnfinishedDocument(self._staging)
        for block in read_blocks(path, self._graph, state.end, state.lines, self._owners):
            self._add_bad_elements(block.bad, state)
            state.statements += block.rows.shape[0]
            self._on_progress(self._progress(str(path), before + block.read, total))
            if block.end is None and not block.is_last:
                document.add_block(block)
                continue
            self._journal.parts.extend(document.spilled)
            self._unsynced.extend(document.spilled)
            self._journal.read += document.spilled_statements
            for one in (*document.blocks, block):
                self._rows.append(one.rows)
                self._texts.append(one.texts)
                self._unwritten += one.rows.shape[0]
            state.end, state.lines, state.done = block.end or 0, block.lines, block.is_last
            if self._unwritten >= PART_STATEMENTS or document.spilled:
                self._write_part()
        state.done = True

    def _read_stream(self, source: LineStream) -> None:
        """Read a stream to its end and write load parts."""
        self._journal.has_streams = True
        state = _FileState(0, 0, None)
        self._streams.append(state)
        for block in read_stream_blocks(source, self._graph):
            self._add_bad_elements(block.bad, state)
            state.statements += block.rows.shape[0]
            self._on_progress(self._progress(source.name, block.read, 0))
            self._rows.append(block.rows)
            self._texts.append(block.texts)
            self._unwritten += block.rows.shape[0]
            if self._unwritten >= PART_STATEMENTS:
                self._write_part()

    def _add_bad_elements(self, bad: Sequence[BadElement], state: _FileState) -> None:
        if bad and not state.first_bad:
            first = bad[0]
            place = f"{first.source}:{first.line}" if first.line is not None else first.source
            state.first_bad = f"{place}: {first.reason}"
            self._first_bad = self._first_bad or state.first_bad
        state.bad += len(bad)
        if bad and self._strict:
            raise StrictLoadError(
                f"{self._first_bad} (nothing of this load counts; without --strict, bad lines are reported "
                "and the rest is loaded)"
            )
        self._bad.extend(bad)

    def _write_part(self) -> None:
        """Write what was read as a load part, and list it in the journal."""
        if not self._rows and not self._bad:
            return
        name = f"part-{len(self._journal.parts) + 1}"
        shutil.rmtree(self._staging / name, ignore_errors=True)
        write_part(self._staging / name, self._rows, self._texts, self._bad)
        # The journal says that it need not be read again.
        for part in (*self._unsynced, name):
            sync_tree(self._staging / part)
        self._unsynced = []
        self._journal.parts.append(name)
        self._journal.read += self._unwritten
        self._journal.bad += len(self._bad)
        self._rows, self._texts, self._bad, self._unwritten = [], [], [], 0
        replace_file(self._staging / "journal.json", json.dumps(asdict(self._journal)).encode())

    def _publish(self) -> Manifest:
        """Merge all load parts into a new version, which readers see from then on."""
        journal = self._journal
        self._report_bad_lines()
        manifest = publish_version(
            self._target,
            self._before,
            [LoadPart.open(self._staging / name) for name in journal.parts],
            graphs=[] if self._name is None else [self._name],
            files={name: one.file for name, one in journal.files.items() if not one.is_unreadable},
            bad_lines=journal.bad,
        )
        remove_files(self._staging)
        return manifest

    def _report_bad_lines(self) -> None:
        """Write the report behind the lines of the loads before; what an attempt wrote that did not end is replaced."""
        path = self._target / "bad-lines.jsonl"
        before = self._before.bad_lines if self._before is not None else 0
        if not self._journal.bad and not path.exists():
            return
        with replacing_file(path) as report:
            if path.exists():
                with open(path, "rb") as known:
                    report.writelines(islice(known, before))
            for name in self._journal.parts:
                report.write((self._staging / name / "bad.jsonl").read_bytes())
