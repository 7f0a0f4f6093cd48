"""Terms as 64-bit ids: exact round trips, stable hashes, numbers that come out of the bits."""

from __future__ import annotations

import struct
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.terms.ids.inline_layout import NO_TERM, InlineType, id_to_instant, id_to_number, inline_type
from headwater.terms.ids.term_ids import decode_inline, encode, is_inline, term_text
from headwater.terms.ids.text_hash import hash_text
from headwater.terms.model import XSD, Literal, NamedNode, Term
from headwater.terms.timestamps import parse_time
from headwater.values.numeric import as_single
from tests.terms.strategies import fractions, numbers, terms


def typed(lexical: str, datatype: str) -> Literal:
    return Literal(lexical, datatype=NamedNode(XSD + datatype))


@given(terms)
def test_every_term_gets_a_64_bit_id_and_inline_ones_come_back_exactly(term: Term) -> None:
    term_id = encode(term)
    assert -(2**63) < term_id < 2**63
    if is_inline(term_id):
        assert decode_inline(term_id) == term
        assert str(decode_inline(term_id)) == str(term)
    else:
        assert term_id == hash_text(term_text(term).encode()) >= 0


@given(st.lists(terms, max_size=20))
def test_different_terms_have_different_ids(found: list[Term]) -> None:
    assert len({encode(term) for term in found}) == len(set(found))


@pytest.mark.parametrize(
    ("lexical", "datatype", "kind"),
    [
        ("7", "integer", InlineType.INTEGER),
        ("-144115188075855872", "integer", InlineType.INTEGER),
        ("7", "int", InlineType.INT),
        ("7", "long", InlineType.LONG),
        ("-12.50", "decimal", InlineType.DECIMAL),
        ("0.05", "decimal", InlineType.DECIMAL),
        ("18", "double", InlineType.DOUBLE),
        ("18.0", "double", InlineType.DOUBLE),
        ("1.0E0", "double", InlineType.DOUBLE_SCIENTIFIC),
        ("10.212459373016372", "double", InlineType.DOUBLE_BITS),
        ("1.0212459373016372E1", "double", InlineType.DOUBLE_BITS_SCIENTIFIC),
        ("7.4", "float", InlineType.FLOAT),
        ("7.4E0", "float", InlineType.FLOAT_SCIENTIFIC),
        ("true", "boolean", InlineType.BOOLEAN),
        ("0", "boolean", InlineType.BOOLEAN),
        ("1234567", "string", InlineType.STRING),
        ("", "string", InlineType.STRING),
        ("ééé", "string", InlineType.STRING),
        ("2014-08-01", "date", InlineType.DATE),
        ("0001-01-01-14:00", "date", InlineType.DATE),
        ("2014-08-01T07:50:00", "dateTime", InlineType.DATE_TIME),
        ("2014-08-01T07:50:00.120Z", "dateTime", InlineType.DATE_TIME_UTC),
        ("1969-12-31T23:59:59.999999Z", "dateTime", InlineType.DATE_TIME_UTC),
        ("2014-08-01T07:50:00.5+02:00", "dateTime", InlineType.DATE_TIME_OFFSET),
    ],
)
def test_inlined(lexical: str, datatype: str, kind: InlineType) -> None:
    term = typed(lexical, datatype)
    assert is_inline(encode(term))
    assert inline_type(encode(term)) is kind
    assert decode_inline(encode(term)) == term


@pytest.mark.parametrize(
    ("lexical", "datatype"),
    [
        ("01", "integer"),
        ("+1", "integer"),
        ("-0", "integer"),
        ("144115188075855872", "integer"),
        ("9" * 5000, "integer"),
        ("1.", "decimal"),
        (".5", "decimal"),
        ("-0.0", "decimal"),
        ("1.00E0", "double"),
        ("1e0", "double"),
        ("NaN", "double"),
        ("-0.0E0", "double"),
        ("1073741825", "float"),
        ("0.0000000000001", "float"),
        ("TRUE", "boolean"),
        ("12345678", "string"),
        ("éééé", "string"),
        ("a\0", "string"),
        ("2015-02-29", "date"),
        ("2014-08-01-00:00", "date"),
        ("2014-08-01T24:00:00", "dateTime"),
        ("2014-08-01T07:50:00.1234567Z", "dateTime"),
        ("9999-08-01T07:50:00Z", "dateTime"),
        ("7", "short"),
    ],
)
def test_not_inlined(lexical: str, datatype: str) -> None:
    assert not is_inline(encode(typed(lexical, datatype)))


