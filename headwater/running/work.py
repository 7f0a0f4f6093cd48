"""What a run works on. It changes while the run goes on: queries come and go between two batches.

Whoever registers or drops a query has checked that the pipeline can go on with the others; the runner takes the change
up when a batch is done. In process the next batch goes to a program that has taken over the log of the windows; on
Spark the streaming query is started again from its own checkpoint, which holds that log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event

from headwater.running.program_description import ProgramDescription, ProgramOutline
from headwater.sources.feed import Feed
from headwater.sources.source import Source


@dataclass(frozen=True)
class Work:
    """Queries with all that belongs to them, where their streams come from, and what is to be read of those."""

    description: ProgramDescription
    outline: ProgramOutline
    sources: Mapping[str, Source]

    def feed(self, *, drain: bool) -> Feed:
        """The streams, read as far as the queries want them."""
        return Feed(self.sources, drain=drain, wanted=self.outline.wanted, datasets=self.description.watched)


class Changes:
    """Where the runner hears that there is other work to do; `renew` says which, in the runner's thread."""

    def __init__(self, renew: Callable[[], Work]) -> None:
        self._renew = renew
        self._asked = Event()

    def ask(self) -> None:
        """Have the runner take up what has changed, after the batch at work."""
        self._asked.set()

    @property
    def are_due(self) -> bool:
        return self._asked.is_set()

    def take(self) -> Work | None:
        """The new work, once; None where nothing has changed."""
        if not self._asked.is_set():
            return None
        self._asked.clear()
        return self._renew()
