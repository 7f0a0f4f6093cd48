"""Terms as they were written, inside a store that knows numbers only by value.

pyoxigraph's store keeps `"01"^^xsd:integer` as `"1"` and `"-3"^^xsd:negativeInteger` as an `xsd:integer`. Two terms
would become one, and an answer would show a term that is not in the data. So a literal that the store would change goes
in under a datatype of our own, which the store leaves alone:

    "01"^^xsd:integer    is stored as    "01"^^<urn:headwater:exact:http://www.w3.org/2001/XMLSchema#integer>

Terms go into a store that queries read through `to_stored_quad`, and come out of it through `restore_term`.
`headwater.values.stored_form_queries` makes queries read such terms.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pyoxigraph import Store

from headwater.terms.model import XSD, Literal, NamedNode, Quad, Term, Triple

EXACT = "urn:headwater:exact:"
_STRING = XSD + "string"
_KEPT = {
    XSD + "integer": re.compile(r"0|-?[1-9][0-9]{0,17}"),
    XSD + "decimal": re.compile(r"-?(?:0|[1-9][0-9]{0,11})\.[0-9]{0,5}[1-9]"),
    XSD + "double": re.compile(r"0|-?[1-9][0-9]{0,11}|-?(?:0|[1-9][0-9]{0,7})\.[0-9]{0,5}[1-9]"),
    XSD + "boolean": re.compile(r"true|false"),
    XSD + "dateTime": re.compile(r"[12][0-9]{3}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3])(?::[0-9]{2}){2}Z?"),
}
"""Lexical forms that the store surely keeps, so that most literals need no test."""

_PROBE = NamedNode("urn:headwater:asking")


def is_kept(literal: Literal) -> bool:
    """Whether a store gives the literal back as it was."""
    datatype = literal.datatype.value
    if datatype == _STRING or not datatype.startswith(XSD):
        return True
    surely = _KEPT.get(datatype)
    return (surely is not None and surely.fullmatch(literal.value) is not None) or _is_given_back(literal)


@lru_cache(maxsize=65_536)
def _is_given_back(literal: Literal) -> bool:
    store = Store()
    store.add(Quad(_PROBE, _PROBE, literal))
    (quad,) = store
    return bool(quad.object == literal)


def to_stored_term(term: Term) -> Term:
    """The term to put into a store in place of this one: mostly itself."""
    if isinstance(term, Literal) and not is_kept(term):
        return Literal(term.value, datatype=NamedNode(EXACT + term.datatype.value))
    return to_stored_triple(term) if isinstance(term, Triple) else term


def to_stored_triple(triple: Triple) -> Triple:
    """The triple with its object as the store has to see it; the same object where nothing changes."""
    written = triple.object
    value = to_stored_term(written)
    return triple if value is written else Triple(triple.subject, triple.predicate, value)


def to_stored_quad(quad: Quad) -> Quad:
    """Like `to_stored_triple`, in its graph."""
    written = quad.object
    value = to_stored_term(written)
    return quad if value is written else Quad(quad.subject, quad.predicate, value, quad.graph_name)


def is_stored_form(term: object) -> bool:
    """Whether this is a literal that stands in a store for another one."""
    return isinstance(term, Literal) and term.datatype.value.startswith(EXACT)


def restore_term(term: Term) -> Term:
    """The term that was written, for one that came out of a store."""
    if isinstance(term, Literal):
        datatype = term.datatype.value
        if datatype.startswith(EXACT):
            return Literal(term.value, datatype=NamedNode(datatype.removeprefix(EXACT)))
    return restore_triple(term) if isinstance(term, Triple) else term


def restore_triple(triple: Triple) -> Triple:
    """The triple that was written, for one that came out of a store."""
    found = triple.object
    value = restore_term(found)
    return triple if value is found else Triple(triple.subject, triple.predicate, value)
