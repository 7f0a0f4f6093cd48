"""Every way by which a query, an update or data can name an address goes through our client and keeps to the policy."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store

import headwater as hw
from headwater.datasets.remote_updates import may_have_remote_call
from tests.commands.running import headwater
from tests.federation.servers import Exchange, Served, serving, sparql

EX = "http://example.org/"
A, B, P, Q = (NamedNode(EX + name) for name in "abpq")
STREAM = f"1000\t<{EX}a> <{EX}in> <{EX}post> .\n1001\t<{EX}c> <{EX}in> <{EX}post> .\n"
EVALUATORS = ("auto", "reference")


def store() -> Store:
    found = Store()
    found.add(Quad(A, P, Literal(7)))
    return found


def agents(server: Served) -> set[str]:
    """Who asked: Oxigraph's own client does not call itself headwater."""
    return {value for one in server.heard for name, value in one.headers.items() if name.lower() == "user-agent"}


def rows(tmp_path: Path, query: str, **settings: object) -> list[tuple[str, ...]]:
    (tmp_path / "s.tnq").write_text(STREAM)
    engine = hw.Engine(in_process=True, **settings)  # type: ignore[arg-type]
    engine.stream(EX + "s", str(tmp_path / "s.tnq"))
    engine.register(f"PREFIX : <{EX}> SELECT * FROM STREAM :s [RANGE 5s TUMBLING] WHERE {{ {query} }}")
    found: list[tuple[str, ...]] = []
    engine.run(on_answer=lambda answer: found.extend(tuple(map(str, row)) for row in answer.rows))
    return found


SERVICES = {
    "joined": "?x :in ?post SERVICE <{url}> {{ ?x :p ?n }}",
    "in EXISTS": "?x :in ?post FILTER EXISTS {{ SERVICE <{url}> {{ ?x :p ?n }} }}",
    "in EXISTS twice": "?x :in ?post FILTER EXISTS {{ ?x :in ?o FILTER EXISTS {{ SERVICE <{url}> {{ ?x :p ?n }} }} }}",
    "in BIND": "?x :in ?post BIND(EXISTS {{ SERVICE <{url}> {{ ?x :p 7 }} }} AS ?is) FILTER(?is)",
    "in OPTIONAL": "?x :in ?o OPTIONAL {{ ?x :in ?y FILTER EXISTS {{ SERVICE <{url}> {{ ?x :p 7 }} }} }} FILTER(?y=?o)",
    "by a variable": "?x :in ?post BIND(<{url}> AS ?e) SERVICE ?e {{ ?x :p ?n }}",
    "by a variable in EXISTS": "?x :in ?post BIND(<{url}> AS ?e) FILTER EXISTS {{ SERVICE ?e {{ ?x :p ?n }} }}",
}


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("name", SERVICES)
def test_service_is_asked_by_our_client_wherever_it_stands(tmp_path: Path, name: str, evaluator: str) -> None:
    with serving(sparql(store())) as server:
        found = rows(tmp_path, SERVICES[name].format(url=server.url), evaluator=evaluator)
        assert {row[0] for row in found} == {f"<{EX}a>"} or ({f"<{EX}a>"} <= set(found[0]) and len(found) == 1)
        assert agents(server) == {"headwater"}


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("name", SERVICES)
def test_service_is_refused_wherever_it_stands(tmp_path: Path, name: str, evaluator: str) -> None:
    with serving(sparql(store())) as server, pytest.raises((hw.EgressError, hw.EndpointForbidden, hw.ServiceError)):
        rows(tmp_path, SERVICES[name].format(url=server.url), evaluator=evaluator, egress=["http://other.example/"])
    assert server.heard == []


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_silent_goes_on_without_what_is_not_allowed(tmp_path: Path, evaluator: str) -> None:
    with serving(sparql(store())) as server:
        text = f"?x :in ?post SERVICE SILENT <{server.url}> {{ ?x :p ?n }}"
        found = rows(tmp_path, text, evaluator=evaluator, egress=hw.EgressPolicy())
        assert len(found) == 2 and server.heard == []


def test_blank_nodes_and_spellings_of_an_endpoint_stay_what_they_are(tmp_path: Path) -> None:
    body = (
        b'{"head":{"vars":["n","m"]},"results":{"bindings":[{"n":{"type":"bnode","value":"z"},"m":{"type":"literal",'
        b'"value":"007","datatype":"http://www.w3.org/2001/XMLSchema#integer"}}]}}'
    )
    with serving(lambda exchange: exchange.answer(200, body)) as server:
        text = f"?x :in ?post SERVICE <{server.url}> {{ ?n :p ?m }} FILTER(isBlank(?n) && ?m = 7)"
        found = rows(tmp_path, text, evaluator="reference")
        assert len(found) == 2 and all('"007"^^' in " ".join(row) and "_:" in " ".join(row) for row in found)


