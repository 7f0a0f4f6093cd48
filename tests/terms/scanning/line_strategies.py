"""Generated lines: good ones in all spellings, nearly good ones, and bytes that mean nothing."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.terms.scanning.comparing import words
from tests.terms.strategies import datatypes, lexical_forms

XSD = "http://www.w3.org/2001/XMLSchema#"

_iri_parts = st.text("aZ09-._~!$&'()*+,;=:@/?#%[]{}|\\^`\"<> é漢\U0001f600\x7f\t", max_size=12)
_schemes = st.sampled_from(
    [
        *words("http:// https:// http://ex.org/ https://ex.org/a# http: http:/ HTTP://ex/ http://a:80/ http://[::1]/"),
        *words("urn: a: a+b.c-d: file:/// 1: : http://u@h/ http://a:x/ a://b"),
        "",
    ]
)
_odd_iris = st.builds(lambda scheme, rest: f"<{scheme}{rest}>", _schemes, _iri_parts)
_escaped_iris = st.sampled_from(
    ["<http://ex/\\u00e9>", "<http://ex/\\U0001F600>", "<http://ex/\\u0020>", "<http://ex/%41>", "<http://ex/%4>"]
)
plain_iris = st.builds("<http://example.org/{}{}>".format, st.sampled_from(["s", "a/b#"]), st.integers(0, 3))
iris = st.one_of(plain_iris, plain_iris, plain_iris, _odd_iris, _escaped_iris)
blank_nodes = st.builds("_:{}".format, st.text("aZ09-_.:é·", max_size=6))
nodes = st.one_of(iris, iris, blank_nodes)

_string_parts = st.one_of(
    st.text("abc xyz019'<>.@^", max_size=9),
    st.sampled_from(words(r"""\n \t \r \b \f \" \\ \' \u0041 \U0001F600 \u00e9 \x \u12""")),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.text("éα漢\U0001f600\u07ff\u0800\uffff\ufffd\ufffe\U0010ffff", max_size=5),
)
_strings = st.lists(_string_parts, max_size=5).map(lambda parts: '"' + "".join(parts).replace("\n", "") + '"')
_languages = st.one_of(
    st.sampled_from(words("@en @de-ch @en-US @EN @x @en--ltr @en--rtl @abc @abcd @en- @zh-hans-cn @")),
    st.from_regex(r"@[a-zA-Z]{1,4}(-[a-zA-Z0-9]{1,3})?", fullmatch=True),
)
_datatypes = st.one_of(
    datatypes.map(lambda datatype: f"^^{datatype}"),
    iris.map(lambda iri: f"^^{iri}"),
    st.sampled_from(
        [
            *("^^", "^", "^^<>", f"^^<{XSD}>", f"^^<{XSD}doubles>", f"^^ <{XSD}double>"),
            f"^^<{XSD}nonNegativeInteger>",
            "^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
            "^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString>",
            "^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML>",
        ]
    ),
)


def _quoted(lexical: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
    return '"' + "".join(escapes.get(character, character) for character in lexical) + '"'


literals = st.one_of(
    _strings,
    st.builds(lambda lexical, datatype: _quoted(lexical) + f"^^{datatype}", lexical_forms, datatypes),
    st.builds(lambda lexical, datatype: _quoted(lexical) + f"^^{datatype}", lexical_forms, datatypes),
    st.builds(str.__add__, _strings, _languages),
    st.builds(str.__add__, _strings, _datatypes),
)
triple_terms = st.builds(lambda s, p, o: f"<<( {s} {p} {o} )>>", plain_iris, plain_iris, literals)
objects = st.one_of(nodes, literals, literals, literals, triple_terms)

_gaps = st.sampled_from([" ", " ", " ", " ", "\t", "  ", "", " \t ", "\x0b"])
_usual_ends = st.sampled_from([" .", " .", ".", " . ", " .\r"])
_ends = st.one_of(_usual_ends, st.sampled_from([" .\r\r", " . # note", " .#", "", " ..", " .\r \r", " . x", "\x0c."]))
_graphs = st.one_of(st.just(""), st.just(""), st.just(""), nodes.map(lambda name: " " + name))

_begins = st.sampled_from(["", "", "", " "])
statements = st.tuples(_begins, nodes, _gaps, iris, _gaps, objects, _graphs, _ends).map("".join)
plain_statements = st.tuples(plain_iris, st.just(" "), plain_iris, st.just(" "), objects, st.just(" .")).map("".join)

stamps = st.one_of(
    st.sampled_from(["1000", "1000", "1000", "2000", "-5", "1970-01-01T00:00:01Z"]),
    st.sampled_from(
        [
            *("+1000", "01000", "", " 1000", "1000 ", "0", "-0", "-", "noon", "1000.5", "9" * 15, "9" * 18, "9" * 19),
            *("253402300799999", "253402300800000", "-62135596800000", "-62135596800001", "١٢", "1\u00a0"),
            *("2014-08-01T07:50:00", "2014-08-01 07:50:00", "2014-08-01T07:50:00.123456789Z", "2014-08-01T24:00:00Z"),
            *("2014-08-01T07:50:00.5+02:00", "2014-08-01T07:50:00-00:00", "2014-08-01T07:50:00 +0200"),
            *("2015-02-29T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
            *("0000-01-01T00:00:00Z", "2016-02-29T23:59:59.000001Z"),
        ]
    ),
    st.integers(-(10**16), 10**16).map(str),
)
_separators = st.sampled_from(["\t", "\t", "\t", "\t", "\t", "\t\t", "\t ", " ", ""])
_spelled_lines = st.tuples(stamps, _separators, st.one_of(statements, plain_statements)).map("".join).map(str.encode)
_other_lines = st.one_of(
    st.sampled_from(
        [
            *(b"", b"  ", b"\r", b"\t", b"\x0b", b" \x0c\t\r", b"\0", b"!", b"#", b" #", b"\t#"),
            *(b"# 1000\t<a:s> <a:p> <a:o> .", b"#\r<a:s> <a:p> <a:o> .", b"1000\t", b"1000\t# nothing", b"1000\t \t"),
            b"1000\t<a:s> <a:p> <a:o> .\r<a:s> <a:p> <a:o> .",
            *(b"1000\t<a:s> <a:p> <a:o> . <a:s> <a:p> <a:o> .", b"\xef\xbb\xbf1000\t<a:s> <a:p> <a:o> ."),
        ]
    ),
    st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")),
)


def _damaged(line: bytes, place: int, change: bytes) -> bytes:
    return line[: place % (len(line) + 1)] + change + line[place % (len(line) + 1) + 1 :]


_changes = st.sampled_from([b"", b"\0", b"\xff", b"\xc3", b'"', b"<", b"\r", b"\\", b" "])
_damaged_lines = st.builds(_damaged, _spelled_lines, st.integers(0, 200), _changes)
lines = st.one_of(_spelled_lines, _spelled_lines, _spelled_lines, _damaged_lines, _other_lines)


def joined(parts: list[bytes], feed: bytes, mark: bytes, last: bool) -> bytes:
    """Lines as a text."""
    return mark + feed.join(parts) + (feed if last else b"")


_marks = st.sampled_from([b"", b"", b"", b"\xef\xbb\xbf"])
_feeds = st.sampled_from([b"\n", b"\n", b"\r\n"])
texts = st.builds(joined, st.lists(lines, max_size=12), _feeds, _marks, st.booleans())
documents = st.builds(
    joined,
    st.lists(st.one_of(statements.map(str.encode), statements.map(str.encode), _other_lines), max_size=8),
    _feeds,
    st.just(b""),
    st.booleans(),
)
