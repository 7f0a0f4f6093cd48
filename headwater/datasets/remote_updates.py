"""LOAD and SERVICE of a SPARQL Update, done by our own clients before pyoxigraph gets the update.

pyoxigraph would fetch both with an HTTP client that knows no egress policy. So a LOAD becomes the INSERT DATA of what
was fetched, and a SERVICE in a WHERE clause becomes VALUES (`execution.remote_solutions`):

    LOAD <http://example.org/city.ttl> INTO GRAPH <city>    →    INSERT DATA { GRAPH <city> { … } }

What is left is checked once more, by a scan that takes any trace of the two words outside of strings, IRIs, comments
and names for the keyword: nothing that pyoxigraph could read as LOAD or SERVICE reaches it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from pyoxigraph import DefaultGraph, RdfFormat

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Bgp, Project
from headwater.algebra.scope import nodes_of
from headwater.algebra.to_sparql import group_to_sparql
from headwater.datasets.errors import DataSetError
from headwater.egress.documents import fetch_document
from headwater.egress.policy import EgressPolicy
from headwater.errors import HeadwaterError
from headwater.execution.remote_solutions import FetchSolutions, RemoteSolutions, refuse_services
from headwater.language.lexer import Token, tokenize
from headwater.language.parser import parse
from headwater.terms.model import NamedNode, Quad, Term
from headwater.terms.rdf_documents import rdf_format, read_quads
from headwater.terms.redaction import redact_url
from headwater.terms.stored_forms import to_stored_quad

ACCEPT = (
    "application/n-quads, application/trig, text/turtle, application/n-triples, application/ld+json, "
    "application/rdf+xml"
)
"""The formats of RDF that are asked for."""

_REMOTE = re.compile(r"service|load", re.IGNORECASE)
_NEVER_KEYWORDS = re.compile(
    r"""\"\"\"(?:[^"\\]|\\.|"(?!""))*\"\"\" | \'\'\'(?:[^'\\]|\\.|'(?!''))*\'\'\'
      | "(?:[^"\\\n\r]|\\.)*" | '(?:[^'\\\n\r]|\\.)*'
      | <[^\x00-\x20<>"{}|^`\\]*> | \#[^\n\r]*
      | [?$]\w+ | (?<=:)(?:[\w.:-]|%[0-9A-Fa-f]{2}|\\[^uU\s])+""",
    re.VERBOSE | re.DOTALL,
)
_LOAD = re.compile(r"LOAD (?:SILENT )?(?:iri|pname) (?:INTO GRAPH (?:iri|pname) )?")
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
_ESCAPE_OR_BACKSLASH = re.compile(r"\\\\|" + _ESCAPE.pattern)


@dataclass(frozen=True)
class RemoteAccess:
    """How an update reaches what is not here: `fetch` asks endpoints, `egress` says which addresses may be asked."""

    fetch: FetchSolutions = refuse_services
    egress: EgressPolicy | None = None


@dataclass
class LocalUpdate:
    """An update without remote calls, and the custom functions that its text calls."""

    text: str
    functions: Mapping[NamedNode, Callable[..., Term | None]] = field(default_factory=dict)


def bring_in_remote_data(text: str, access: RemoteAccess) -> LocalUpdate:
    """Execute the LOAD and SERVICE of an update, and put the results into its text.

    A `DataSetError` where one of them stands in a place that this parser does not understand.
    """
    if not may_have_remote_call(text):
        return LocalUpdate(text)
    remote = RemoteSolutions(access.fetch)
    parts: list[str] = []
    done = 0
    for start, end, replacement in _replace_remote_calls(text, access, remote):
        parts += [text[done:start], replacement]
        done = end
    local = "".join([*parts, text[done:]])
    if may_have_remote_call(local):
        raise DataSetError(
            "it has a LOAD or a SERVICE in a place that cannot be understood: write SERVICE in a WHERE clause, LOAD as "
            "an operation of its own, and no prefix with one of these names"
        )
    return LocalUpdate(local, remote.functions)


def without_remote_calls(text: str) -> str:
    """The update with other operations in place of what would ask the network: as well or badly written as it is.

    A `SyntaxError` where a LOAD is wrong.
    """
    tokens = tokenize(text).tokens
    parts: list[str] = []
    done = depth = 0
    for index, token in enumerate(tokens):
        depth += {"{": 1, "}": -1}.get(token.key, 0)
        if depth == 0 and token.key == "LOAD":
            found = _LOAD.match(" ".join(one.key for one in tokens[index : index + 6]) + " ")
            if found is None:
                raise SyntaxError("LOAD takes the address of a document, and perhaps INTO GRAPH with the name of one")
            parts += [text[done : token.start], "CLEAR SILENT ALL"]
            done = tokens[index + found[0].count(" ") - 1].end
        elif depth and token.key == "SERVICE":
            parts += [text[done : token.start], "GRAPH "]
            is_silent = index + 1 < len(tokens) and tokens[index + 1].key == "SILENT"
            done = tokens[index + is_silent].end
    return "".join([*parts, text[done:]])


def may_have_remote_call(text: str) -> bool:
    """Whether a text might have the keyword LOAD or SERVICE for pyoxigraph, as written or by codepoint escapes."""
    readings = {text, _unescape(_ESCAPE, text), _unescape(_ESCAPE_OR_BACKSLASH, text)}
    return any(_REMOTE.search(_NEVER_KEYWORDS.sub(" ", one)) for one in readings if _REMOTE.search(one))


def _unescape(pattern: re.Pattern[str], text: str) -> str:
    def character(match: re.Match[str]) -> str:
        digits = match[1] or match[2]
        return chr(int(digits, 16)) if digits and int(digits, 16) <= 0x10FFFF else match[0]

    return pattern.sub(character, text)


class Replacement(NamedTuple):
    """A part of an update, from one character to another, and the text that takes its place."""

    start: int
    end: int
    text: str


def _replace_remote_calls(text: str, access: RemoteAccess, remote: RemoteSolutions) -> Iterator[Replacement]:
    """Replace each LOAD operation and each WHERE clause that has a SERVICE by what needs no network."""
    tokens = tokenize(text).tokens
    prologue_end, keyword, depth, start, has_service = 0, "", 0, 0, False
    for index, token in enumerate(tokens):
        if depth == 0 and token.key in ("PREFIX", "BASE"):
            prologue_end = tokens[min(index + (2 if token.key == "PREFIX" else 1), len(tokens) - 1)].end
        elif depth == 0 and token.key == "LOAD":
            yield _replace_load(text, text[:prologue_end], tokens[index:], access)
        elif depth == 0 and token.is_word:
            keyword = token.key
        elif token.key == "{":
            if depth == 0:
                start, has_service = token.start, False
            depth += 1
        elif token.key == "SERVICE":
            has_service = True
        elif token.key == "}":
            depth -= 1
            if depth == 0 and has_service and keyword == "WHERE":
                pattern = _replace_services(text[:prologue_end], text[start : token.end], remote)
                yield Replacement(start, token.end, pattern)


def _replace_services(prologue: str, clause: str, remote: RemoteSolutions) -> str:
    """A WHERE clause with the solutions of endpoints in place of SERVICE."""
    root = plan_query(parse(f"{_declarations_of(prologue)} SELECT * WHERE {clause}")).root
    while isinstance(root, Project):
        root = root.inner
    return f"{{ {group_to_sparql(remote.replace_services(root))} }}"


def _declarations_of(prologue: str) -> str:
    """The declarations before an operation, without the operations that stand between them."""
    tokens = tokenize(prologue).tokens
    found: list[str] = []
    for index, token in enumerate(tokens):
        if token.key in ("PREFIX", "BASE"):
            last = tokens[min(index + (2 if token.key == "PREFIX" else 1), len(tokens) - 1)]
            found.append(prologue[token.start : last.end])
    return " ".join(found)


def _replace_load(text: str, prologue: str, tokens: list[Token], access: RemoteAccess) -> Replacement:
    """Fetch the document of `LOAD [SILENT] iri [INTO GRAPH iri]`, and replace the operation by INSERT DATA.

    `tokens` begin with the LOAD; `prologue` has the prefixes that count there.
    """
    rest = iter(tokens[1:])
    token = next(rest)
    is_silent = token.key == "SILENT"
    source = next(rest) if is_silent else token
    last, graph = source, None
    if (into := next(rest, None)) is not None and into.key == "INTO":
        next(rest, None)
        last = next(rest, source)
        graph = resolve_iri(prologue, text[last.start : last.end])
    address = resolve_iri(prologue, text[source.start : source.end]).value
    try:
        quads = read_web_document(address, access.egress)
    except (HeadwaterError, OSError, ValueError):
        if not is_silent:
            raise
        quads = []
    return Replacement(tokens[0].start, last.end, _insert_data(quads, graph))


def resolve_iri(prologue: str, written: str) -> NamedNode:
    """The IRI that an operation names, with its prefix or its base."""
    root = plan_query(parse(f"{_declarations_of(prologue)} ASK {{ {written} {written} {written} }}")).root
    for node in nodes_of(root):
        if isinstance(node, Bgp) and isinstance(subject := node.triples[0].subject, NamedNode):
            return subject
    raise DataSetError("LOAD takes the address of a document")


def read_web_document(address: str, egress: EgressPolicy | None) -> list[Quad]:
    """The statements of the RDF document at an address."""
    found = fetch_document(address, egress, accept=ACCEPT)
    shown = redact_url(address)
    format = RdfFormat.from_media_type(found.media_type) or rdf_format(urlsplit(shown).path)
    return list(read_quads(found.content or b"", format=format, base_iri=shown, scope=shown, name=shown))


def _insert_data(quads: Iterable[Quad], graph: NamedNode | None) -> str:
    parts = []
    for quad in map(to_stored_quad, quads):
        name = graph if graph is not None and isinstance(quad.graph_name, DefaultGraph) else quad.graph_name
        triple = f"{quad.subject} {quad.predicate} {quad.object} ."
        parts.append(triple if isinstance(name, DefaultGraph) else f"GRAPH {name} {{ {triple} }}")
    return f"INSERT DATA {{ {' '.join(parts)} }}"
