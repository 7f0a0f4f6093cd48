"""The last step of a load: all parts are merged into new columns, then the manifest is replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from headwater.datasets.change_log import dataset_to_parts
from headwater.datasets.checksums import write_checksums
from headwater.datasets.folder import LoadedFile, Manifest, sync_of, write_manifest
from headwater.datasets.loading.load_parts import LoadPart, write_columns
from headwater.datasets.statement_columns import StatementColumns
from headwater.datasets.stored_terms import StoredTerms
from headwater.terms.durable_files import Sync, remove_files, sync_folder, sync_tree
from headwater.terms.model import NamedNode


def publish_version(
    folder: Path,
    before: Manifest | None,
    parts: Sequence[LoadPart],
    *,
    graphs: Iterable[NamedNode] = (),
    files: Mapping[str, LoadedFile] | None = None,
    bad_lines: int = 0,
) -> Manifest:
    """Make a version with the statements of the version before and those of some parts; the caller holds the lock."""
    known: set[str] = set()
    all_parts, version = list(parts), 0
    if before is not None:
        kept, version, known = dataset_to_parts(folder, before)
        all_parts = [*kept, *all_parts]
    named = list(graphs)
    all_parts.append(LoadPart({}, StoredTerms.of(named)))
    version += 1
    base = f"base-{version}"
    log = f"changes-{version}.log"
    remove_files(folder / base, folder / log)
    terms = write_columns(folder / base, all_parts)
    if sync_of(folder) is not Sync.NOTHING:
        write_checksums(folder / base)
    manifest = Manifest(
        base,
        log,
        version,
        StatementColumns.open(folder / base).size,
        terms,
        tuple(sorted(known | {graph.value for graph in named})),
        {**(before.files if before else {}), **(files or {})},
        (before.bad_lines if before else 0) + bad_lines,
    )
    (folder / log).touch()
    if sync_of(folder) is not Sync.NOTHING:
        # Before the manifest names them, because what it replaces is removed then.
        sync_folder(folder / log)
        sync_tree(folder / base)
    write_manifest(folder, manifest)
    if before is not None:
        _delete_state(folder, before)
    return manifest


def _delete_state(folder: Path, manifest: Manifest) -> None:
    """Remove the files of an earlier state; readers that have them mapped can still read them."""
    remove_files(folder / manifest.base, folder / manifest.log, folder / "views")
