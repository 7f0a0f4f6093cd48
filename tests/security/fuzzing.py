"""Generated inputs for every entry into pyoxigraph and into the compiled scanners, in a process of its own.

    python -m tests.security.fuzzing SEED INPUTS PLACE

The first inputs are nested deeply. The others are made from a small corpus by mutation, and one that gives an outcome
which was not seen before joins the corpus, so that later ones begin where it led. A seed gives the same inputs each
time. The number of the input under way stands in the file PLACE: where the process ends by a signal, that is the input
which ended it.

An entry may refuse an input with the errors that it promises. Anything else is written out, and the exit code is 1. An
input may take so many seconds of processor time, whatever else the machine does: every entry is compiled before the
first one counts. One that waits for ever is ended later.
"""

from __future__ import annotations

import faulthandler
import os
import random
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from numba.core.dispatcher import Dispatcher
from pyoxigraph import RdfFormat, Store

from headwater.algebra.build import plan_query
from headwater.algebra.to_sparql import to_sparql
from headwater.datasets.change_log import DataChange
from headwater.errors import HeadwaterError
from headwater.federation.endpoint.protocol import NotResults, read_results
from headwater.language.parser import parse
from headwater.sources.payloads import Decoder, ReceivedMessage
from headwater.terms.checking.query_texts import check_update
from headwater.terms.ids.inline_layout import is_inline
from headwater.terms.ids.term_ids import decode_inline, encode
from headwater.terms.packing import pack, unpack
from headwater.terms.rdf_documents import read_quads
from headwater.terms.row_files import read_csv, read_json_array, read_json_lines
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.pattern_tables import ScanPatterns
from headwater.terms.scanning.scanner import scan
from headwater.terms.template import RowTemplate
from headwater.terms.timed_graphs import read_jsonld_lines, read_timed_nquads, read_timed_trig
from headwater.terms.tnq import read_tnq

SECONDS_FOR_ONE = 60
SECONDS_OF_WAITING = 1_200
_MOST_KEPT = 400
_LONGEST = 4_000
_LONGEST_UPDATE = 400
"""pyoxigraph takes long to order very many patterns; that is a matter of time limits."""

_TEMPLATE = RowTemplate('@columns a, b, time\n@time {time} as seconds\n<x:{a}> <x:p> "{b}" .\n')


@dataclass(frozen=True)
class Entry:
    """A way into the program, the errors that it promises, and inputs to begin with."""

    call: Callable[[bytes], object]
    promised: tuple[type[BaseException], ...]
    seeds: tuple[bytes, ...]


