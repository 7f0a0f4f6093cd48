"""Linked data that lives elsewhere, looked at again while queries run: files and addresses.

A file is read again when its size or time of change is another one, an address when its server says that it has
changed (ETag, Last-Modified) or cannot tell. What is different then is one version of the data set. Where reading or
writing fails, as on a full disk, the data stays as it was, the log says so, and it is tried again.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from pyoxigraph import RdfFormat

from headwater.datasets.dataset import DataSet
from headwater.datasets.remote_updates import ACCEPT
from headwater.egress.documents import WebError, fetch_document
from headwater.egress.policy import EgressPolicy
from headwater.engine.static_files import find_files, put_in_graph, read_statements
from headwater.sources.source import SourceError
from headwater.terms.model import Quad
from headwater.terms.rdf_documents import rdf_format, read_quads
from headwater.terms.redaction import redact_url

logger = logging.getLogger(__name__)
_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 1.0, 60.0


def is_web_address(data: object) -> bool:
    """Whether something is the address of a document."""
    return isinstance(data, str) and urlsplit(data).scheme in ("http", "https")


@dataclass
class WebDocument:
    """An RDF document at an address; `egress` says which addresses may be asked, redirects included."""

    address: str = field(repr=False)
    egress: EgressPolicy | None = None
    _known: dict[str, str] = field(default_factory=dict)

    def read(self) -> list[Quad] | None:
        """Its statements; None where they are those that were read last."""
        # Neither the data nor a message may hold the secrets of the address.
        shown = redact_url(self.address)
        try:
            found = fetch_document(self.address, self.egress, accept=ACCEPT, headers=self._known)
        except WebError as error:
            raise SourceError(f"{error}: check the address of the data") from None
        if found.content is None:
            return None
        format = RdfFormat.from_media_type(found.media_type) or rdf_format(urlsplit(shown).path)
        quads = list(read_quads(found.content, format=format, base_iri=shown, scope=shown, name=shown))
        names = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
        self._known = {
            request: found.headers[response] for response, request in names.items() if response in found.headers
        }
        return quads


@dataclass
class WatchedFiles:
    """RDF files by path or pattern."""

    pattern: str
    _known: object = None

    def read(self) -> list[Quad] | None:
        """Their statements; None where the files are those that were read last."""
        stamps = [(path, (found := os.stat(path)).st_size, found.st_mtime_ns) for path in find_files(self.pattern)]
        if stamps == self._known:
            return None
        quads = read_statements(self.pattern)
        self._known = stamps
        return quads


def open_watched(data: str | Path, egress: EgressPolicy | None = None) -> WebDocument | WatchedFiles:
    """What is read, and read again."""
    return WebDocument(str(data), egress) if is_web_address(data) else WatchedFiles(str(data))


@dataclass
class RefreshedDataSet:
    """A data set that has what a source has; `seconds` is how often that is looked at."""

    source: WebDocument | WatchedFiles
    data: DataSet
    graph: str | None
    seconds: float
    _held: set[Quad] = field(default_factory=set)
    _wanted: set[Quad] | None = None
    """What the source has, where that could not be taken over yet."""
    _failure: str | None = None
    """Why the last attempt failed."""

    def begin(self, quads: Iterable[Quad]) -> None:
        """These statements are in the data set."""
        self._held = set(quads)

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt failed."""
        return self._failure is not None

    def refresh(self) -> bool:
        """Take over what has changed, as one version; whether something had.

        Whatever fails is reported, once for each reason, and the data stays as it was; the next call tries again.
        """
        try:
            has_changed = self._take_over()
        except Exception as error:
            # Nobody waits for this thread: an error that ended it would end the refreshing in silence.
            reason = str(error) or type(error).__name__
            if reason != self._failure:
                logger.warning("the data stays as it was, and is looked at again: %s", reason)
            self._failure = reason
            return False
        if self._failure is not None:
            logger.warning("the data is refreshed again, after: %s", self._failure)
            self._failure = None
        return has_changed

    def _take_over(self) -> bool:
        quads = self.source.read()
        if quads is not None:
            self._wanted = set(put_in_graph(quads, self.graph))
        if self._wanted is None:
            return False
        added, removed = self._wanted - self._held, self._held - self._wanted
        if added or removed:
            self.data.change(added, removed)
        self._held, self._wanted = self._wanted, None
        return bool(added or removed)


@contextmanager
def refresh_in_background(watched: Iterable[RefreshedDataSet]) -> Iterator[None]:
    """Look at sources in the background, each in its own rhythm."""
    end = threading.Event()
    threads = [
        threading.Thread(target=_refresh_until, args=(one, end.wait), name="headwater-refresh", daemon=True)
        for one in watched
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        end.set()
        for thread in threads:
            thread.join()


def _refresh_until(one: RefreshedDataSet, wait: Callable[[float], bool]) -> None:
    """Refresh again and again; what failed is tried again sooner, at growing distances."""
    retry = _FIRST_RETRY_SECONDS
    while not wait(min(one.seconds, retry) if one.is_failing else one.seconds):
        one.refresh()
        retry = min(2 * retry, _LAST_RETRY_SECONDS) if one.is_failing else _FIRST_RETRY_SECONDS
