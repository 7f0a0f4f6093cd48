"""SPARQL 1.1 Protocol: a query as an HTTP request, and the body of the answer as a table or a boolean.

There are three methods (section 2.1): the query is in a form, is the body itself, or is in the address.

    >>> build_request(QueryMethod.GET, "http://example.org/sparql", "ASK {}").url
    'http://example.org/sparql?query=ASK+%7B%7D'

Results are JSON or XML. We accept either; the first character decides which one came, because the content type is
often wrong. The blank nodes of an answer are local to it, so each gets a label with a scope: the same label in two
answers is two nodes.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias
from urllib.parse import urlencode, urlsplit, urlunsplit

from pyoxigraph import QueryBoolean, QueryResultsFormat

from headwater.federation.endpoint.endpoint_settings import QueryMethod
from headwater.terms.checking.checked_parsing import parse_results
from headwater.terms.checking.nesting import TooDeep
from headwater.terms.model import BlankNode, Row, Term, Triple

ACCEPT = (
    "application/sparql-results+json, application/sparql-results+xml;q=0.9, "
    "application/json;q=0.5, application/xml;q=0.4, text/xml;q=0.3"
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([\w.:-]+)")
_XML_END = re.compile(r"</([\w.-]+:)?sparql\s*>\s*(<!--((?!-->).)*-->\s*)*$", re.DOTALL)
_LONGEST_QUOTE = 60


class NotResults(ValueError):
    """A body that is not the whole of a SPARQL result."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request, without the headers that all requests have in common."""

    method: str
    url: str
    content_type: str | None = None
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A SELECT answer: rows in the order of `variables`, None where a variable is unbound."""

    variables: tuple[str, ...]
    rows: tuple[Row, ...]

    def project(self, names: Sequence[str]) -> Iterable[Row]:
        """The rows with these variables in this order; a variable that the table does not have is unbound."""
        columns = [self.variables.index(name) if name in self.variables else None for name in names]
        return (tuple(None if column is None else row[column] for column in columns) for row in self.rows)


Results: TypeAlias = ResultTable | bool
"""The answer to SELECT, or to ASK."""


def build_request(
    method: QueryMethod, url: str, query: str, default_graphs: Sequence[str] = (), named_graphs: Sequence[str] = ()
) -> HttpRequest:
    """The HTTP request that carries a query; the graphs make up its RDF dataset (section 2.1.4)."""
    dataset = [
        *(("default-graph-uri", graph) for graph in default_graphs),
        *(("named-graph-uri", graph) for graph in named_graphs),
    ]
    match method:
        case QueryMethod.POST_FORM:
            body = urlencode([("query", query), *dataset]).encode()
            return HttpRequest("POST", url, "application/x-www-form-urlencoded", body)
        case QueryMethod.POST_DIRECT:
            return HttpRequest("POST", _with_parameters(url, dataset), "application/sparql-query", query.encode())
        case QueryMethod.GET:
            return HttpRequest("GET", _with_parameters(url, [("query", query), *dataset]))


def _with_parameters(url: str, pairs: Sequence[tuple[str, str]]) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query="&".join(filter(None, (parts.query, urlencode(pairs)))), fragment=""))


def blank_node_scope(url: str, query: str) -> str:
    """A scope for the blank nodes of an answer. The same query has the same scope, so answers can be compared."""
    return blake2b(f"{url}\n{query}".encode(errors="surrogatepass"), digest_size=6).hexdigest()


def read_results(body: bytes, content_type: str = "", scope: str = "") -> Results:
    """Parse a body in JSON or XML, whatever its content type; raises `NotResults` if it is not a SPARQL result."""
    text = _decode_body(body, content_type)
    format_ = _detect_format(text)
    try:
        return _parse(text, format_, scope)
    except TooDeep as error:
        raise NotResults(f"the answer is {error}") from None
    except (SyntaxError, ValueError) as error:
        plain = _drop_extensions(text) if format_ is QueryResultsFormat.JSON else None
        if plain is None:
            raise NotResults(f"not a SPARQL result, or only a part of one: {_shorten_quote(str(error))}") from error
    try:
        return _parse(plain, format_, scope)
    except (SyntaxError, ValueError) as error:
        raise NotResults(f"not a SPARQL result: {_shorten_quote(str(error))}") from error


def _parse(text: bytes | str, format_: QueryResultsFormat, scope: str) -> Results:
    if not _is_complete(text, format_):
        # The parser takes the end of the data for the end of the results.
        raise ValueError("the end is missing")
    results = parse_results(text, format_)
    if isinstance(results, QueryBoolean):
        return bool(results)
    names = tuple(variable.value for variable in results.variables)
    rows: Iterable[Row] = map(tuple, results)
    if scope and _can_have_blank_nodes(text):
        rows = (tuple(_scope_blank_nodes(term, scope) for term in row) for row in rows)
    try:
        return ResultTable(names, tuple(rows))
    finally:
        # An error keeps this frame, and what pyoxigraph made in this thread must not be freed in another one.
        del results, rows


def _can_have_blank_nodes(text: bytes | str) -> bool:
    return b"bnode" in text if isinstance(text, bytes) else "bnode" in text


def _is_complete(text: bytes | str, format_: QueryResultsFormat) -> bool:
    tail = text[-1024:]
    ending = (tail.decode("utf-8", "replace") if isinstance(tail, bytes) else tail).rstrip()
    return ending.endswith("}") if format_ is QueryResultsFormat.JSON else _XML_END.search(ending) is not None


def _drop_extensions(text: bytes | str) -> str | None:
    """The same results without the members that some engines add (times, sizes) and the parser does not expect."""
    try:
        whole = json.loads(text)
        head, results = whole["head"], whole.get("results")
        kept = {"boolean": whole["boolean"]} if results is None else {"results": {"bindings": results["bindings"]}}
        return json.dumps({"head": {"vars": head.get("vars", [])}, **kept})
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _decode_body(body: bytes, content_type: str) -> bytes | str:
    """The body, decoded where it is not UTF-8."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if body.startswith(mark):
            return _decode(body, "utf-8-sig" if encoding == "utf-8" else encoding)
    declared = _CHARSET.search(content_type)
    written = _XML_ENCODING.match(body.lstrip()[:200])
    name = declared[1] if declared else written[1].decode("ascii") if written else "utf-8"
    return body if name.lower() in ("utf-8", "utf8", "us-ascii", "ascii") else _decode(body, name)


