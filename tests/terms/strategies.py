"""Generated RDF terms of all kinds, with lexical forms that lie on the borders of what an id can hold."""

from __future__ import annotations

from hypothesis import strategies as st
from pyoxigraph import BaseDirection

from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Term, Triple

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
iris = st.builds(
    lambda tail: NamedNode("http://example.org/" + tail),
    st.text("abcXYZ019-._~é漢/?=&", max_size=10),
)
blank_nodes = st.builds(BlankNode, st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,9}", fullmatch=True))

odd_numbers = st.sampled_from(
    [
        *("0", "-0", "+1", "01", "1.", ".5", "0.5", "-0.0", "00.5", "1.50", "1e3", "1E3", "1.0E0", "1.00E0"),
        *(
            "-0.0E0",
            "0.0E0",
            "1.0E-7",
            "1.0E21",
            "INF",
            "-INF",
            "NaN",
            "inf",
            " 1",
            "1 ",
            "1_0",
            "١٢",
            "",
            "-",
        ),
        *("144115188075855871", "144115188075855872", "-144115188075855872", "-144115188075855873"),
        *("9007199254740992", "9007199254740991", "-9007199254740992", "0.1234567890123456", "1e400"),
        *("10.212459373016372", "1.0212459373016372E1", "16777216", "16777217", "0.00048828125", "2097151.7"),
        "9" * 50,
    ]
)
numbers = st.one_of(
    odd_numbers,
    st.integers().map(str),
    st.integers(-(2**60), 2**60).map(str),
    st.floats().map(repr),
    st.floats(-3e6, 3e6).map(repr),
    st.floats(-3e6, 3e6).map(lambda x: f"{x:E}"),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.from_regex(r"-?[0-9]{1,5}(\.[0-9]{1,16})?(E-?[0-9]{1,2})?", fullmatch=True),
)
zones = st.one_of(st.sampled_from(["", "Z", "+00:00", "-00:00", "+14:00", "-14:00", "+14:01", "+02:60"]))
zones = st.one_of(zones, st.from_regex(r"[+-][01][0-9]:[0-5][0-9]", fullmatch=True))
fractions = st.one_of(st.just(""), st.from_regex(r"\.[0-9]{1,8}", fullmatch=True))
dates = st.one_of(
    st.dates().map(str),
    st.sampled_from(["0000-01-01", "2015-02-29", "-0044-03-15", "12014-01-01", "2014-1-1"]),
)
clocks = st.one_of(st.times().map(lambda t: t.strftime("%H:%M:%S")), st.sampled_from(["24:00:00", "23:59:60"]))

lexical_forms = st.one_of(
    numbers,
    text,
    st.sampled_from(["true", "false", "TRUE", "\0", "abc\0", "\0\0\0\0\0\0\0", "éééé", "1234567", "12345678"]),
    st.tuples(dates, zones).map("".join),
    st.tuples(dates, st.just("T"), clocks, fractions, zones).map("".join),
)
datatypes = st.sampled_from(
    [
        "string",
        "integer",
        "int",
        "long",
        "short",
        "decimal",
        "double",
        "float",
        "boolean",
        "date",
        "dateTime",
        "time",
    ]
).map(lambda name: NamedNode(XSD + name))
literals = st.one_of(
    st.builds(lambda value, datatype: Literal(value, datatype=datatype), lexical_forms, datatypes),
    st.builds(lambda value, tag: Literal(value, language=tag), text, st.sampled_from(["en", "de-CH", "zh-Hans-CN"])),
    st.builds(
        lambda value, direction: Literal(value, language="ar", direction=direction),
        text,
        st.sampled_from([BaseDirection.LTR, BaseDirection.RTL]),
    ),
    st.builds(lambda value, datatype: Literal(value, datatype=datatype), text, iris),
)
simple_terms: st.SearchStrategy[Term] = st.one_of(iris, blank_nodes, literals)
triples = st.builds(Triple, st.one_of(iris, blank_nodes), iris, simple_terms)
terms: st.SearchStrategy[Term] = st.one_of(simple_terms, triples)