def _scan_lines(format: LineFormat) -> Callable[[bytes], object]:
    patterns = ScanPatterns([])

    def call(data: bytes) -> object:
        scanned = scan(data, format)
        for term_id in scanned.triples[:20].ravel().tolist():
            if is_inline(term_id):
                encode(decode_inline(term_id))
        scan(data, format, patterns=patterns, end=len(data) // 2)
        return len(scanned.bad), [text for _, text in scanned.texts().items()] and len(scanned.triples)

    return call


def _read_document(format: RdfFormat) -> Callable[[bytes], object]:
    return lambda data: [pack([quad.triple]) and quad for quad in read_quads(data, format=format, scope="f")] and 1


def _decode(format: str, template: RowTemplate | None = None) -> Callable[[bytes], object]:
    decoder = Decoder.of(format, template=template)
    return lambda data: [type(one) for one in decoder.decode(ReceivedMessage(data, 0, "f", (0,), {}))][:1]


def _plan(data: bytes) -> object:
    return len(to_sparql(plan_query(parse(data.decode("utf-8", "replace"))).root)) > 0


def _update(data: bytes) -> object:
    text = data.decode("utf-8", "replace")
    check_update(text)
    if len(text) <= _LONGEST_UPDATE and b"LOAD" not in data.upper() and b"SERVICE" not in data.upper():
        Store().update(text)
    return True


_NT = (
    b'<http://e/s> <http://e/p> "21.5"^^<http://www.w3.org/2001/XMLSchema#double> .\n',
    b'_:b1 <http://e/p> "a\\u00e9\\n\\"b"@en-GB .\n<a:s> <a:p> <<( <a:s> <a:p> "1"^^<x:y> )>> .\n',
    b'<a:s> <a:p> "-0012.50"^^<http://www.w3.org/2001/XMLSchema#decimal> . # comment\r\n',
    b'<a:s> <a:p> "2014-08-01T07:50:00.5+02:00"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n',
)
_NQ = tuple(line.replace(b" .", b" <a:g> .") for line in _NT)
_TNQ = (
    b"1000\t" + _NQ[0],
    b"2014-08-01T07:50:00Z\t<a:s> <a:p> <a:o> .\n-5\t<a:s> <a:p> _:x _:g .\n# c\n\n",
)
_TURTLE = (
    b'@prefix e: <e:> . e:s a e:T ; e:p 1, 2.5, -3e2, true, "x"@en, """a"b""", \'c\' ; e:q [ e:r ( 1 ( 2 ) ) ] .',
    b"PREFIX e: <e:> e:s e:p <<( e:a e:b e:c )>> . << e:a e:b e:c ~ e:r >> e:p 1 {| e:x 1 |} .",
)
_RULE = b"{ <a:s> <a:p> ?x } => { ?x a <a:T> } ."
_TRIG = tuple(b"<e:g> { <e:s> <e:p> 1 } " + text for text in _TURTLE)
_XML = (
    b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY o "http://o/">]><rdf:RDF xmlns:rdf='
    b'"http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="e:"><rdf:Description rdf:about="&o;a">'
    b'<e:p rdf:parseType="Collection"><rdf:Description/></e:p><e:q xml:lang="en">x</e:q></rdf:Description></rdf:RDF>',
)
_JSON_LD = (
    b'{"@context":{"e":"e:","p":{"@id":"e:p","@type":"@id"}},"@id":"e:s","p":["e:o",{"e:q":{"@list":[1,2.5,true]}}]}',
    b'{"@graph":[{"@id":"e:a","e:p":{"@value":"x","@language":"en"}}],"@id":"e:g"}',
)
_QUERIES = (
    b"SELECT ?x (COUNT(*) AS ?n) WHERE { STREAM <s:s> [RANGE 10s STEP 5s] { ?x a <e:T> ; <e:p>/<e:q>* ?y } "
    b"OPTIONAL { ?x <e:r> ?z FILTER(?z > 1 + 2 && !BOUND(?y)) } } GROUP BY ?x HAVING(COUNT(*) > 1) ORDER BY DESC(?n)",
    b"REGISTER STREAM q COMPUTED EVERY 5s AS PREFIX e: <e:> CONSTRUCT { ?s e:p ?o } "
    b"FROM STREAM <s:s> [RANGE 1m STEP 5s] WHERE { { ?s ?p ?o } UNION { ?s e:q [ e:r (1 2) ] } MINUS { ?s e:x 'a' } "
    b"BIND(IF(?o = 1, 'x', \"y\") AS ?z) }",
)
_UPDATES = (
    b"PREFIX e: <e:> DELETE { ?s e:p ?o } INSERT { ?s e:q -1.5 , [ e:r (1 2) ] } WHERE { ?s e:p ?o FILTER(?o < 5) }",
    b"INSERT DATA { GRAPH <e:g> { <e:s> <e:p> <<( <e:a> <e:b> 'c' )>> } } ; DELETE WHERE { ?s ?p ?o } # end",
)
_RESULTS = (
    b'{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"uri","value":"a:a"}},{"x":{"type":"triple","value":'
    b'{"subject":{"type":"bnode","value":"b"},"predicate":{"type":"uri","value":"a:p"},"object":{"type":"literal",'
    b'"value":"1","datatype":"a:d"}}}}]}}',
    b'<?xml version="1.0"?><sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="x"/></head>'
    b'<results><result><binding name="x"><literal xml:lang="en">a</literal></binding></result></results></sparql>',
    b'{"head":{},"boolean":true}',
)
_ROWS = (b'1,2.5,1000\n"a""b",c,5\n', b'{"a":"1","b":[1,{"c":2}],"time":1000}\n{"a":1,"b":2,"time":3}\n')
_CHANGES = (DataChange(2).to_line(), b'{"version": 2, "added": "<a:s> <a:p> <a:o> .\\n", "removed": "", "crc": 1}\n')

