"""The folder of a data set: its files, its manifest and its lock.

dataset.json          the manifest: replaced in one step, so a reader sees one whole state or another
base-3/               the statements as columns (`statement_columns`) with their checksums (`checksums`), never changed
                      once the manifest names it
changes-3.log         the changes since then, one line each (`change_log`)
views/                views of queries, kept for the next start (`views.stored_views`)
loading/              what a load has read so far (`loading.bulk_load`); readers ignore it
bad-lines.jsonl       what loads could not read: file, line, reason, text
lock                  held by the process that loads or changes
temporary             there if the data set ends with the process that made it: nothing is forced to disk
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from dataclasses import fields as dataclass_fields
from pathlib import Path

from headwater.datasets.errors import DataSetError, report_dataset_damage
from headwater.terms.durable_files import Sync, lock_file, replace_file
from headwater.terms.ids.inline_layout import ID_FORMAT
from headwater.terms.ids.term_key import adopt_key, other_key_message, term_key

FORMAT = ID_FORMAT
"""The format of the files. They hold ids, so it changes with the format of ids."""
MANIFEST = "dataset.json"
TEMPORARY = "temporary"
_KIND = "headwater data set"
_CHECKSUM = "checksum"
"""The member of the manifest that says whether the others are as they were written; older versions wrote none."""
_BASE, _LOG = re.compile(r"base-\d+"), re.compile(r"changes-\d+\.log")
_OF_LOAD = re.compile(r"loading|lock|bad-lines\.jsonl|base-\d+|changes-\d+\.log|\..*\.part")


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file as it was when it was loaded, and the graph into which its triples went."""

    size: int
    modified_ns: int
    graph: str | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state of a data set. `version` counts its changes; `base` and `log` name the files of this state."""

    base: str
    log: str
    version: int
    statements: int
    terms: int
    graphs: tuple[str, ...] = ()
    """The names of graphs, some of which may be empty."""
    files: Mapping[str, LoadedFile] = field(default_factory=dict)
    bad_lines: int = 0
    key: str = field(default_factory=lambda: term_key().hex())
    """The key of the ids, as hexadecimal digits."""


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a data set; a `DataSetError` says why a folder has none."""
    with report_dataset_damage(folder):
        try:
            text = (folder / MANIFEST).read_text("utf-8")
        except FileNotFoundError:
            raise DataSetError(_missing_manifest_message(folder)) from None
    try:
        fields = json.loads(text)
        written_checksum = fields.pop(_CHECKSUM, None)
        is_whole = written_checksum in (None, _checksum_of(fields))
        kind, version = fields.pop("kind"), int(fields.pop("format"))
    except (ValueError, KeyError, AttributeError, TypeError):
        raise DataSetError(f"{folder / MANIFEST} is no manifest of a data set: name another folder") from None
    if kind != _KIND:
        raise DataSetError(f"{folder / MANIFEST} is no manifest of a data set: name another folder")
    if version != FORMAT:
        age = "an older" if version < FORMAT else "a newer"
        raise DataSetError(
            f"the data set {folder} was made by {age} version of Headwater (format {version}, this one reads "
            f"{FORMAT}): load its files again into a new folder with: headwater load FILE… --into NEW-FOLDER"
        )
    with report_dataset_damage(folder / MANIFEST):
        unknown = sorted(set(fields) - {one.name for one in dataclass_fields(Manifest)})
        if unknown:
            raise DataSetError(
                f"{folder / MANIFEST} has a field that this version of Headwater does not know ({unknown[0]}): use the "
                "version that wrote it, or load the files again into a new folder"
            )
        files = {name: LoadedFile(**one) for name, one in fields.pop("files").items()}
        manifest = Manifest(**{**fields, "graphs": tuple(fields["graphs"]), "files": files})
        if _BASE.fullmatch(manifest.base) is None or _LOG.fullmatch(manifest.log) is None:
            raise DataSetError(f"{folder / MANIFEST} is damaged: {manifest.base} and {manifest.log} are no files of it")
        if not is_whole:
            raise DataSetError(
                f"{folder / MANIFEST} is damaged: its checksum is not that of what was written. Put it back from a "
                "copy of the data set, or load the files again into a new folder"
            )
        if not adopt_key(bytes.fromhex(manifest.key)):
            raise DataSetError(other_key_message(f"the data set {folder}"))
        return manifest


def is_left_by_load(name: str) -> bool:
    """Whether a name in a folder without a manifest is of a load that was interrupted before its end."""
    return _OF_LOAD.fullmatch(name) is not None


def _missing_manifest_message(folder: Path) -> str:
    if (folder / "loading").is_dir():
        return (
            f"the load into {folder} was interrupted before its end: give the same headwater load command again, "
            "and it goes on where it stopped"
        )
    if folder.is_dir():
        return f"{folder} is no data set: make one with headwater load FILE… --into {folder}"
    return f"there is no folder {folder}: make a data set with headwater load FILE… --into {folder}"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Make a state the one that readers see. Its files must be on disk."""
    written = {"kind": _KIND, "format": FORMAT, **asdict(manifest)}
    content = json.dumps({**written, _CHECKSUM: _checksum_of(written)}, indent=1, ensure_ascii=False).encode()
    replace_file(folder / MANIFEST, content, sync=sync_of(folder))


def _checksum_of(fields: Mapping[str, object]) -> int:
    return zlib.crc32(json.dumps(fields, sort_keys=True).encode())


def sync_of(folder: Path) -> Sync:
    """What is forced to disk in the folder of a data set: nothing where it is temporary."""
    return Sync.NOTHING if (folder / TEMPORARY).exists() else Sync.CONTENT_AND_NAME


@contextmanager
def lock_dataset(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """Keep others from loading into a data set or changing it; `patience` is how many seconds to wait for the lock."""
    with report_dataset_damage(folder):
        try:
            lock = lock_file(folder / "lock", patience)
        except BlockingIOError:
            raise DataSetError(
                f"another process loads into {folder} or changes it: wait for its end, or stop it"
            ) from None
    try:
        yield
    finally:
        os.close(lock)
