"""What was registered over HTTP, on disk: queries and streams by their names, as plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from headwater.errors import report_file_errors
from headwater.running.checkpoints import CheckpointError
from headwater.terms.durable_files import replace_file

PUSH = "push"
"""The source of a stream that is fed over HTTP."""


@dataclass(frozen=True, slots=True)
class QueryEntry:
    """A query: its text, the arguments of `Engine.register`, and whether it is paused.

    `gauges` says that its numbers are metrics, `callback` to which address its answers are sent. With `is_fixed` it
    stands in the settings file, and HTTP cannot change it. `owner` is the name of the token that registered it.
    """

    text: str
    options: Mapping[str, Any] = field(default_factory=dict)
    gauges: bool = False
    callback: str = ""
    is_paused: bool = False
    is_fixed: bool = False
    owner: str = ""


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """A stream: `push` or the address of its source, what its messages are, and the folder of its spool."""

    source: str = PUSH
    template: str | None = None
    format: str | None = None
    time: str | None = None
    idle: str | None = None
    folder: str = ""
    is_fixed: bool = False
    owner: str = ""

    def is_same(self, other: StreamEntry) -> bool:
        """Whether both describe the same source."""
        return replace(self, folder="", owner="", is_fixed=False) == replace(other, folder="", owner="", is_fixed=False)


class Registry:
    """The entries of a state folder. Those of the settings file are beside them, and not on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.queries: dict[str, QueryEntry] = {}
        self.streams: dict[str, StreamEntry] = {}
        if path.exists():
            remedy = "put the file back from a copy, or use another state folder"
            with report_file_errors(CheckpointError, f"the registry {path}", remedy):
                known = json.loads(path.read_text("utf-8"))
                self.queries = {name: QueryEntry(**entry) for name, entry in known["queries"].items()}
                self.streams = {name: StreamEntry(**entry) for name, entry in known["streams"].items()}

    def add_fixed(self, queries: Mapping[str, QueryEntry], streams: Mapping[str, StreamEntry]) -> None:
        """Add what the settings file has; it goes before what has the same name.

        Whether a query is paused, and where a stream has its spool, is taken from before.
        """
        for name, query in queries.items():
            before = self.queries.get(name)
            self.queries[name] = replace(query, is_fixed=True, is_paused=before is not None and before.is_paused)
        for name, stream in streams.items():
            known = self.streams.get(name)
            self.streams[name] = replace(stream, is_fixed=True, folder="" if known is None else known.folder)
        self.queries = {name: one for name, one in self.queries.items() if not one.is_fixed or name in queries}
        self.streams = {name: one for name, one in self.streams.items() if not one.is_fixed or name in streams}

    def save(self) -> None:
        """Write all entries; they are on disk when this returns."""
        content = {
            "queries": {name: asdict(entry) for name, entry in self.queries.items()},
            "streams": {name: asdict(entry) for name, entry in self.streams.items()},
        }
        replace_file(self._path, json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass"))
