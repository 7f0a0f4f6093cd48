"""What a load has read so far: parts of about a million statements, each with the texts of its terms.

A part is grouped by graph and predicate and not sorted any further; the end of the load puts the groups of all parts
together (`combined`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headwater.datasets.mapped_files import Ints, mapped_ints
from headwater.datasets.statement_columns import Columns, ColumnsWriter, Pairs, Place
from headwater.datasets.stored_terms import StoredTerms, in_order, merged_in_ranges, write_terms
from headwater.terms.ids.term_texts import TermTexts
from headwater.terms.model import BadElement


@dataclass(frozen=True)
class Part:
    """Statements by graph and predicate."""

    groups: dict[Place, Pairs]
    terms: StoredTerms

    @classmethod
    def open(cls, folder: Path) -> Part:
        s, o = mapped_ints(folder / "s"), mapped_ints(folder / "o")
        rows = mapped_ints(folder / "groups").reshape(-1, 4).tolist()
        groups = {(graph, predicate): (s[start:end], o[start:end]) for graph, predicate, start, end in rows}
        return cls(groups, StoredTerms.open(folder))

    @classmethod
    def of(cls, columns: Columns) -> Part:
        """The statements of a data set, to be put together with others."""
        return cls({place: columns.pairs(place) for place in columns.groups}, columns.terms)


def write_part(folder: Path, rows: Sequence[Ints], texts: Sequence[TermTexts], bad: Sequence[BadElement]) -> None:
    """Write statements (graph, subject, predicate, object) and what was no statement."""
    folder.mkdir(parents=True)
    together = np.concatenate(rows)
    order, starts = _grouped(together[:, 0], together[:, 2])
    bounds = np.append(starts, together.shape[0])
    heads = together[order[starts]]
    np.column_stack([heads[:, 0], heads[:, 2], bounds[:-1], bounds[1:]]).astype(np.int64).tofile(folder / "groups")
    together[order, 1].tofile(folder / "s")
    together[order, 3].tofile(folder / "o")
    write_terms(folder, in_order(texts))
    (folder / "bad.jsonl").write_text("".join(map(bad_line, bad)), "utf-8")


def _grouped(graphs: Ints, predicates: Ints) -> tuple[Ints, Ints]:
    """An order that brings rows with one graph and predicate together, and where each group begins."""
    order = np.argsort(predicates, kind="stable")
    if graphs.shape[0] and bool((graphs != graphs[0]).any()):
        order = order[np.argsort(graphs[order], kind="stable")]
    g, p = graphs[order], predicates[order]
    is_first = np.ones(order.shape[0], dtype=np.bool_)
    is_first[1:] = (g[1:] != g[:-1]) | (p[1:] != p[:-1])
    return order, np.flatnonzero(is_first)


def bad_line(bad: BadElement) -> str:
    """What could not be read, as a line of the report."""
    found = {"file": bad.source, "line": bad.line, "reason": bad.reason, "text": bad.text}
    return json.dumps(found, ensure_ascii=False) + "\n"


def combined(folder: Path, parts: Sequence[Part]) -> int:
    """Write the statements of all parts as columns; gives how many terms have a text."""
    folder.mkdir(parents=True)
    places = sorted({place for part in parts for place in part.groups})
    with ColumnsWriter(folder) as writer:
        for place in places:
            writer.group(place, [part.groups[place] for part in parts if place in part.groups])
    return write_terms(folder, merged_in_ranges([part.terms for part in parts]))