ENTRIES = {
    "scan tnq": Entry(_scan_lines(LineFormat.TNQ), (), _TNQ),
    "scan nquads": Entry(_scan_lines(LineFormat.N_QUADS), (), _NQ),
    "scan ntriples": Entry(_scan_lines(LineFormat.N_TRIPLES), (), _NT),
    "read tnq": Entry(lambda data: [type(one) for one in read_tnq(data, "f")][:2], (), _TNQ),
    "timed nquads": Entry(lambda data: [type(one) for one in read_timed_nquads(data, "f")][:2], (), _NQ),
    "timed trig": Entry(lambda data: [type(one) for one in read_timed_trig(data, "f")][:2], (), _TRIG),
    "jsonld lines": Entry(lambda data: [type(one) for one in read_jsonld_lines(data, "f")][:2], (), _JSON_LD),
    "csv": Entry(lambda data: [type(one) for one in read_csv(data, "f", _TEMPLATE)][:2], (), _ROWS),
    "json lines": Entry(lambda data: [type(one) for one in read_json_lines(data, "f", _TEMPLATE)][:2], (), _ROWS),
    "json array": Entry(
        lambda data: [type(one) for one in read_json_array(b"[" + data, "f", _TEMPLATE)][:2], (), _ROWS[1:]
    ),
    "ntriples": Entry(_read_document(RdfFormat.N_TRIPLES), (HeadwaterError,), _NT),
    "nquads": Entry(_read_document(RdfFormat.N_QUADS), (HeadwaterError,), _NQ),
    "turtle": Entry(_read_document(RdfFormat.TURTLE), (HeadwaterError,), _TURTLE),
    "trig": Entry(_read_document(RdfFormat.TRIG), (HeadwaterError,), _TRIG),
    "n3": Entry(
        _read_document(RdfFormat.N3), (HeadwaterError,), (*_TURTLE[:1], b"{ <a:s> <a:p> ?x } => { ?x a <a:T> } .")
    ),
    "rdfxml": Entry(_read_document(RdfFormat.RDF_XML), (HeadwaterError,), _XML),
    "jsonld": Entry(_read_document(RdfFormat.JSON_LD), (HeadwaterError,), _JSON_LD),
    "message turtle": Entry(_decode("turtle"), (), _TURTLE),
    "message jsonld": Entry(_decode("jsonld"), (), _JSON_LD),
    "message tnq": Entry(_decode("tnq"), (), _TNQ),
    "message json": Entry(_decode("json", _TEMPLATE), (), _ROWS[1:]),
    "results": Entry(lambda data: type(read_results(data, scope="f")), (NotResults,), _RESULTS),
    "query": Entry(_plan, (HeadwaterError,), _QUERIES),
    "update": Entry(_update, (SyntaxError, ValueError, RuntimeError, OSError), _UPDATES),
    "change": Entry(lambda data: DataChange.from_line(data).version, (ValueError, SyntaxError, KeyError), _CHANGES),
    "state": Entry(
        lambda data: type(unpack(data)),
        (Exception,),
        (pack([1, "a", (None, True), {"k": [2.5]}, b"x"]),),
    ),
}
_TOKENS = (
    b"<<( ", b" )>>", b"<<", b">>", b"(", b")", b"[", b"]", b"{", b"}", b'"', b"'", b'"""', b"'''", b"\\", b"\\u0028",
    b"\\U0010FFFF", b"\n", b"\r", b"\t", b"#", b"<", b">", b"<a:", b"@", b"^^", b"_:", b".", b";", b",", b"\xff", b"\0",
    b"\xc3", b"\xed\xa0\x80", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?", b"?>", b"&a;", b"<!ENTITY a 'b'>", b"1e999",
    b"-", b"99999999999999999999", b"9223372036854775808", b"0.", b"T24:00:00Z", b"-0001-01-01", b" UNION ", b" + 1",
    b"OPTIONAL {", b"FILTER(", b"BIND(", b"/", b"|", b"!", b"*", b"null", b'{"@list":', b'{"@value":', b'"@type":',
)  # fmt: skip


_NESTS = (
    (b"<<( <a:s> <a:p> ", b" )>>"),
    (b"<< <a:s> <a:p> ", b" >>"),
    (b"( ", b" )"),
    (b"[ <a:p> ", b" ]"),
    (b"{ ", b" }"),
    (b"!(", b")"),
    (b"1 + (", b")"),
    (b'{"e:p":', b"}"),
    (b'{"@list":[', b"]}"),
    (b"[", b"]"),
    (b'<rdf:Description><e:p rdf:parseType="Triple">', b"</e:p></rdf:Description>"),
    (
        b'{"type":"triple","value":{"subject":{"type":"uri","value":"a:a"},"predicate":{"type":"uri","value":"a:a"},'
        b'"object":',
        b"}}",
    ),
)
_TERM = re.compile(rb'<[^<>\s]*>|"[^"]*"|\?\w+|\b\d+\b|\{[^{}]*\}')


