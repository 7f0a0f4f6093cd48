"""Reading RDF documents: N-Triples, N-Quads, Turtle, TriG, N3, RDF/XML and JSON-LD, plain or compressed.

Blank nodes get the same labels in every run. A parser numbers anonymous nodes at random, so each document's
nodes are renamed in the order of their first appearance, behind a prefix made from the document's *scope*
(its path or content unless the caller gives another): two documents share no label. N-Triples and N-Quads
name all their nodes themselves; they keep those labels unless a scope is given.

>>> quads = list(read_quads(b"[] <http://example.org/p> 1 .", format=RdfFormat.TURTLE, scope="a"))
>>> quads == list(read_quads(b"[] <http://example.org/p> 1 .", format=RdfFormat.TURTLE, scope="a"))
True
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from pyoxigraph import RdfFormat

from headwater.errors import HeadwaterError, SettingError
from headwater.terms.checking.checked_parsing import read_document
from headwater.terms.model import BlankNode, Literal, NamedNode, Quad, Triple

FORMATS: dict[str, RdfFormat] = {
    ".nt": RdfFormat.N_TRIPLES,
    ".nq": RdfFormat.N_QUADS,
    ".ttl": RdfFormat.TURTLE,
    ".turtle": RdfFormat.TURTLE,
    ".trig": RdfFormat.TRIG,
    ".n3": RdfFormat.N3,
    ".rdf": RdfFormat.RDF_XML,
    ".owl": RdfFormat.RDF_XML,
    ".xml": RdfFormat.RDF_XML,
    ".jsonld": RdfFormat.JSON_LD,
    ".json": RdfFormat.JSON_LD,
}
_OPENERS: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}
BROKEN_COMPRESSION = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
"""What reading a compressed file raises where it is damaged."""
_LABELLED_FORMATS = (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)


class RdfSyntaxError(HeadwaterError, ValueError):
    """A document with a syntax error; the message names file, line and column."""

    def __init__(self, reason: str, source: str, line: int | None = None, column: int | None = None) -> None:
        place = ":".join(str(part) for part in (source, line, column) if part is not None)
        super().__init__(f"{place}: {reason}")
        self.reason = reason
        self.source = source
        self.line = line
        self.column = column

    @classmethod
    def from_parser(cls, error: SyntaxError, source: str) -> RdfSyntaxError:
        """The same error as pyoxigraph reports it, with the place taken from its fields."""
        reason = error.msg or "syntax error"
        if error.lineno is not None and reason.startswith("Parser error at line "):
            reason = reason.partition(": ")[2]
        return cls(reason, source, error.lineno, error.offset)


def rdf_format(path: str | Path) -> RdfFormat:
    """The format that a file's ending stands for; `.gz`, `.bz2` or `.xz` behind it is ignored."""
    ending = file_ending(path)
    try:
        return FORMATS[ending]
    except KeyError:
        raise SettingError(
            f"{path}: cannot tell the RDF format from the file ending {ending!r}; "
            f"give the file a name that ends in {', '.join(FORMATS)} ({', '.join(_OPENERS)} may follow)"
        ) from None


def file_ending(path: str | Path) -> str:
    """The ending in lower case with its dot, that of a compressed file not counted."""
    name = Path(path)
    return (name.with_suffix("") if is_compressed(name) else name).suffix.lower()


def is_compressed(path: str | Path) -> bool:
    return Path(path).suffix.lower() in _OPENERS


def compression_of(path: str | Path) -> str:
    """How a file of such a name is compressed, in words."""
    return _COMPRESSIONS.get(Path(path).suffix.lower(), "compressed")


def open_bytes(path: str | Path) -> IO[bytes]:
    """The file's bytes, decompressed where the ending of its name is that of a compressed file."""
    if not is_compressed(path):
        return open(path, "rb")
    found: IO[bytes] = _OPENERS[Path(path).suffix.lower()](path)
    return found


def decompress(stream: IO[bytes], path: str | Path) -> IO[bytes]:
    """The decompressed bytes of an open file with such a name; the caller closes the file."""
    found: IO[bytes] = _OPENERS[Path(path).suffix.lower()](stream) if is_compressed(path) else stream
    return found


def read_quads(
    source: str | Path | bytes,
    *,
    base_iri: str | None = None,
    format: RdfFormat | None = None,
    scope: str | None = None,
    name: str | None = None,
) -> Iterator[Quad]:
    """The quads of a document, one after the other; `RdfSyntaxError` where it breaks off.

    A `str` or `Path` is a file; `bytes` are the document itself and need a `format`. Relative IRIs are
    resolved against `base_iri`, or for a file against its own `file:` IRI. `name` is what errors call the
    document.
    """
    if isinstance(source, bytes):
        if format is None:
            raise SettingError("say the format of an RDF document that is given as bytes")
        label = name or "<bytes>"
        default_scope = blake2b(source, digest_size=16).hexdigest()
        yield from _rename_nodes(_parse(source, format, base_iri, label), format, scope, default_scope)
        return
    path = Path(source)
    chosen = format or rdf_format(path)
    base = base_iri or path.resolve().as_uri()
    with open_bytes(path) as stream:
        yield from _rename_nodes(_parse(stream, chosen, base, name or str(path)), chosen, scope, str(path))


def _parse(data: bytes | IO[bytes], format: RdfFormat, base_iri: str | None, name: str) -> Iterator[Quad]:
    try:
        yield from read_document(data, format, base_iri)
    except SyntaxError as error:
        raise RdfSyntaxError.from_parser(error, name) from None
    except BROKEN_COMPRESSION as error:
        raise RdfSyntaxError(f"broken {compression_of(name)} file ({error})", name) from None


def _rename_nodes(quads: Iterable[Quad], format: RdfFormat, scope: str | None, default_scope: str) -> Iterator[Quad]:
    if scope is None and format in _LABELLED_FORMATS:
        return iter(quads)
    rename = BlankNodeNames(default_scope if scope is None else scope)
    return (rename.quad(quad) for quad in quads)


class BlankNodeNames:
    """Renames the blank nodes of one document: `b<hash of the scope>n<number in order of appearance>`."""

    def __init__(self, scope: str) -> None:
        self._prefix = f"b{blake2b(scope.encode(errors='surrogatepass'), digest_size=8).hexdigest()}n"
        self._names: dict[BlankNode, BlankNode] = {}

    def node(self, node: BlankNode) -> BlankNode:
        """The new name of a node."""
        name = self._names.get(node)
        if name is None:
            name = self._names[node] = BlankNode(f"{self._prefix}{len(self._names)}")
        return name

    def triple(self, triple: Triple) -> Triple:
        """The triple with its nodes renamed, inside triple terms too; the same object if it has none."""
        subject, value = triple.subject, triple.object
        if isinstance(value, NamedNode | Literal) and not isinstance(subject, BlankNode):
            return triple
        if isinstance(subject, BlankNode):
            subject = self.node(subject)
        if isinstance(value, BlankNode):
            value = self.node(value)
        elif isinstance(value, Triple):
            value = self.triple(value)
        return Triple(subject, triple.predicate, value)

    def quad(self, quad: Quad) -> Quad:
        """The quad with its nodes renamed, the graph name first: it is what opens a graph in TriG."""
        graph = quad.graph_name
        if isinstance(graph, BlankNode):
            graph = self.node(graph)
        triple = self.triple(quad.triple)
        return Quad(triple.subject, triple.predicate, triple.object, graph)
