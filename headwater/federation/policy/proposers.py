"""Proposers choose the entries of the view that may be refreshed, the candidate set C of the paper's figure 1.

WSJ (Window Service Join, VM4, algorithm 1) proposes the entries that join the present window: refreshing any other
cannot change the present answer. GNR, the baseline, proposes the whole view.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from headwater.federation.policy.candidates import Candidate
from headwater.federation.view.lifetime import WindowKey
from headwater.federation.view.local_view import Entry, LocalView
from headwater.terms.model import Row


class Proposer(Protocol):
    """Chooses the candidate set C from the view."""

    @property
    def name(self) -> str: ...

    def propose(self, view: LocalView, window: Mapping[Row, WindowKey]) -> list[Candidate]: ...


class WindowServiceJoin:
    """WSJ: C = the mappings of R that are compatible with the window."""

    name = "WSJ"

    def propose(self, view: LocalView, window: Mapping[Row, WindowKey]) -> list[Candidate]:
        entries = ((view.get(key), mapping) for key, mapping in window.items())
        return [_make_candidate(view, entry, mapping) for entry, mapping in entries if entry is not None]


class General:
    """GNR: C = R, whatever the query needs."""

    name = "GNR"

    def propose(self, view: LocalView, window: Mapping[Row, WindowKey]) -> list[Candidate]:
        absent = WindowKey((), 0, 0)
        return [_make_candidate(view, entry, window.get(entry.key, absent)) for entry in view]


def _make_candidate(view: LocalView, entry: Entry, mapping: WindowKey) -> Candidate:
    return Candidate(entry, mapping.ticks, mapping.rows, view.presence(entry))
