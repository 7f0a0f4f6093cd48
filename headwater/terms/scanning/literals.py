"""Literals to ids, for compiled code: the datatype decides who reads the lexical form."""

from __future__ import annotations

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.inline_layout import InlineType
from headwater.terms.model import RDF, XSD
from headwater.terms.scanning.ascii_bytes import AT_SIGN, CARET, GREATER_THAN, LESS_THAN
from headwater.terms.scanning.byte_hashes import hash_and_check_of, low_bytes
from headwater.terms.scanning.iri_ends import UNSURE_END, iri_end
from headwater.terms.scanning.memory import byte_at, word_at
from headwater.terms.scanning.numbers import (
    NOT_INLINE,
    UNSURE,
    scan_boolean,
    scan_decimal,
    scan_double,
    scan_escaped_string,
    scan_float,
    scan_integer,
    scan_string,
)
from headwater.terms.scanning.strings import language_end, string_end
from headwater.terms.scanning.times import scan_date, scan_date_time


def _word(text: str, place: int = 0) -> np.uint64:
    return np.uint64(int.from_bytes(text.encode()[place : place + 8], "little"))


_XSD = "<" + XSD
_XSD_LENGTH = len(_XSD)
_XSD_0, _XSD_8, _XSD_16, _XSD_24 = (_word(_XSD, place) for place in (0, 8, 16, 24))
_XSD_LAST = _word(_XSD, _XSD_LENGTH - 8)
_RDF = "<" + RDF
_RDF_LENGTH = len(_RDF)
_RDF_LAST = _word(_RDF, _RDF_LENGTH - 8)
_LONGEST_NAME = 8

_STRING = _word("string")
_DATATYPES = ("double", "integer", "dateTime", "decimal", "float", "boolean", "date", "int", "long")
_DOUBLE, _INTEGER, _DATE_TIME, _DECIMAL, _FLOAT, _BOOLEAN, _DATE, _INT, _LONG = range(len(_DATATYPES))
_NAMES = np.array([_word(name) for name in _DATATYPES], dtype=np.uint64)
_UNKNOWN = -1
_INTEGER_KIND, _INT_KIND, _LONG_KIND = (int(kind) for kind in (InlineType.INTEGER, InlineType.INT, InlineType.LONG))


@compiled
def _is_xsd(start):  # type: ignore[no-untyped-def]
    """Whether an IRI of XML Schema begins at the address of a `<`."""
    return (
        word_at(start + _XSD_LENGTH - 8) == _XSD_LAST
        and word_at(start) == _XSD_0
        and word_at(start + 8) == _XSD_8
        and word_at(start + 16) == _XSD_16
        and word_at(start + 24) == _XSD_24
    )


@compiled
def _name_length(start):  # type: ignore[no-untyped-def]
    """How many bytes stand before the `>`; one too many where it is too far away for the name of a known datatype."""
    length = 0
    while length <= _LONGEST_NAME and byte_at(start + length) != GREATER_THAN:
        length += 1
    return length


@compiled
def _datatype_of(name):  # type: ignore[no-untyped-def]
    """The number of the datatype with this name, or `_UNKNOWN`."""
    for number in range(_NAMES.shape[0]):
        if _NAMES[number] == name:
            return number
    return _UNKNOWN


@compiled
def _scan_value(datatype, start, end):  # type: ignore[no-untyped-def]
    """The id of a lexical form with one of the datatypes of XML Schema that have inline ids."""
    if datatype == _DOUBLE:
        return scan_double(start, end)
    if datatype == _INTEGER:
        return scan_integer(start, end, _INTEGER_KIND)
    if datatype == _DATE_TIME:
        return scan_date_time(start, end)
    if datatype == _DECIMAL:
        return scan_decimal(start, end)
    if datatype == _FLOAT:
        return scan_float(start, end)
    if datatype == _BOOLEAN:
        return scan_boolean(start, end)
    if datatype == _DATE:
        return scan_date(start, end)
    return scan_integer(start, end, _INT_KIND if datatype == _INT else _LONG_KIND)


@compiled
def _scan_plain_literal(start, closing, escapes, end, wanted):  # type: ignore[no-untyped-def]
    """A string, whose canonical text ends with the closing quote; the statement goes on at `end`."""
    lexical = start + 1
    length = closing + 1 - start
    found = scan_escaped_string(lexical, closing) if escapes else scan_string(lexical, closing)
    check = np.uint32(0)
    if found == NOT_INLINE and wanted:
        found, check = hash_and_check_of(start, length)
    return end, found, length, check


@compiled
def scan_literal(start, wanted):  # type: ignore[no-untyped-def]
    """For the address of the opening quote: where the literal ends, its id, length and check of its canonical text.

    The end is `UNSURE_END` where the parser shall decide. Where the id is not wanted, a hash is not computed.
    """
    closing, escapes = string_end(start + 1)
    nothing = (np.int64(UNSURE_END), np.int64(0), np.int64(0), np.uint32(0))
    if closing == UNSURE_END:
        return nothing
    follows = byte_at(closing + 1)
    if follows == CARET:
        datatype = closing + 3
        if byte_at(closing + 2) != CARET or byte_at(datatype) != LESS_THAN:
            return nothing
        found = np.int64(NOT_INLINE)
        end = np.int64(UNSURE_END)
        if _is_xsd(datatype):
            name_start = datatype + _XSD_LENGTH
            length = _name_length(name_start)
            if 0 < length <= _LONGEST_NAME:
                name = word_at(name_start)
                if length < _LONGEST_NAME:
                    name = low_bytes(name, length)
                if name == _STRING:
                    return _scan_plain_literal(start, closing, escapes, name_start + length + 1, wanted)
                known = _datatype_of(name)
                if known != _UNKNOWN:
                    end = name_start + length + 1
                    if wanted:
                        found = _scan_value(known, start + 1, closing)
                        if found == UNSURE:
                            return nothing
        if end == UNSURE_END:
            end = iri_end(datatype)
            if end == UNSURE_END or (end - datatype > _RDF_LENGTH and _is_rdf(datatype)):
                return nothing
    elif follows == AT_SIGN:
        end = language_end(closing + 1)
        if end == UNSURE_END:
            return nothing
        found = np.int64(NOT_INLINE)
    else:
        return _scan_plain_literal(start, closing, escapes, closing + 1, wanted)
    length = end - start
    check = np.uint32(0)
    if found == NOT_INLINE and wanted:
        found, check = hash_and_check_of(start, length)
    return end, found, length, check


@compiled
def _is_rdf(start):  # type: ignore[no-untyped-def]
    """Whether an IRI may be one of RDF's own, some of which are no datatypes to be written out."""
    return word_at(start + _RDF_LENGTH - 8) == _RDF_LAST