def nest(rng: random.Random, data: bytes) -> bytes:
    """A term of an input inside of many brackets."""
    terms = list(_TERM.finditer(data))
    if not terms:
        return data
    term = rng.choice(terms)
    opening, closing = rng.choice(_NESTS)
    levels = rng.choice((60, 30_000))
    return data[: term.start()] + opening * levels + term[0] + closing * levels + data[term.end() :]


def mutate(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A few changes at places of an input; `other` gives parts to mix in."""
    if rng.random() < 0.02:
        return nest(rng, data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((0, 1, 2, 8, 40)))
        kind = rng.randrange(8)
        if kind == 0 and start < len(data):
            data = data[:start] + bytes([data[start] ^ (1 << rng.randrange(8))]) + data[start + 1 :]
        elif kind == 1:
            data = data[:start] + data[end:]
        elif kind == 2:
            data = data[:start] + data[start:end] * rng.choice((2, 3, 10)) + data[end:]
        elif kind == 3:
            place = rng.randrange(len(other) + 1)
            data = data[:start] + other[place : place + 40] + data[end:]
        elif kind == 4 and rng.random() < 0.02:
            data = data[:start] + rng.choice(_TOKENS) * rng.choice((65, 700, 20_000)) + data[end:]
        elif kind == 5 and rng.random() < 0.02:
            data = data[:start] + data[start:end] * rng.choice((65, 700, 5_000)) + data[end:]
        else:
            data = data[:start] + rng.choice(_TOKENS) + data[start if kind == 6 else end :]
    return data


def outcome_of(entry: Entry, data: bytes) -> tuple[str, bool]:
    """What happened, in short, and whether the entry promises it."""
    try:
        return f"gave {entry.call(data)}"[:60], True
    except entry.promised as error:
        return f"{type(error).__name__}: {str(error)[:24]}", True
    except Exception as error:
        return f"{type(error).__name__}: {error}", False


def warm_up() -> None:
    """Have numba compile what the entries call, which takes longer than an input may."""
    for entry in ENTRIES.values():
        for seed in entry.seeds:
            outcome_of(entry, seed)
            outcome_of(entry, seed + b"[" * 200)


def count_compiled() -> Counter[str]:
    """The compiled functions of the package, each as often as there are kinds of arguments."""
    modules = [module for name, module in sys.modules.items() if name.startswith("headwater.")]
    functions = {id(one): one for module in modules for one in vars(module).values() if isinstance(one, Dispatcher)}
    return Counter({one.py_func.__qualname__: len(one.signatures) for one in functions.values()})


def limit_time() -> None:
    """The next input may take as long as any."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + SECONDS_FOR_ONE, hard))
    faulthandler.dump_traceback_later(SECONDS_OF_WAITING, exit=True)


def run(seed: int, inputs: int, place: str) -> int:
    """Try so many inputs; gives how many had an outcome that is not promised."""
    rng = random.Random(seed)
    names = list(ENTRIES)
    corpus = {name: list(entry.seeds) for name, entry in ENTRIES.items()}
    seen: set[tuple[str, str]] = set()
    failures = 0
    file = os.open(place, os.O_WRONLY | os.O_CREAT, 0o600)
    warm_up()
    compiled = count_compiled()
    faulthandler.register(signal.SIGXCPU, chain=True)
    for number in range(inputs):
        name = names[number % len(names)]
        known = corpus[name]
        if number < inputs // 10:
            data = nest(rng, rng.choice(ENTRIES[name].seeds))
        else:
            data = mutate(rng, rng.choice(known), rng.choice(corpus[rng.choice(names)]))
        os.pwrite(file, b"%020d" % number, 0)
        limit_time()
        outcome, is_promised = outcome_of(ENTRIES[name], data)
        if not is_promised:
            failures += 1
            print(f"{name}: {outcome[:300]}\n  input {number} of seed {seed}: {data[:600]!r}", flush=True)
            if failures >= 10:
                break
        if (name, outcome) not in seen and len(known) < _MOST_KEPT and len(data) <= _LONGEST:
            seen.add((name, outcome))
            known.append(data)
    faulthandler.cancel_dump_traceback_later()
    more = count_compiled() - compiled
    print(f"{sum(more.values())} functions were compiled for an input: {', '.join(more)}", flush=True)
    print(f"{inputs:,} inputs of seed {seed}, {sum(map(len, corpus.values())):,} of them kept", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(1 if run(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]) else 0)
