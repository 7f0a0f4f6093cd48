"""The morning as it happens: each minute of the city becomes a file in the folder of its stream, at a chosen pace.

A file gets its final name when it is whole, so that a reader of the folder never sees half a minute.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headwater.demo.traffic import CarSighting, Minute, city_text
from headwater.terms.durable_files import Sync, replace_file

TOLLGATES = "http://city/tollgates"
CAMERAS = "http://city/cameras"
FOLDERS = {TOLLGATES: "tollgates", CAMERAS: "cameras"}


def sightings(minute: Minute) -> dict[str, tuple[CarSighting, ...]]:
    """What each stream registered in a minute."""
    return {TOLLGATES: minute.tollgates, CAMERAS: minute.cameras}


def last_instants(minutes: Sequence[Minute]) -> dict[str, int]:
    """For each stream, the time of its last element in microseconds: when a watermark is there, all was read."""
    return {
        stream: max(seen.instant for minute in minutes for seen in sightings(minute)[stream]) * 1_000
        for stream in FOLDERS
    }


def write_city(folder: Path) -> Path:
    """Makes the folders of the streams; the path of the static city."""
    for name in FOLDERS.values():
        (folder / name).mkdir(parents=True)
    city = folder / "city.ttl"
    city.write_text(city_text(), "utf-8")
    return city


def write_minute(folder: Path, number: int, minute: Minute) -> None:
    """Adds one minute to both streams."""
    for stream, seen in sightings(minute).items():
        target = folder / FOLDERS[stream] / f"minute-{number:04d}.tnq"
        lines = "".join(f"{registration.line}\n" for registration in seen)
        replace_file(target, lines.encode(), sync=Sync.NOTHING)


@dataclass
class TrafficFeed:
    """Writes minutes, the first at once and the others in a thread of its own, one each `pause` seconds."""

    folder: Path
    minutes: Sequence[Minute]
    failure: OSError | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def begin(self) -> None:
        """Writes the first minute, so that there is something to read."""
        write_minute(self.folder, 0, self.minutes[0])

    def go_on(self, pause: float) -> None:
        """Lets time pass from now on."""
        self._thread = threading.Thread(target=self._write, args=(pause,), name="demo-feed", daemon=True)
        self._thread.start()

    @property
    def going(self) -> bool:
        """Whether time has begun to pass."""
        return self._thread is not None

    def _write(self, pause: float) -> None:
        try:
            for number, minute in enumerate(self.minutes[1:], start=1):
                if self._stop.wait(pause):
                    return
                write_minute(self.folder, number, minute)
        except OSError as error:
            self.failure = error

    def wait(self) -> None:
        """Until nothing more will be written."""
        if self._thread is not None:
            self._thread.join()

    def stop(self) -> None:
        """Ends early, and waits until the last file is whole."""
        self._stop.set()
        self.wait()
