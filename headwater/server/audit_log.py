"""The audit log: who changed what, a line of JSON for each request that may change something."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

from headwater.terms.durable_files import append_durably
from headwater.terms.text_lines import shorten_text

_LONGEST_VALUE = 500


class AuditLog:
    """Appends to a file, which only its owner may read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, caller: str, address: str, method: str, path: str, status: int, **what: str) -> None:
        """Write who asked for what, and how it was answered; `what` says it where the path does not."""
        entry = {
            "at": datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds"),
            "caller": caller,
            "address": address,
            "method": method,
            "path": shorten_text(path),
            "status": status,
            **{key: shorten_text(value, _LONGEST_VALUE) for key, value in what.items()},
        }
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        append_durably(self._file, line, self._path, is_forced=False)

    def close(self) -> None:
        os.close(self._file)