def test_from_fetches_nothing(tmp_path: Path) -> None:
    with serving(sparql(store())) as server:
        (tmp_path / "s.tnq").write_text(STREAM)
        for evaluator in ("auto", "reference"):
            engine = hw.Engine(in_process=True, evaluator=evaluator)
            engine.stream(EX + "s", str(tmp_path / "s.tnq"))
            engine.register(
                f"SELECT * FROM <{server.url}> FROM NAMED <{server.url}x> FROM STREAM <{EX}s> [RANGE 5s TUMBLING] "
                "WHERE { ?x ?p ?o OPTIONAL { GRAPH ?g { ?a ?b ?c } } }"
            )
            with pytest.raises(hw.RegistrationError, match="graph"):
                engine.run()
        assert server.heard == []


def turtle(exchange: Exchange) -> None:
    if exchange.path == "/city.ttl":
        exchange.answer(200, b"<#n> <p> '01'^^<http://www.w3.org/2001/XMLSchema#integer> , [] .", "text/turtle")
    else:
        sparql(store())(exchange)


def test_updates_load_and_ask_through_our_client() -> None:
    with serving(turtle) as server:
        base = server.url.removesuffix("sparql")
        data = hw.Engine(in_process=True).dataset([Quad(A, Q, B)])
        data.update(
            f"PREFIX : <{base}> LOAD :city.ttl INTO GRAPH <{EX}g> ; LOAD SILENT <{base}no> ; CLEAR SILENT GRAPH <urn:x>"
        )
        loaded = list(data.quads(NamedNode(f"{base}city.ttl#n"), None, None))
        assert len(loaded) == 2 and {str(quad.graph_name) for quad in loaded} == {f"<{EX}g>"}
        assert '"01"^^' in " ".join(str(quad.object) for quad in loaded)
        data.update(
            f"PREFIX : <{EX}> INSERT {{ ?x :new ?n }} WHERE {{ ?x :q ?y SERVICE <{server.url}> {{ ?x :p ?n }} }}"
        )
        assert [quad.object for quad in data.quads(A, NamedNode(EX + "new"), None)] == [Literal(7)]
        assert agents(server) == {"headwater"} and len(server.heard) == 3


HIDDEN = [
    "LOAD <{url}>",
    "load<{url}>",
    "LOAD SILENT <{url}> INTO GRAPH <urn:g>",
    r"\u004cOAD <{url}>",
    "INSERT {{ ?s ?p 1 }} WHERE {{ SERVICE <{url}> {{ ?s ?p ?o }} }}",
    "INSERT {{ ?s ?p 1 }} WHERE {{ SERVICE SILENT <{url}> {{ ?s ?p ?o }} }}",
    "INSERT {{ ?s ?p 1 }} WHERE {{ ?s ?p ?o FILTER EXISTS {{ SERVICE <{url}> {{ ?s ?p ?o }} }} }}",
    "INSERT {{ ?s ?p 1 }} WHERE {{ BIND(<{url}> AS ?e) SERVICE ?e {{ ?s ?p ?o }} }}",
    r"INSERT {{ ?s ?p 1 }} WHERE {{ \u0053ERVICE <{url}> {{ ?s ?p ?o }} }}",
    r"INSERT {{ ?s ?p 1 }} WHERE {{ ?s ?p ?o . \U00000053ervice<{url}>{{ ?s ?p ?o }} }}",
    "DELETE {{ ?s ?p 1 }} USING <urn:g> WHERE {{ {{ SELECT * {{ SERVICE <{url}> {{ ?s ?p ?o }} }} }} }}",
    'INSERT {{ ?s ?p 1 }} WHERE {{ ?s ?p \'\'a # \'\'"""\n SERVICE SILENT <{url}> {{ ?a ?b ?c }} #"""\n }}',
    "INSERT {{ ?s ?p 1 }} WHERE {{ ?s ?p 5SERVICE SILENT <{url}> {{ ?a ?b ?c }} }}",
    "PREFIX s: <{url}> INSERT {{ ?s ?p 1 }} WHERE {{ ?s ?p ?o SERVICE SILENT s: {{ ?a ?b ?c }} }}",
    "PREFIX service: <{url}> INSERT {{ ?s ?p 1 }} WHERE {{ ?s ?p ?o SERVICE SILENT service: {{ ?a ?b ?c }} }}",
    "INSERT DATA {{ <urn:a> <urn:b> 1 }} ; LOAD <{url}>",
    r"INSERT {{ ?s ?p 1 }} WHERE {{ ?s ?p '\\\u0027 SERVICE SILENT <{url}> {{ ?a ?b ?c }} #' }}",
]