def _decode(body: bytes, encoding: str) -> str:
    try:
        # The declaration would name an encoding that the text does not have any more.
        return re.sub(r"^\s*<\?xml[^>]*\?>", "", body.decode(encoding))
    except (LookupError, UnicodeDecodeError) as error:
        raise NotResults(f"the answer cannot be read as {encoding}") from error


def _detect_format(text: bytes | str) -> QueryResultsFormat:
    start = text[:1024].lstrip()
    beginning = start.decode("utf-8", "replace") if isinstance(start, bytes) else start
    if not beginning:
        raise NotResults("the answer is empty")
    if beginning.startswith("{"):
        return QueryResultsFormat.JSON
    if beginning.startswith("<") and not re.match(r"<(!doctype\s+html|html)\b", beginning, re.IGNORECASE):
        return QueryResultsFormat.XML
    kind = "a web page" if beginning.startswith("<") else "neither JSON nor XML"
    raise NotResults(f"the answer is {kind}: {_shorten_quote(beginning)!r}")


def _shorten_quote(text: str) -> str:
    """A text on one line, cut to a length that fits into a message."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_QUOTE else line[:_LONGEST_QUOTE] + "…"


def _scope_blank_nodes(term: Term | None, scope: str) -> Term | None:
    if isinstance(term, BlankNode):
        return BlankNode(f"e{scope}{term.value}")
    if isinstance(term, Triple):
        return Triple(_scope_blank_nodes(term.subject, scope), term.predicate, _scope_blank_nodes(term.object, scope))  # type: ignore[arg-type]
    return term
