"""An event that a signal handler may set."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from threading import Event


class SignalEvent(Event):
    """An event whose `set` may be called by a handler of a signal.

    A handler runs in the midst of whatever the main thread does. Where that is `wait` of a `threading.Event`, the
    handler would wait for a lock that the thread it interrupts has taken. A simple queue may be filled at any time.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_set = False
        self._calls: SimpleQueue[None] = SimpleQueue()

    def is_set(self) -> bool:
        """Whether it was set, and not cleared since."""
        return self._is_set

    def set(self) -> None:
        """Wake up everyone who waits, and keep anyone from waiting."""
        self._is_set = True
        self._calls.put(None)

    def clear(self) -> None:
        """Have others wait from now on."""
        self._is_set = False
        try:
            while True:
                self._calls.get_nowait()
        except Empty:
            pass

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, for so many seconds at most, sometimes for less; whether it is set."""
        if not self._is_set:
            try:
                self._calls.get(timeout=timeout)
            except Empty:
                return self.is_set()
            if self.is_set():
                # For the next one who waits.
                self._calls.put(None)
        return self.is_set()
