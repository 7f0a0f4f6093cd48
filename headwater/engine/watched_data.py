"""Linked data that lives elsewhere, looked at again while queries run: files and addresses.

A file is read again when its size or time of change is another one, an address when its server says that it has
changed (ETag, Last-Modified) or cannot tell. What is different then is one version of the data set. Where reading
fails, the data stays as it was, and the log says so.
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
from headwater.engine.static_files import find_files, put_in_graph, read_statements
from headwater.sources.source import SourceError
from headwater.terms.checking.input_limits import DOCUMENT_VARIABLE, largest_document
from headwater.terms.model import Quad
from headwater.terms.rdf_documents import RdfSyntaxError, rdf_format, read_quads

logger = logging.getLogger(__name__)
_TIMEOUT_SECONDS = 30.0


def is_web_address(data: object) -> bool:
    """Whether something is the address of a document."""
    return isinstance(data, str) and urlsplit(data).scheme in ("http", "https")


@dataclass
class WebDocument:
    """An RDF document at an address."""

    address: str
    _known: dict[str, str] = field(default_factory=dict)

    def read(self) -> list[Quad] | None:
        """Its statements; None where they are those that were read last."""
        import httpx

        accepted = "application/n-quads, application/trig, text/turtle, application/n-triples, application/ld+json"
        try:
            with httpx.stream(
                "GET",
                self.address,
                headers={"Accept": f"{accepted}, application/rdf+xml", **self._known},
                follow_redirects=True,
                timeout=_TIMEOUT_SECONDS,
            ) as found:
                if found.status_code == 304:
                    return None
                found.raise_for_status()
                content = self._read_content(found.iter_bytes())
        except httpx.HTTPError as error:
            raise SourceError(f"{self.address} cannot be read ({error}): check the address of the data") from None
        kind = found.headers.get("content-type", "").partition(";")[0].strip()
        format = RdfFormat.from_media_type(kind) or rdf_format(urlsplit(self.address).path)
        quads = list(read_quads(content, format=format, base_iri=self.address, scope=self.address, name=self.address))
        names = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
        self._known = {
            request: found.headers[response] for response, request in names.items() if response in found.headers
        }
        return quads

    def _read_content(self, pieces: Iterable[bytes]) -> bytes:
        """The unpacked document; it is not read on behind the limit, whatever its server says of its size."""
        limit = largest_document()
        content = bytearray()
        for piece in pieces:
            content += piece
            if len(content) > limit:
                raise SourceError(
                    f"{self.address} has more than {limit:,} bytes, the limit of {DOCUMENT_VARIABLE}: raise it, "
                    "or give the document as a file"
                )
        return bytes(content)


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


def open_watched(data: str | Path) -> WebDocument | WatchedFiles:
    """What is read, and read again."""
    return WebDocument(str(data)) if is_web_address(data) else WatchedFiles(str(data))


@dataclass
class RefreshedDataSet:
    """A data set that has what a source has; `seconds` is how often that is looked at."""

    source: WebDocument | WatchedFiles
    data: DataSet
    graph: str | None
    seconds: float
    _held: set[Quad] = field(default_factory=set)

    def begin(self, quads: Iterable[Quad]) -> None:
        """These statements are in the data set."""
        self._held = set(quads)

    def refresh(self) -> bool:
        """Take over what has changed, as one version; whether something had."""
        try:
            quads = self.source.read()
        except (OSError, SourceError, RdfSyntaxError, ValueError) as error:
            logger.warning("the data stays as it was: %s", error)
            return False
        if quads is None:
            return False
        now = set(put_in_graph(quads, self.graph))
        added, removed = now - self._held, self._held - now
        self._held = now
        if added or removed:
            self.data.change(added, removed)
        return bool(added or removed)


@contextmanager
def refresh_in_background(watched: Iterable[RefreshedDataSet]) -> Iterator[None]:
    """Look at sources in the background, each in its own rhythm."""
    end = threading.Event()
    threads = [threading.Thread(target=_refresh_until, args=(one, end.wait), daemon=True) for one in watched]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        end.set()
        for thread in threads:
            thread.join()


def _refresh_until(one: RefreshedDataSet, wait: Callable[[float], bool]) -> None:
    while not wait(one.seconds):
        one.refresh()
