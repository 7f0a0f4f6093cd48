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
from headwater.terms.ids.term_key import forget_with_hash
from headwater.terms.ids.text_hash import hash_and_check
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

_REMEMBERED_HASHES = 1 << 12
_last_hashes: dict[Term, tuple[int, int]] = {}
forget_with_hash(_last_hashes.clear)

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
    return _hash_and_check(term)[0]


def encode_with_check(term: Term) -> tuple[int, int]:
    """The id of a term, and the check of its text (`terms.ids.text_hash`), 0 where the id is inline."""
    if isinstance(term, Literal):
        encoder = _ENCODERS.get(term.datatype.value)
        if encoder is not None:
            found = encoder(term.value)
            if found is not None:
                return inline_id(*found), 0
    return _hash_and_check(term)


def term_text(term: Term) -> str:
    """The term in canonical N-Triples syntax, triple terms in their `<<( … )>>`."""
    return f"<<( {term} )>>" if isinstance(term, Triple) else str(term)


def _hash_and_check(term: Term) -> tuple[int, int]:
    """Hash and check of the term's canonical N-Triples text (`headwater.terms.ids.text_hash`).

    The last ones are remembered: a program asks for the check, and then each of its evaluators for the id.
    """
    known = _last_hashes.get(term)
    if known is None:
        if len(_last_hashes) >= _REMEMBERED_HASHES:
            _last_hashes.clear()
        known = _last_hashes[term] = hash_and_check(term_text(term).encode())
    return known


def decode_inline(term_id: int) -> Literal:
    """The term inside an inline id; a `ValueError` where the id is a hash or no id of a term."""
    found = _DECODERS.get((term_id & PAYLOAD_MASK) >> VALUE_BITS) if term_id < 0 else None
    if found is None:
        found = _DECODERS[inline_type(term_id)]
    datatype, text = found
    return Literal(text(term_id & VALUE_MASK), datatype=datatype)


__all__ = ["decode_inline", "encode", "encode_with_check", "is_inline", "term_text"]
