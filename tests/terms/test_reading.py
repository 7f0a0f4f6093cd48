"""RDF documents: formats by ending, stable blank nodes, errors with their place, the W3C syntax tests."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat

from headwater.terms.model import BlankNode, Literal, NamedNode, Quad, Triple
from headwater.terms.rdf_documents import RdfSyntaxError, rdf_format, read_quads
from tests.shared_data import shared_data

EX = "http://example.org/"
TURTLE = b"""@prefix ex: <http://example.org/> .
ex:a ex:knows [ ex:name "B" ], _:c .
_:c ex:list ( 1 [] ) .
"""
SAME_IN_ALL = {
    "a.nt": b'<http://example.org/a> <http://example.org/p> "x" .\n',
    "a.nq": b'<http://example.org/a> <http://example.org/p> "x" .\n',
    "a.ttl": b'@prefix ex: <http://example.org/> . ex:a ex:p "x" .',
    "a.trig": b'@prefix ex: <http://example.org/> . { ex:a ex:p "x" . }',
    "a.n3": b'@prefix ex: <http://example.org/> . ex:a ex:p "x" .',
    "a.jsonld": b'{"@id": "http://example.org/a", "http://example.org/p": "x"}',
    "a.rdf": b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="http://example.org/">
        <rdf:Description rdf:about="http://example.org/a"><ex:p>x</ex:p></rdf:Description></rdf:RDF>""",
}


@pytest.mark.parametrize("name", SAME_IN_ALL)
@pytest.mark.parametrize("packed", [False, True])
def test_the_ending_says_the_format(tmp_path: Path, name: str, packed: bool) -> None:
    path = tmp_path / (name + ".gz" if packed else name)
    path.write_bytes(gzip.compress(SAME_IN_ALL[name]) if packed else SAME_IN_ALL[name])
    assert list(read_quads(path)) == [Quad(NamedNode(EX + "a"), NamedNode(EX + "p"), Literal("x"))]


def test_unknown_endings_and_bytes_without_format() -> None:
    with pytest.raises(ValueError, match=r"ends in \.nt"):
        rdf_format("data.doc")
    with pytest.raises(ValueError, match="say the format"):
        next(read_quads(b"x"))


def test_relative_iris_are_resolved(tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_bytes(b"<> <p> <#x> .")
    (quad,) = read_quads(path)
    assert quad.subject == NamedNode(path.as_uri())
    (quad,) = read_quads(path, base_iri=EX)
    assert quad.triple == Triple(NamedNode(EX), NamedNode(EX + "p"), NamedNode(EX + "#x"))


def labels(quads: list[Quad]) -> list[str]:
    terms = [term for quad in quads for term in (quad.subject, quad.object)]
    return [term.value for term in terms if isinstance(term, BlankNode)]


def test_blank_nodes_have_the_same_labels_in_every_run_and_share_none_between_documents() -> None:
    first = list(read_quads(TURTLE, format=RdfFormat.TURTLE, scope="one"))
    again = list(read_quads(TURTLE, format=RdfFormat.TURTLE, scope="one"))
    other = list(read_quads(TURTLE, format=RdfFormat.TURTLE, scope="two"))
    assert first == again
    assert len(set(labels(first))) == 5
    assert not set(labels(first)) & set(labels(other))
    assert list(read_quads(TURTLE, format=RdfFormat.TURTLE)) == list(read_quads(TURTLE, format=RdfFormat.TURTLE))


def test_json_ld_blank_nodes_are_numbered_in_order_too() -> None:
    text = b'{"http://example.org/p": [{"http://example.org/q": 1}, {"@list": [1, {"http://example.org/q": 2}]}]}'
    runs = [list(read_quads(text, format=RdfFormat.JSON_LD, scope="x")) for _ in range(5)]
    assert all(run == runs[0] for run in runs)
    assert len(set(labels(runs[0]))) == 5


def test_labels_of_ntriples_are_kept_unless_there_is_a_scope() -> None:
    text = b"_:x <http://example.org/p> <<( _:x <http://example.org/q> _:y )>> .\n"
    (kept,) = read_quads(text, format=RdfFormat.N_TRIPLES)
    assert str(kept.subject) == "_:x"
    (renamed,) = read_quads(text, format=RdfFormat.N_TRIPLES, scope="doc")
    inner = renamed.object
    assert isinstance(inner, Triple)
    assert renamed.subject == inner.subject != BlankNode("x")
    assert inner.object not in (BlankNode("y"), inner.subject)


def test_blank_graph_names_are_renamed_with_the_rest() -> None:
    quads = list(read_quads(b"_:g { _:g <http://example.org/p> 1 }", format=RdfFormat.TRIG, scope="x"))
    assert quads[0].graph_name == quads[0].subject != BlankNode("g")


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("a.ttl", b"@prefix ex: <http://example.org/> .\nex:a ex:b\n  ex:c ex:d .", ":3:"),
        ("a.nt", b'<http://example.org/a> <http://example.org/p> "x" .\n<a> .\n', ":2:1:"),
        ("a.jsonld", b'{"@id":', ":1:8:"),
        ("a.rdf", b"<a>", ": "),
    ],
)
def test_errors_say_file_line_and_column(tmp_path: Path, name: str, text: bytes, place: str) -> None:
    path = tmp_path / name
    path.write_bytes(text)
    with pytest.raises(RdfSyntaxError) as caught:
        list(read_quads(path))
    assert str(caught.value).startswith(f"{path}{place}")
    assert isinstance(caught.value, ValueError)


def test_a_broken_gzip_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.nt.gz"
    path.write_bytes(gzip.compress(SAME_IN_ALL["a.nt"] * 1000)[:-20])
    with pytest.raises(RdfSyntaxError, match=r"a\.nt\.gz"):
        list(read_quads(path))
    path.write_bytes(b"not gzip")
    with pytest.raises(RdfSyntaxError, match="gzip"):
        list(read_quads(path))


@pytest.mark.parametrize("folder", ["rdf-n-triples", "rdf-n-quads"])
def test_w3c_syntax_tests(folder: str) -> None:
    root = shared_data("w3c", "rdf", "rdf11", folder)
    kinds = {"Positive": 0, "Negative": 0}
    manifest = list(read_quads(root / "manifest.ttl"))
    actions = {q.subject: q.object for q in manifest if q.predicate.value.endswith("#action")}
    for quad in manifest:
        kind = next((k for k in kinds if isinstance(quad.object, NamedNode) and k in quad.object.value), None)
        if kind is None:
            continue
        kinds[kind] += 1
        action = actions[quad.subject]
        assert isinstance(action, NamedNode)
        path = root / action.value.rpartition("/")[2]
        if kind == "Positive":
            quads = list(read_quads(path))
            comment_only = path.stem in ("nt-syntax-file-01", "nt-syntax-file-02", "nt-syntax-file-03")
            assert bool(quads) is not comment_only, path
        else:
            with pytest.raises(RdfSyntaxError):
                list(read_quads(path))
    assert kinds["Positive"] >= 40
    assert kinds["Negative"] >= 29


@pytest.mark.parametrize(
    ("name", "count"),
    [("AarhusCulturalEvents.n3", 1490), ("AarhusLibraryEvents.n3", 23225), ("SensorRepository.n3", 44213)],
)
def test_citybench_data_loads(name: str, count: int) -> None:
    assert sum(1 for _ in read_quads(shared_data("citybench", "static", name))) == count