@pytest.mark.parametrize("text", HIDDEN)
def test_no_update_gets_around_the_policy(text: str) -> None:
    with serving(turtle) as server:
        data = hw.Engine(in_process=True, egress=hw.EgressPolicy()).dataset([Quad(A, Q, B)])
        try:
            data.update(text.format(url=server.url))
        except hw.DataSetError as error:
            assert "nothing is changed" in str(error)
        assert server.heard == []


@pytest.mark.parametrize(
    "text",
    [
        "DELETE WHERE { ?s :loadFactor ?o }",
        "INSERT { ?s <urn:service> 'LOAD' } WHERE { ?s :of.service ?load } # SERVICE",
        'INSERT { ?s ?service """a "LOAD" b""" } WHERE { _:load :p ?service }',
    ],
)
def test_names_and_texts_are_no_keywords(text: str) -> None:
    assert not may_have_remote_call(text)


def test_a_data_set_without_an_engine_asks_no_endpoint(tmp_path: Path) -> None:
    with serving(sparql(store())) as server:
        data = hw.DataSet.open(hw.Engine(in_process=True).dataset([Quad(A, Q, B)]).folder)
        with pytest.raises(hw.DataSetError, match="through an engine"):
            data.update(f"INSERT {{ ?s ?p 1 }} WHERE {{ SERVICE <{server.url}> {{ ?s ?p ?o }} }}")
        assert server.heard == []


def test_web_documents_keep_to_the_policy() -> None:
    with serving(turtle) as server:
        address = server.url.replace("sparql", "city.ttl")
        with pytest.raises(hw.EgressError, match="does not allow"):
            hw.Engine(in_process=True, egress=["https://example.org/"]).dataset(address)
        assert server.heard == []
        assert hw.Engine(in_process=True, egress=[address]).dataset(address).statements == 2
        with serving(lambda exchange: exchange.answer(302, Location=address)) as other, pytest.raises(hw.EgressError):
            hw.Engine(in_process=True, egress=[other.url]).dataset(other.url)
        assert len(server.heard) == 1


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "ws://localhost:9/x", "mqtt://127.0.0.1/t"])
def test_located_streams_keep_to_the_policy(address: str) -> None:
    for allowed in ([], ["tcp://*:9", "ws://*:9", "mqtt://*"]):
        engine = hw.Engine(in_process=True, egress=allowed)
        engine.register(f"SELECT * FROM STREAM <{address}> [RANGE 1s TUMBLING] WHERE {{ ?s ?p ?o }}")
        with pytest.raises(hw.EgressError):
            engine.run()


def test_the_command_line_and_the_settings_file_say_what_may_be_asked(tmp_path: Path) -> None:
    (tmp_path / "s.tnq").write_text(STREAM)
    settings = tmp_path / "headwater.toml"
    with serving(sparql(store())) as server:
        service = f"SERVICE <{server.url}> {{ ?x <{EX}p> ?n }}"
        text = f"SELECT ?n FROM STREAM <s> [RANGE 5s TUMBLING] WHERE {{ ?x ?in ?o {service} }}"
        (tmp_path / "q.rq").write_text(text)
        command = ["run", str(tmp_path / "q.rq"), "--in-process", "--stream", f"s={tmp_path}/s.tnq", "--format", "csv"]
        for refused in (["--no-egress"], ["--egress", "https://example.org"], ["--settings", str(settings)]):
            settings.write_text("[egress]\n")
            done = headwater(*command, *refused)
            assert done.exit_code == 1 and "egress policy" in done.stderr, done.stderr
        assert server.heard == []
        settings.write_text(f'[egress]\nallow = ["{server.url}"]\n')
        for allowed in (["--settings", str(settings)], ["--egress", server.url]):
            done = headwater(*command, *allowed)
            assert done.exit_code == 0 and "7" in done.stdout, done.stderr
    settings.write_text("[outgoing]\n")
    assert "known are egress, limits and run" in headwater(*command, "--settings", str(settings)).stderr


STORE_CALLS = {
    "datasets/updates.py": "store.update",
    "kernel/expressions/pyoxigraph_evaluation.py": "_EMPTY_STORE.query",
    "optimizer/constant_values.py": "Store().query",
    "reference/reference_evaluator.py": "self._dataset.store.query",
    "algebra/pyoxigraph_expressions.py": "_EMPTY_STORE.query",
    "server/protocol/plain_queries.py": "self._store.query",
    "server/protocol/store_mirror.py": "self._store.update",
}
"""Who asks pyoxigraph: each sees to it that no SERVICE and no LOAD reaches it."""


def test_who_asks_pyoxigraph_is_known() -> None:
    package = Path(hw.__file__).parent
    found = {}
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called = ast.unparse(node.func)
                if re.search(r"store(\(\))?\.(query|update|load|bulk_load)$", called, re.IGNORECASE):
                    found[str(path.relative_to(package))] = called
    assert found == STORE_CALLS
