"""Load parts: about a million statements each, with the texts of their terms, as a load reads them.

The rows of a part are grouped by graph and predicate, and not sorted any further. At the end of the load the groups of
all parts are merged into sorted columns (`write_columns`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headwater.datasets.mapped_files import Ints, map_ints
from headwater.datasets.statement_columns import GroupKey, Pairs, StatementColumnsWriter
from headwater.datasets.stored_terms import StoredTerms, merge_in_ranges, merge_texts, write_terms
from headwater.terms.ids.term_texts import TermTexts
from headwater.terms.model import BadElement
from headwater.terms.text_lines import shorten_text


@dataclass(frozen=True)
class LoadPart:
    """Statements by graph and predicate, and the texts of their terms."""

    groups: dict[GroupKey, Pairs]
    terms: StoredTerms

    @classmethod
    def open(cls, folder: Path) -> LoadPart:
        s, o = map_ints(folder / "s"), map_ints(folder / "o")
        rows = map_ints(folder / "groups").reshape(-1, 4).tolist()
        groups = {(graph, predicate): (s[start:end], o[start:end]) for graph, predicate, start, end in rows}
        return cls(groups, StoredTerms.open(folder))


def write_part(folder: Path, rows: Sequence[Ints], texts: Sequence[TermTexts], bad: Sequence[BadElement]) -> None:
    """Write statements (graph, subject, predicate, object), and the lines that could not be read."""
    folder.mkdir(parents=True)
    # A load may have bad lines alone.
    quads = np.concatenate([np.empty((0, 4), dtype=np.int64), *rows])
    order, starts = _group_rows(quads[:, 0], quads[:, 2])
    bounds = np.append(starts, quads.shape[0])
    heads = quads[order[starts]]
    np.column_stack([heads[:, 0], heads[:, 2], bounds[:-1], bounds[1:]]).astype(np.int64).tofile(folder / "groups")
    quads[order, 1].tofile(folder / "s")
    quads[order, 3].tofile(folder / "o")
    write_terms(folder, [merge_texts(texts)])
    (folder / "bad.jsonl").write_text("".join(map(bad_element_to_json, bad)), "utf-8")


def _group_rows(graphs: Ints, predicates: Ints) -> tuple[Ints, Ints]:
    """The row order that groups rows by graph and predicate, and where each group begins."""
    order = np.argsort(predicates, kind="stable")
    if graphs.shape[0] and bool((graphs != graphs[0]).any()):
        order = order[np.argsort(graphs[order], kind="stable")]
    g, p = graphs[order], predicates[order]
    is_first = np.ones(order.shape[0], dtype=np.bool_)
    is_first[1:] = (g[1:] != g[:-1]) | (p[1:] != p[:-1])
    return order, np.flatnonzero(is_first)


def bad_element_to_json(bad: BadElement) -> str:
    """One line of the report on what could not be read."""
    fields = {"file": bad.source, "line": bad.line, "reason": bad.reason, "text": shorten_text(bad.text)}
    return json.dumps(fields, ensure_ascii=False) + "\n"


def write_columns(folder: Path, parts: Sequence[LoadPart]) -> int:
    """Write the statements of all parts as columns; gives the count of terms with a text."""
    folder.mkdir(parents=True)
    keys = sorted({key for part in parts for key in part.groups})
    with StatementColumnsWriter(folder) as writer:
        for key in keys:
            writer.write_group(key, [part.groups[key] for part in parts if key in part.groups])
    return write_terms(folder, merge_in_ranges([part.terms for part in parts]))
