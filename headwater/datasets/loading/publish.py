"""The step that makes new statements count: all parts put together, then the manifest replaced."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from headwater.datasets.change_log import changed_parts
from headwater.datasets.folder import LoadedFile, Manifest, write_manifest
from headwater.datasets.loading.parts import Part, combined
from headwater.datasets.statement_columns import Columns
from headwater.datasets.stored_terms import StoredTerms
from headwater.terms.model import NamedNode


def publish(
    folder: Path,
    before: Manifest | None,
    parts: Sequence[Part],
    *,
    graphs: Iterable[NamedNode] = (),
    files: Mapping[str, LoadedFile] | None = None,
    bad_lines: int = 0,
) -> Manifest:
    """A version with the statements there were and those of some parts; whoever calls has the lock."""
    known: set[str] = set()
    together, version = list(parts), 0
    if before is not None:
        kept, version, known = changed_parts(folder, before)
        together = [*kept, *together]
    named = list(graphs)
    together.append(Part({}, StoredTerms.of(named)))
    version += 1
    base = f"base-{version}"
    shutil.rmtree(folder / base, ignore_errors=True)
    terms = combined(folder / base, together)
    manifest = Manifest(
        base,
        f"changes-{version}.log",
        version,
        Columns.open(folder / base).size,
        terms,
        tuple(sorted(known | {graph.value for graph in named})),
        {**(before.files if before else {}), **(files or {})},
        (before.bad_lines if before else 0) + bad_lines,
    )
    write_manifest(folder, manifest)
    if before is not None:
        _forget(folder, before)
    return manifest


def _forget(folder: Path, manifest: Manifest) -> None:
    """Remove the files of a state that counts no more; whoever has them open keeps what they hold."""
    shutil.rmtree(folder / manifest.base, ignore_errors=True)
    (folder / manifest.log).unlink(missing_ok=True)
    shutil.rmtree(folder / "views", ignore_errors=True)
