"""Writing answers: SPARQL 1.1 results as JSON, XML, CSV and TSV, and graphs as N-Triples, N-Quads and Turtle.

The forms are those of the W3C recommendations "SPARQL 1.1 Query Results JSON Format", "SPARQL Query Results
XML Format" and "SPARQL 1.1 Query Results CSV and TSV Formats", with triple terms and base directions as in
SPARQL 1.2. All but CSV keep terms exactly. XML 1.0 has no way to write most control characters: there they
become U+FFFD.

>>> from headwater.terms.model import Literal
>>> json_bindings(["x"], [(Literal("a"),), (None,)])["results"]
{'bindings': [{'x': {'type': 'literal', 'value': 'a'}}, {}]}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from pyoxigraph import RdfFormat, serialize

from headwater.terms.ids.term_ids import term_text
from headwater.terms.model import XSD, BlankNode, NamedNode, Quad, Row, Term, Triple

_XSD_STRING = XSD + "string"
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_XML_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<sparql xmlns="http://www.w3.org/2005/sparql-results#" xmlns:its="http://www.w3.org/2005/11/its">\n'
)


def term_to_json(term: Term) -> dict[str, Any]:
    """A term as the value of a binding in SPARQL results JSON."""
    if isinstance(term, NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, BlankNode):
        return {"type": "bnode", "value": term.value}
    if isinstance(term, Triple):
        parts = {"subject": term.subject, "predicate": term.predicate, "object": term.object}
        return {"type": "triple", "value": {role: term_to_json(part) for role, part in parts.items()}}
    found: dict[str, Any] = {"type": "literal", "value": term.value}
    if term.language is not None:
        found["xml:lang"] = term.language
        if term.direction is not None:
            found["its:dir"] = term.direction.value
    elif term.datatype.value != _XSD_STRING:
        found["datatype"] = term.datatype.value
    return found


def bindings_to_json(variables: Sequence[str], rows: Iterable[Row]) -> dict[str, Any]:
    """A SELECT answer as a SPARQL results JSON object; an unbound variable is absent from its binding."""
    bindings = [
        {variable: term_to_json(term) for variable, term in zip(variables, row, strict=True) if term is not None}
        for row in rows
    ]
    return {"head": {"vars": list(variables)}, "results": {"bindings": bindings}}


def boolean_to_json(value: bool) -> dict[str, Any]:
    """An ASK answer as a SPARQL results JSON object."""
    return {"head": {}, "boolean": value}


def write_xml(variables: Sequence[str], rows: Iterable[Row]) -> str:
    """A SELECT answer as a SPARQL results XML document."""
    head = "".join(f"    <variable name={quoteattr(variable)}/>\n" for variable in variables)
    results = "".join(
        "    <result>\n"
        + "".join(
            f"      <binding name={quoteattr(variable)}>{_xml_term(term)}</binding>\n"
            for variable, term in zip(variables, row, strict=True)
            if term is not None
        )
        + "    </result>\n"
        for row in rows
    )
    return f"{_XML_HEAD}  <head>\n{head}  </head>\n  <results>\n{results}  </results>\n</sparql>\n"


def write_xml_boolean(value: bool) -> str:
    """An ASK answer as a SPARQL results XML document."""
    return f"{_XML_HEAD}  <head/>\n  <boolean>{'true' if value else 'false'}</boolean>\n</sparql>\n"


def _xml_term(term: Term) -> str:
    """A term in the XML format of SPARQL results."""
    if isinstance(term, NamedNode):
        return f"<uri>{_xml_text(term.value)}</uri>"
    if isinstance(term, BlankNode):
        return f"<bnode>{_xml_text(term.value)}</bnode>"
    if isinstance(term, Triple):
        return (
            f"<triple><subject>{_xml_term(term.subject)}</subject>"
            f"<predicate>{_xml_term(term.predicate)}</predicate>"
            f"<object>{_xml_term(term.object)}</object></triple>"
        )
    attributes = ""
    if term.language is not None:
        attributes = f" xml:lang={quoteattr(term.language)}"
        if term.direction is not None:
            attributes += f' its:version="2.0" its:dir={quoteattr(term.direction.value)}'
    elif term.datatype.value != _XSD_STRING:
        attributes = f" datatype={quoteattr(term.datatype.value)}"
    return f"<literal{attributes}>{_xml_text(term.value)}</literal>"


def _xml_text(text: str) -> str:
    # XML readers may normalise white space, above all at the ends of a text; character references stay.
    escaped = escape(_NOT_IN_XML.sub("\ufffd", text), {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"})
    middle = escaped.strip(" ")
    start = len(escaped) - len(escaped.lstrip(" "))
    return "&#32;" * start + middle + "&#32;" * (len(escaped) - start - len(middle))


def write_csv(variables: Sequence[str], rows: Iterable[Row]) -> str:
    """A SELECT answer as CSV: values without their types, lines that end in CR LF, as RFC 4180 says."""
    lines = [",".join(map(_csv_cell, variables))]
    lines += [",".join("" if term is None else _csv_cell(_csv_value(term)) for term in row) for row in rows]
    return "".join(f"{line}\r\n" for line in lines)


def _csv_value(term: Term) -> str:
    return term_text(term) if isinstance(term, BlankNode | Triple) else term.value


def _csv_cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text


def write_tsv(variables: Sequence[str], rows: Iterable[Row]) -> str:
    """A SELECT answer as TSV: terms in the syntax of N-Triples, which escapes tabs and line breaks."""
    lines = ["\t".join(f"?{variable}" for variable in variables)]
    lines += ["\t".join("" if term is None else term_text(term) for term in row) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def write_ntriples(triples: Iterable[Triple]) -> str:
    """A graph as N-Triples, one line per triple in the given order."""
    return "".join(f"{triple} .\n" for triple in triples)


def write_nquads(quads: Iterable[Quad]) -> str:
    """A data set as N-Quads, one line per quad in the given order."""
    return "".join(f"{quad} .\n" for quad in quads)


def write_turtle(triples: Iterable[Triple], prefixes: Mapping[str, str] | None = None) -> str:
    """A graph as Turtle; `prefixes` maps names such as `ex` to the IRIs that they stand for."""
    data = serialize(triples, format=RdfFormat.TURTLE, prefixes=dict(prefixes or {}))
    return (data or b"").decode()
