"""RDF terms, their 64-bit ids, and RDF text: documents, stream elements, results.

- `model`: the term classes, `Element` and `BadElement`.
- `ids`, `dictionary`: terms as 64-bit ids, inline or hashed, and back.
- `reading`: RDF documents of all syntaxes; `writing`: SPARQL results and graphs.
- `timestamps`: instants and durations.
- `elements`: stream files, by ending; behind it `tnq`, `timed_graphs`, and `rows` with `template`.
"""

from headwater.terms.dictionary import HashCollision, TermDictionary, UnknownTerm
from headwater.terms.durations import parse_duration
from headwater.terms.elements import ElementReader, StreamFormat, element_reader, split_ranges
from headwater.terms.ids import decode_inline, encode, is_inline, term_hash, term_text
from headwater.terms.inline_layout import NO_TERM, InlineType, inline_instant, inline_number, inline_type
from headwater.terms.model import (
    RDF,
    XSD,
    BadElement,
    BlankNode,
    Element,
    Literal,
    NamedNode,
    Quad,
    Row,
    Term,
    Triple,
    Variable,
)
from headwater.terms.reading import RdfSyntaxError, rdf_format, read_quads
from headwater.terms.rows import read_csv, read_json_array, read_json_lines
from headwater.terms.template import Template, TemplateError
from headwater.terms.timed_graphs import read_jsonld_lines, read_timed_nquads, read_timed_trig
from headwater.terms.timestamps import format_time, parse_time
from headwater.terms.tnq import read_tnq
from headwater.terms.writing import (
    json_bindings,
    json_boolean,
    nquads,
    ntriples,
    term_to_json,
    turtle,
    write_csv,
    write_tsv,
    write_xml,
    write_xml_boolean,
)

__all__ = [
    "NO_TERM",
    "RDF",
    "XSD",
    "BadElement",
    "BlankNode",
    "Element",
    "ElementReader",
    "HashCollision",
    "InlineType",
    "Literal",
    "NamedNode",
    "Quad",
    "RdfSyntaxError",
    "Row",
    "StreamFormat",
    "Template",
    "TemplateError",
    "Term",
    "TermDictionary",
    "Triple",
    "UnknownTerm",
    "Variable",
    "decode_inline",
    "element_reader",
    "encode",
    "format_time",
    "inline_instant",
    "inline_number",
    "inline_type",
    "is_inline",
    "json_bindings",
    "json_boolean",
    "nquads",
    "ntriples",
    "parse_duration",
    "parse_time",
    "rdf_format",
    "read_csv",
    "read_json_array",
    "read_json_lines",
    "read_jsonld_lines",
    "read_quads",
    "read_timed_nquads",
    "read_timed_trig",
    "read_tnq",
    "split_ranges",
    "term_hash",
    "term_text",
    "term_to_json",
    "turtle",
    "write_csv",
    "write_tsv",
    "write_xml",
    "write_xml_boolean",
]
