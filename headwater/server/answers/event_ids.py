"""Ids of the events that subscribers get: the place of an answer in the log, the same after every restart.

>>> EventId.parse("1792000000-42-0") < EventId.parse("1792000000-42-0.1")
True
>>> str(EventId(1792000000, 42, 3))
'1792000000-42-3'
"""

from __future__ import annotations

import re
from typing import NamedTuple

_FORM = re.compile(r"([0-9]{1,15})-([0-9]{1,15})-([0-9]{1,15})(?:\.([0-9]{1,3}))?")


class EventId(NamedTuple):
    """The era of the log, the number of the batch, the answer in the batch, and the part of a change of answers.

    An era begins when a run begins that knows nothing of those before it, because its checkpoint is a new one.
    """

    era: int
    batch: int
    place: int
    part: int = 0

    def __str__(self) -> str:
        part = f".{self.part}" if self.part else ""
        return f"{self.era}-{self.batch}-{self.place}{part}"

    @property
    def answer(self) -> EventId:
        """The id of the answer itself."""
        return self._replace(part=0)

    @classmethod
    def parse(cls, text: str) -> EventId:
        """The id that a text says; a `ValueError` where it is none."""
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text[:60]!r} is no id of an event: take one that an event has, such as 1792000000-42-0")
        era, batch, place, part = match.groups()
        return cls(int(era), int(batch), int(place), int(part or 0))


BEGINNING = EventId(0, 0, 0)
"""The place before the first answer of a query."""
