"""Views of the next version found in the background, while ticks see the current version.

Views that are maintained statement by statement reach a new version at once. The others have to be found again, which
may take seconds. A `Preparation` finds them in a thread of its own, over a second reader of the same folders that is at
the new version, and computes how their rows differ. Queries see nothing of it until the data is moved to exactly that
version (`LinkedData.move`), which then only has to exchange the rows.

    version 7   tick ── tick ── tick ─┐
                  └ views of 8 … ready ┴ move ── tick (version 8)

A preparation does not decide which version is seen: a move to a version that was not prepared finds the same rows, but
takes longer.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.datasets.mapped_files import Ints
from headwater.datasets.views.view_definitions import Texts, ViewDefinition
from headwater.execution.static_data import Version
from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.relation import Relation
from headwater.kernel.columns.row_counts import bag_difference

if TYPE_CHECKING:
    from headwater.datasets.linked_data import LinkedData

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WantedView:
    """A view to be found: `key` identifies it, `followed` are its current rows if it has followers."""

    key: str
    definition: ViewDefinition
    followed: Relation | None


@dataclass(frozen=True)
class FoundView:
    """A view at the new version: its rows, their delta if it has followers, and the texts of new terms."""

    rows: Ints
    delta: Delta | None
    texts: Texts = field(default_factory=dict)


class Preparation:
    """Finds views at `version` to replace those of the version `since`: all of them, or none if one fails."""

    def __init__(self, since: Version, version: Version, views: Iterable[WantedView]) -> None:
        self.since = since
        self.version = version
        self._views = list(views)
        self._found: dict[str, FoundView] = {}
        self._done = threading.Event()

    def begin(self, data_at: Callable[[Version], LinkedData]) -> None:
        """Find the views over a copy of the data at the version, in another thread."""
        threading.Thread(target=self._work, args=(data_at,), name="headwater-views", daemon=True).start()

    def _work(self, data_at: Callable[[Version], LinkedData]) -> None:
        try:
            data = data_at(self.version)
            self._found = {one.key: _find_view(one, data) for one in self._views}
        except Exception as error:
            # A move to the version finds the views itself, and raises the error if it persists.
            logger.warning("version %s of the data could not be prepared: %s", self.version, error)
        finally:
            self._done.set()

    def is_done(self, patience: float = 0.0) -> bool:
        """Whether it has ended; waits for that up to `patience` seconds."""
        return self._done.wait(patience) if patience else self._done.is_set()

    def wait_for_views(self) -> Mapping[str, FoundView]:
        """Wait for the end, and give the views by their keys."""
        self._done.wait()
        return self._found


def _find_view(wanted: WantedView, data: LinkedData) -> FoundView:
    texts: Texts = {}
    rows = wanted.definition.find_rows(data, texts)
    delta = None if wanted.followed is None else bag_difference(rows, wanted.followed.ids())
    return FoundView(rows, delta, texts)
