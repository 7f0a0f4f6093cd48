"""The next version made ready in the background, while ticks go on with the one that there is.

Views that follow changes statement by statement are at a new version at once. The others have to be found from nothing,
which may take seconds. A `Preparation` finds them in a thread of its own, over a second reader of the same folders that
is at the new version, and works out what is different. Nobody sees anything of it until the data is moved to exactly
that version (`LinkedData.move`), which then only has to put the rows in place.

    version 7   tick ── tick ── tick ─┐
                  └ views of 8 … ready ┴ move ── tick (version 8)

It never decides which version is seen: a move to a version that nobody prepared finds the same rows, only later.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.datasets.mapped_files import Ints
from headwater.datasets.views.view_recipes import Recipe, Texts
from headwater.execution.static_data import Version
from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.relation import Relation
from headwater.kernel.columns.row_counts import bag_difference

if TYPE_CHECKING:
    from headwater.datasets.linked_data import LinkedData

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Wanted:
    """A view to be found: `key` names it, `shown` are the rows that somebody follows, if somebody does."""

    key: str
    recipe: Recipe
    shown: Relation | None


@dataclass(frozen=True)
class Found:
    """A view at the new version: its rows, how they differ from those that are followed, and terms that it made."""

    rows: Ints
    change: Delta | None
    texts: Texts = field(default_factory=dict)


class Preparation:
    """Views found at `version`, to be put in place of those of `since`; all of them, or none where one fails."""

    def __init__(self, since: Version, version: Version, views: Iterable[Wanted]) -> None:
        self.since = since
        self.version = version
        self._views = list(views)
        self._found: dict[str, Found] = {}
        self._done = threading.Event()

    def begin(self, data_at: Callable[[Version], LinkedData]) -> None:
        """Find the views over a copy of the data at the version, in another thread."""
        threading.Thread(target=self._work, args=(data_at,), name="headwater-views", daemon=True).start()

    def _work(self, data_at: Callable[[Version], LinkedData]) -> None:
        try:
            data = data_at(self.version)
            self._found = {one.key: _find(one, data) for one in self._views}
        except Exception as error:
            # Whoever moves to the version does the work in its place, and hears of what is wrong then.
            logger.warning("version %s of the data could not be prepared: %s", self.version, error)
        finally:
            self._done.set()

    def is_done(self, patience: float = 0.0) -> bool:
        """Whether it has come to its end, at the latest after some seconds."""
        return self._done.wait(patience) if patience else self._done.is_set()

    def result(self) -> Mapping[str, Found]:
        """What was found, by the keys of the views; waits for the end."""
        self._done.wait()
        return self._found


def _find(wanted: Wanted, data: LinkedData) -> Found:
    texts: Texts = {}
    rows = wanted.recipe.rows(data, texts)
    change = None if wanted.shown is None else bag_difference(rows, wanted.shown.ids())
    return Found(rows, change, texts)