def test_language_strings_are_not_inlined() -> None:
    assert not is_inline(encode(Literal("a", language="en")))


def test_ids_are_the_same_everywhere() -> None:
    assert encode(typed("42", "integer")) == -(2**63) + (1 << 58) + 2**57 + 42
    program = (
        "from headwater.terms.ids.term_ids import encode; from headwater.terms.model import *;"
        "print(encode(NamedNode('http://example.org/city')), encode(Literal('\\t\\u00e9\"', language='en')))"
    )
    for seed in ("1", "2"):
        result = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        other = encode(Literal('\té"', language="en"))
        assert result.stdout.split() == [str(encode(NamedNode("http://example.org/city"))), str(other)]


@given(numbers, st.sampled_from(["integer", "int", "long", "decimal", "double", "float"]))
@example("10.212459373016372", "double")
@example("0.3", "float")
def test_numbers_inside_ids(lexical: str, datatype: str) -> None:
    term_id = encode(typed(lexical, datatype))
    if not is_inline(term_id):
        return
    number = id_to_number(term_id)
    if datatype == "decimal":
        assert number == Decimal(lexical)
    elif datatype == "double":
        assert number == float(lexical)
    elif datatype == "float":
        assert number == struct.unpack("<f", struct.pack("<f", float(lexical)))[0]
    else:
        assert number == int(lexical)


@given(st.integers(-(2**57), 2**57 - 1), st.integers(-(2**57), 2**57 - 1))
def test_ids_of_integers_sort_as_the_integers(first: int, second: int) -> None:
    ids = encode(typed(str(first), "integer")), encode(typed(str(second), "integer"))
    assert (ids[0] < ids[1]) == (first < second)


@given(st.text(max_size=7), st.text(max_size=7))
def test_ids_of_short_strings_sort_as_their_code_points(first: str, second: str) -> None:
    try:
        ids = encode(Literal(first)), encode(Literal(second))
    except ValueError:
        return
    if all(map(is_inline, ids)):
        assert (ids[0] < ids[1]) == (first < second)


@given(st.datetimes(), fractions, st.sampled_from(["", "Z", "+02:00", "-13:30", "+00:00"]))
def test_instants_inside_ids(moment, fraction: str, zone: str) -> None:
    lexical = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + fraction + zone
    term_id = encode(typed(lexical, "dateTime"))
    if is_inline(term_id):
        assert id_to_instant(term_id) == parse_time(lexical)


def test_no_term_is_no_inline_id_and_hashes_cannot_be_decoded() -> None:
    assert not is_inline(NO_TERM)
    with pytest.raises(ValueError):
        decode_inline(NO_TERM)
    with pytest.raises(ValueError, match="dictionary"):
        decode_inline(encode(NamedNode("http://example.org/")))
    assert id_to_number(encode(Literal("a"))) is None
    assert id_to_instant(encode(Literal("a"))) is None


@given(st.floats(2**-20, 2**24, width=32), st.integers(0, 12), st.sampled_from([-1, 0, 1]))
@example(1048576.25, 1, 0)
def test_a_float_inside_an_id_is_rounded_once(below: float, scale: int, beside: int) -> None:
    """Also where its digits are next to the middle between two floats."""
    bits = struct.unpack("<i", struct.pack("<f", below))[0]
    (above,) = struct.unpack("<f", struct.pack("<i", bits + 1))
    digits = round((Fraction(below) + Fraction(above)) / 2 * 10**scale) + beside
    text = f"{Decimal(digits).scaleb(-scale):f}"
    term = typed(text, "float")
    assert is_inline(encode(term)) == (digits <= 1 << 30)
    if is_inline(encode(term)):
        assert id_to_number(encode(term)) == as_single(Fraction(text))
        assert decode_inline(encode(term)) == term
