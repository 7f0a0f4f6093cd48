"""Literals to ids: compiled code and `headwater.terms.ids.term_ids` agree on every lexical form."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Quad, RdfFormat, parse

from headwater.terms.ids.inline_layout import InlineType, inline_type
from headwater.terms.ids.term_ids import encode, is_inline
from headwater.terms.model import XSD, Literal, NamedNode
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.scanner import scan
from tests.terms.scanning.comparing import words
from tests.terms.strategies import datatypes, lexical_forms, numbers

DATATYPES = ("string", "integer", "int", "long", "decimal", "double", "float", "boolean", "date", "dateTime", "short")


def check(literals: list[Literal], parsed: int | None = None) -> None:
    """The scanner gives the literals the ids that `encode` gives them."""
    text = "".join(f"<a:s> <a:p> {literal} .\n" for literal in literals).encode()
    scanned = scan(text, LineFormat.N_TRIPLES)
    found = scanned.objects.tolist()
    assert [(str(literal), term_id) for literal, term_id in zip(literals, found, strict=True)] == [
        (str(literal), encode(literal)) for literal in literals
    ]
    if parsed is not None:
        assert scanned.parsed_lines <= parsed


def typed(lexical: str, datatype: str) -> Literal:
    return Literal(lexical, datatype=NamedNode(XSD + datatype))


@given(st.lists(st.tuples(lexical_forms, datatypes), max_size=20))
def test_generated_forms(forms: list[tuple[str, NamedNode]]) -> None:
    check([Literal(lexical, datatype=datatype) for lexical, datatype in forms])


@given(st.lists(numbers, max_size=20))
def test_numbers_of_all_types(forms: list[str]) -> None:
    check([typed(lexical, datatype) for lexical, datatype in product(forms, DATATYPES)])


EDGES = [
    *("", " 1", "1 "),
    *words("0 -0 +0 00 01 -01 1 -1 --1 1- - + . -. 1. .1 1..2 1_0 0x1"),
    *words("0.0 -0.0 0.00 00.0 1.0 1.00 -1.50 0.1 0.000000000000001 0.0000000000000001 0.000000000000000"),
    *words("144115188075855871 144115188075855872 -144115188075855872 -144115188075855873 999999999999999999"),
    *words("1000000000000000000 9223372036854775807 9223372036854775808 -9223372036854775808"),
    *("9" * 40, "1" * 41, "0." + "0" * 50 + "1", "1." + "0" * 50),
    *words("9007199254740991 9007199254740992 9007199254740993 -9007199254740992 -9007199254740993"),
    *words("16777216 16777217 -16777216 1.6777216 0.0000000001 0.00000000001 1677721.6 1.6777217"),
    *words("1E0 1.0E0 1.00E0 1.0E00 1.0E-0 1.0E+0 1.0e0 -1.0E0 0.0E0 -0.0E0 0.0E1 0.00E0 0.5E1 10.0E0 1.E0 .5E0"),
    *words("1.5E3 1.5E-3 1.0E5 1.0E6 2.0E6 3.0E6 1.0E7 1.5E6 1.25E5 1.0E308 1.0E309 1.0E-400 1.0E999 1.0E1000"),
    *words("1e400 INF -INF +INF NaN nan 1.0E 1.0E- 1.23456789012E0 1.2345678901234567E5 1.0212459373016372E1"),
    *words("9.9E15 1.0E-5 1.0E-10 1.0E-11 4.8828125E-4 4.8828124E-4 0.00048828125 0.00048828124999999999"),
    *words("0.0004882812500000001 2097152.0 2097151.9999999998 2097151.999999999 2097152 2.097152E6"),
    *words("1048576.0000000002 1048576.0000000001 10.212459373016372 10.2124593730163720 10.21245937301637"),
    *words("10.212459373016373 56.18696229571611 0.1234567890123456 0.12345678901234567 0.123456789012345678"),
    *words("5e-324 1.7976931348623157E308 true false True TRUE t 2 tru truee falsy"),
    *words("2014-08-01 2014-08-01Z 2014-08-01+02:00 2014-08-01-00:00 2014-08-01+00:00 2014-02-29 2016-02-29"),
    *words("1900-02-29 2000-02-29 0000-01-01 0001-01-01 9999-12-31 -0044-03-15 12014-01-01 2014-13-01 2014-00-01"),
    *words("2014-01-00 2014-01-32 2014-04-31 2014-8-01 2014-08-1 2014/08/01 2014-08-01+14:00 2014-08-01+14:01"),
    *words("2014-08-01-14:00 2014-08-01+02:60 2014-08-01+2:00 2014-08-01z 2014-08-01+0200"),
]
CLOCKS = words("00:00:00 23:59:59 24:00:00 07:60:00 07:50:60 7:50:00 07:50 07:50:00. 07:50:00,5 aa:bb:cc")
FRACTIONS = ("", ".0", ".5", ".123", ".1230", ".123456", ".1234567")
ZONES = ("", "Z", "+00:00", "-00:00", "+02:00", "-13:59", "+14:00", "+14:01", "+2:00", "Zz", "+aa:00")
DAYS = ("2014-08-01", "1969-12-31", "1399-01-01", "1400-01-01", "2540-12-31", "2541-01-01", "0000-01-01", "-0044-03-15")


@pytest.mark.parametrize("datatype", DATATYPES)
def test_edges(datatype: str) -> None:
    check([typed(lexical, datatype) for lexical in EDGES])


def test_edges_of_date_times() -> None:
    check([typed(f"{d}T{c}{f}{z}", "dateTime") for d, c, f, z in product(DAYS, CLOCKS, FRACTIONS, ZONES)], parsed=0)
    check([typed(lexical, "dateTime") for lexical in ("2014-08-01", "2014-08-01 07:50:00", "2014-08-01T", "T07:50:00")])


def test_doubles_in_their_shortest_form_and_beside_it() -> None:
    generator = random.Random(7)
    forms = []
    for _ in range(4_000):
        number = generator.choice((1, -1)) * 2.0 ** generator.uniform(-12.5, 22.5)
        shortest = repr(number)
        digits, power = f"{number:.16e}".split("e")
        forms += [shortest, f"{shortest}0", shortest[:-1], f"{number:.17g}", f"{number:.16g}", f"{number:.18g}"]
        forms += [shortest[:-1] + str((int(shortest[-1]) + step) % 10) for step in (1, 9)]
        forms += [f"{digits.rstrip('0')}E{int(power)}", f"{digits}E{int(power)}"]
    check([typed(lexical, "double") for lexical in forms], parsed=20)


def test_doubles_beside_powers_of_two() -> None:
    forms = []
    for power in range(-13, 24):
        for step in range(-3, 4):
            number = 2.0**power * (1 + step * 2.0**-52)
            below = 2.0**power * (1 + step * 2.0**-53)
            forms += [repr(number), repr(below), f"{number:.17g}", f"{below:.16g}"]
    check([typed(lexical, "double") for lexical in forms])


def test_strings_of_every_length_and_character() -> None:
    characters = [chr(code) for code in range(0x20, 0x800)]
    characters += [chr(code) for code in range(0x800, 0x110000, 61) if not 0xD800 <= code < 0xE000]
    characters += ["\ud7ff", "\ue000", "\uffff", "\ufffe", "\ufffd", "\U00010000", "\U0010ffff", "\ufdd0"]
    check([Literal("a" * (length // 40) + character) for length, character in enumerate(characters[:320])])
    check([Literal(character) for character in characters])
    check([Literal("long enough " + character, language="en") for character in characters])


def test_characters_as_they_stand() -> None:
    """Every character of the first plane that may stand in a line, not escaped, alone and in a longer string."""
    characters = [chr(code) for code in range(0x10000) if code not in (10, 13, 34, 92) and not 0xD800 <= code < 0xE000]
    texts = [f"{'as long as that ' * (code % 2)}{character}" for code, character in enumerate(characters)]
    document = "".join(f'<a:s> <a:p> "{text}" .\n' for text in texts).encode()
    scanned = scan(document, LineFormat.N_TRIPLES)
    assert scanned.objects.tolist() == [encode(Literal(text)) for text in texts]
    assert scanned.parsed_lines == 33


def test_iris_of_all_kinds_of_characters() -> None:
    codes = [*range(0x400), *range(0x400, 0x11000, 29), 0xD7FF, 0xE000, 0xF8FF, 0xF900, 0xFDCF, 0xFDD0, 0xFFEF, 0xFFFE]
    characters = [chr(code) for code in codes if code != 10 and not 0xD800 <= code < 0xE000]
    forms = ("a:{}", "http://ex/{}b", "http://{}x/", "a:#{}", "a:?{}")
    iris = [forms[code % len(forms)].format(character) for code, character in enumerate(characters)]
    document = "".join(f"<a:s> <a:p> <{iri}> .\n" for iri in iris).encode()
    scanned = scan(document, LineFormat.N_TRIPLES)
    good = [bool(parsed) for parsed in map(parsed_iri, iris)]
    assert scanned.objects.tolist() == [
        encode(NamedNode(iri)) for iri, is_good in zip(iris, good, strict=True) if is_good
    ]
    assert len(scanned.bad) == good.count(False)


def parsed_iri(iri: str) -> list[Quad]:
    """The one quad with this IRI; none where the parser does not take it."""
    try:
        return list(parse(f"<a:s> <a:p> <{iri}> .".encode(), format=RdfFormat.N_TRIPLES))
    except SyntaxError:
        return []


def test_typical_values_are_inline() -> None:
    assert inline_type(encode(typed("21.5", "double"))) is InlineType.DOUBLE
    assert not is_inline(encode(typed("1e400", "double")))
    check([typed("21.5", "double"), typed("1e400", "double")], parsed=0)
