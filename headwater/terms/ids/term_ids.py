"""RDF terms as 64-bit ids (CQ5): inline where the id can hold the term, a hash of the term otherwise.

Equal terms have equal ids on every machine and in every process. An inline id gives its term back exactly,
lexical form included; what would not come back exactly is hashed. The bits are described in
`headwater.terms.ids.inline_layout`.

>>> from headwater.terms.model import Literal, NamedNode, XSD
>>> seven = Literal("7", datatype=NamedNode(XSD + "integer"))
>>> is_inline(encode(seven)), decode_inline(encode(seven)) == seven
(True, True)
>>> is_inline(encode(Literal("07", datatype=NamedNode(XSD + "integer"))))
False
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headwater.terms.ids import inline_numbers, inline_times
from headwater.terms.ids.inline_layout import (
    PAYLOAD_MASK,
    VALUE_BITS,
    VALUE_MASK,
    InlineType,
    inline_id,
    inline_type,
    is_inline,
)
from headwater.terms.ids.inline_numbers import InlineValue
from headwater.terms.ids.text_hash import hash_text
from headwater.terms.model import XSD, Literal, NamedNode, Term, Triple

_ENCODERS: dict[str, Callable[[str], InlineValue | None]] = {
    XSD + "string": inline_numbers.encode_string,
    XSD + "integer": partial(inline_numbers.encode_integer, kind=InlineType.INTEGER),
    XSD + "int": partial(inline_numbers.encode_integer, kind=InlineType.INT),
    XSD + "long": partial(inline_numbers.encode_integer, kind=InlineType.LONG),
    XSD + "decimal": inline_numbers.encode_decimal_or_quotient,
    XSD + "double": inline_numbers.encode_double,
    XSD + "float": inline_numbers.encode_float,
    XSD + "boolean": inline_numbers.encode_boolean,
    XSD + "date": inline_times.encode_date,
    XSD + "dateTime": inline_times.encode_date_time,
}

_TEXTS: tuple[tuple[InlineType, str, Callable[[int], str]], ...] = (
    (InlineType.STRING, "string", inline_numbers.decode_string),
    (InlineType.INTEGER, "integer", inline_numbers.decode_integer),
    (InlineType.INT, "int", inline_numbers.decode_integer),
    (InlineType.LONG, "long", inline_numbers.decode_integer),
    (InlineType.DECIMAL, "decimal", inline_numbers.decode_scaled),
    (InlineType.QUOTIENT, "decimal", inline_numbers.decode_quotient),
    (InlineType.DOUBLE, "double", inline_numbers.decode_scaled),
    (InlineType.FLOAT, "float", inline_numbers.decode_scaled),
    (InlineType.DOUBLE_SCIENTIFIC, "double", inline_numbers.decode_scientific),
    (InlineType.FLOAT_SCIENTIFIC, "float", inline_numbers.decode_scientific),
    (InlineType.DOUBLE_BITS, "double", inline_numbers.decode_double_bits),
    (InlineType.DOUBLE_BITS_SCIENTIFIC, "double", inline_numbers.decode_double_bits_scientific),
    (InlineType.BOOLEAN, "boolean", inline_numbers.decode_boolean),
    (InlineType.DATE, "date", inline_times.decode_date),
    *(
        (kind, "dateTime", partial(inline_times.decode_date_time, kind))
        for kind in (InlineType.DATE_TIME, InlineType.DATE_TIME_UTC, InlineType.DATE_TIME_OFFSET)
    ),
)
_DECODERS: dict[int, tuple[NamedNode, Callable[[int], str]]] = {
    int(kind): (NamedNode(XSD + datatype), text) for kind, datatype, text in _TEXTS
}


def encode(term: Term) -> int:
    """The id of a term, as a signed 64-bit integer."""
    if isinstance(term, Literal):
        encoder = _ENCODERS.get(term.datatype.value)
        if encoder is not None:
            found = encoder(term.value)
            if found is not None:
                return inline_id(*found)
    return hash_term(term)


def term_text(term: Term) -> str:
    """The term in canonical N-Triples syntax, triple terms in their `<<( … )>>`."""
    return f"<<( {term} )>>" if isinstance(term, Triple) else str(term)


def hash_term(term: Term) -> int:
    """63 bits for the term's canonical N-Triples text (`headwater.terms.ids.text_hash`)."""
    return hash_text(term_text(term).encode())


def decode_inline(term_id: int) -> Literal:
    """The term inside an inline id; a `ValueError` where the id is a hash or no id of a term."""
    found = _DECODERS.get((term_id & PAYLOAD_MASK) >> VALUE_BITS) if term_id < 0 else None
    if found is None:
        found = _DECODERS[inline_type(term_id)]
    datatype, text = found
    return Literal(text(term_id & VALUE_MASK), datatype=datatype)


__all__ = ["decode_inline", "encode", "hash_term", "is_inline", "term_text"]
