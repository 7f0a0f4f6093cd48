"""Queries and streams over HTTP: what is made, changed and refused, and how it is said."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyoxigraph import RdfFormat, parse

from tests.server.serving import COUNT, INTEGER, TNQ, VALUES, Server, lines, wait_for

PROBLEM = "application/problem+json"


def is_problem(response: httpx.Response, status: int) -> dict[str, Any]:
    assert (response.status_code, response.headers["content-type"]) == (status, PROBLEM), response.text
    found: dict[str, Any] = response.json()
    assert found["status"] == status
    assert found["title"]
    assert found["detail"]
    assert "/tmp" not in response.text, "nothing of the machine"
    return found


def fresh(server: Server, name: str) -> str:
    """A stream of that name, and the text of a query over it."""
    assert server.client.put(f"/streams/{name}").status_code == 201
    return COUNT.replace("<s>", f"<{name}>")


def test_a_query_lives(server: Server) -> None:
    text = fresh(server, "life")
    assert server.put_query("life", text).status_code == 201
    assert server.put_query("life", text).status_code == 200, "the same again"
    found = server.client.get("/queries/life").json()
    assert (found["status"], found["text"], found["last_event"]) == ("running", text, None)
    assert server.feed(0, 1, 2, stream="life").json() == {"good": 3, "late": 0, "ahead": 0, "bad": 0, "triples": 3}
    assert [one["time_us"] for one in server.events("life", 2, after="first")] == [0, 1_000_000]
    paused = server.client.post("/queries/life", params={"action": "pause"})
    assert paused.json() == {"name": "life", "status": "paused"}
    assert server.client.post("/queries/life", params={"action": "resume"}).json()["status"] == "running"
    assert server.client.delete("/queries/life").status_code == 204
    is_problem(server.client.get("/queries/life"), 404)
    is_problem(server.client.delete("/queries/life"), 404)


def test_names_may_be_iris(server: Server) -> None:
    stream, query = "http%3A%2F%2Fcity%2Fgates", "http%3A%2F%2Fcity%2Fbusy"
    assert server.client.put(f"/streams/{stream}").status_code == 201
    text = COUNT.replace("<s>", "<http://city/gates>")
    assert server.client.put(f"/queries/{query}", content=text).status_code == 201
    assert server.feed(0, 1, stream=stream).json()["good"] == 2
    assert server.events(query, 1, after="first")[0]["time_us"] == 0
    assert server.client.get(f"/streams/{stream}").json()["name"] == "http://city/gates"
    assert server.client.get(f"/queries/{query}/plan").text.startswith("query http://city/busy")


@pytest.mark.parametrize(
    ("text", "parameters", "status"),
    [
        ("SELECT ?x\nWHERE { ?x }", {}, 400),
        (COUNT.replace("<s>", "<nobody>"), {}, 409),
        (COUNT.replace("<s>", "<file:///etc/passwd>"), {}, 409),
        (COUNT, {"dialect": "prolog"}, 422),
        (COUNT, {"t0": "soon"}, 400),
        (COUNT, {"seconds": "-1"}, 422),
        ("\xff", {}, 400),
        ("x" * 400_001, {}, 413),
    ],
)
def test_what_cannot_be_registered_is_a_problem(
    server: Server, text: str, parameters: dict[str, str], status: int
) -> None:
    server.client.put("/streams/s")
    found = is_problem(server.client.put("/queries/wrong", content=text.encode("latin-1"), params=parameters), status)
    if text.startswith("SELECT ?x"):
        assert (found["errors"][0]["line"], found["errors"][0]["column"]) == (2, 9)
        assert "expected" in found["errors"][0]
    assert "wrong" not in [one["name"] for one in server.client.get("/queries").json()["queries"]]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "x" * 300_000,
        "SELECT ?x WHERE { ?x <urn:" + "y" * 300_000 + "> " + '"a b" ' * 10_000,
        'SELECT "' + "a b " * 50_000 + '"',
        "SELECT ?x WHERE { ?x <urn:v> ?v } " + "\n" * 10_000 + "\N{GRINNING FACE}" * 20_000,
    ],
)
def test_errors_do_not_repeat_what_was_sent(server: Server, text: str) -> None:
    server.client.put("/streams/s")
    body = text.encode()
    answers = [
        server.client.put("/queries/wrong", content=body),
        server.client.post("/queries/validate", content=body),
        server.client.post("/sparql", content=body, headers={"Content-Type": "application/sparql-query"}),
        server.client.post("/sparql", content=body, headers={"Content-Type": "application/sparql-update"}),
        server.client.put("/data?default", content=body, headers={"Content-Type": "text/turtle"}),
        server.client.put("/streams/wrong", content=body, headers={"Content-Type": "application/json"}),
    ]
    for place, answer in enumerate(answers):
        assert len(answer.content) < 5_000, (place, len(answer.content))
        assert place == 1 or answer.status_code in (400, 422), place


def test_a_service_that_is_not_allowed_is_refused(server: Server) -> None:
    server.client.put("/streams/s")
    text = COUNT.replace("?v }", "?v SERVICE <http://example.org/sparql> { ?x ?y ?z } }")
    is_problem(server.put_query("asking", text), 403)


def test_a_query_is_checked_without_being_registered(server: Server) -> None:
    server.client.put("/streams/s")
    right = server.client.post("/queries/validate", content=COUNT).json()
    assert right["valid"]
    assert right["windows"][0]["stream"] == "s"
    wrong = server.client.post("/queries/validate", content="SELECT").json()
    assert not wrong["valid"]
    assert wrong["errors"][0]["line"] == 1


def test_a_preview_answers_over_what_there_is(server: Server) -> None:
    text = fresh(server, "seen")
    server.feed(5, 6, stream="seen")
    found = server.client.post("/queries/preview", content=text).json()
    assert found["answer"]["time_us"] == 6_000_000
    assert found["answer"]["results"]["bindings"][0]["n"]["value"] == "2"
    assert "preview" not in [one["name"] for one in server.client.get("/queries").json()["queries"]]


def test_a_plan_is_given_in_its_forms(server: Server) -> None:
    server.put_query("planned", fresh(server, "planned"))
    assert server.client.get("/queries/planned/plan").headers["content-type"].startswith("text/plain")
    found = server.client.get("/queries/planned/plan", headers={"Accept": "application/json"}).json()
    assert found["form"] == "select"
    mermaid = server.client.get("/queries/planned/plan", params={"format": "mermaid", "graph": "denotational"})
    assert "flowchart" in mermaid.text
    picture = server.client.get("/queries/planned/plan", params={"format": "svg"})
    assert picture.status_code in (200, 406), "without Graphviz there is none, and it says so"
    is_problem(server.client.get("/queries/planned/plan", headers={"Accept": "image/png"}), 406)


@pytest.mark.parametrize(
    ("media_type", "body", "counts"),
    [
        ("text/x-timed-nquads", lines(1, 2, 1) + b"nonsense\n", (2, 1, 1)),
        ("application/n-quads", b"<urn:x> <urn:v> <urn:o> <urn:g> .", (1, 0, 0)),
        ("text/turtle; charset=utf-8", b"<urn:x> <urn:v> 1 .", (1, 0, 0)),
        ("application/trig", b"<urn:g> { <urn:x> <urn:v> 1 }", (1, 0, 0)),
        ("application/ld+json", b'{"@id": "urn:x", "urn:v": 1}', (1, 0, 0)),
        ("application/json", b'[{"id": 1, "v": 2}, {"id": 3, "v": 4}, 5]', (2, 0, 1)),
        ("application/x-ndjson", b'{"id": 1, "v": 2}\n{"id": 3, "v": 4}\n', (2, 0, 0)),
        ("text/csv", b"id,v\n1,2\n3,4\n5\n", (2, 0, 1)),
        ("application/trig", b"", (0, 0, 0)),
        ("text/turtle", b"# nothing", (0, 0, 0)),
    ],
)
def test_a_stream_is_fed_in_many_forms(
    server: Server, media_type: str, body: bytes, counts: tuple[int, int, int]
) -> None:
    name = f"fed-{abs(hash((media_type, body)))}"
    description = {"template": '<urn:{id}> <urn:v> "{v}" .'} if b"id" in body and b"@id" not in body else {}
    assert server.client.put(f"/streams/{name}", json=description).status_code == 201
    found = server.client.post(f"/streams/{name}", content=body, headers={"Content-Type": media_type}).json()
    assert (found["good"], found["late"], found["bad"]) == counts


def test_what_is_no_feed_is_a_problem(server: Server) -> None:
    server.client.put("/streams/s")
    is_problem(server.client.post("/streams/none", content=b"", headers=TNQ), 404)
    is_problem(server.client.post("/streams/s", content=b"", headers={"Content-Type": "image/png"}), 415)
    is_problem(server.client.post("/streams/s", content=b"x" * 400_001, headers=TNQ), 413)
    is_problem(server.client.post("/streams/s", content=b"", headers=TNQ, params={"time": "soon"}), 400)
    json = {"Content-Type": "application/json"}
    is_problem(server.client.post("/streams/s", content=b"{}", headers=json), 400)


def test_a_body_under_a_key_is_taken_once(server: Server) -> None:
    fresh(server, "once")
    first = server.feed(1, 2, stream="once", key="k")
    again = server.feed(1, 2, stream="once", key="k")
    assert first.json() == again.json()
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    is_problem(server.feed(3, stream="once", key="k"), 422)


def test_dead_letters_have_reasons_and_nothing_of_the_machine(server: Server) -> None:
    server.put_query("buried", fresh(server, "buried"))
    server.client.post("/streams/buried", content=lines(5, 1) + b"nonsense\n", headers=TNQ)

    def letters() -> Any:
        response = server.client.get("/streams/buried/dead-letters")
        assert "/tmp" not in response.text
        return response.json()["dead_letters"]

    wait_for(lambda: len(letters()) == 2)
    found = {one["kind"]: one for one in letters()}
    assert found.keys() == {"late", "bad"}
    assert all(one["reason"] for one in found.values())
    assert found["late"]["text"] == f'<urn:x> <urn:v> "1"^^<{INTEGER}> .'
    assert "nonsense" in found["bad"]["text"]


def test_a_stream_is_described_and_deleted(server: Server) -> None:
    server.put_query("reading", fresh(server, "described"))
    body = server.client.get("/streams/described", headers={"Accept": "text/turtle"})
    assert any("RDFStream" in str(quad.object) for quad in parse(body.content, format=RdfFormat.TURTLE))
    is_problem(server.client.put("/streams/described", json={"source": "tcp://127.0.0.1:1"}), 409)
    is_problem(server.client.put("/streams/elsewhere", json={"source": "nonsense://x"}), 403)
    is_problem(server.client.put("/streams/elsewhere", json={"sauce": "push"}), 422)
    is_problem(server.client.delete("/streams/described"), 409)
    server.client.delete("/queries/reading")
    assert server.client.delete("/streams/described").status_code == 204
    is_problem(server.client.get("/streams/described"), 404)


def test_metrics_are_those_of_prometheus(server: Server) -> None:
    text = "SELECT ?x (COUNT(?v) AS ?n) FROM STREAM <gauged> [RANGE 2s STEP 1s] WHERE { ?x <urn:v> ?v } GROUP BY ?x"
    fresh(server, "gauged")
    server.put_query("gauged", text, gauges="true")
    server.feed(0, 1, 2, stream="gauged")
    server.events("gauged", 2, after="first")
    found = {
        sample.name: sample.value
        for family in text_string_to_metric_families(server.client.get("/metrics").text)
        for sample in family.samples
        if sample.labels.get("query", "gauged") == "gauged" and sample.labels.get("status", "running") == "running"
    }
    assert found["headwater_engine_up"] == 1
    assert found["headwater_query_status"] == 1
    assert found["headwater_answer_value"] == 2
    wait_for(lambda: 'headwater_query_ticks_total{query="gauged"} 2.0' in server.client.get("/metrics").text)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(
            ("queries", name)
            for name in ("validate", "a/answers", "a/answers/latest", "a/plan", "a%09b", "a%E2%80%AEb")
        ),
        *(("streams", name) for name in ("a/dead-letters", "%00", "a%C2%85", "a%E2%81%A6b", "a/%2E%2E/b", "x" * 501)),
    ],
)
def test_names_that_no_path_reaches_are_refused(server: Server, kind: str, name: str) -> None:
    found = is_problem(server.client.put(f"/{kind}/{name}", content=COUNT if kind == "queries" else None), 400)
    assert found["title"].startswith("This is no name")


@pytest.mark.parametrize(
    ("method", "path", "knows"),
    [
        ("GET", "/queries?state=running", "none"),
        ("PUT", "/queries/x?bogus=1", "seconds"),
        ("GET", "/queries/x/answers?mod=changes", "mode"),
        ("POST", "/streams/s?at=1", "time"),
        ("GET", "/status?a=1", "none"),
    ],
)
def test_a_parameter_that_is_not_known_is_a_problem(server: Server, method: str, path: str, knows: str) -> None:
    assert knows in is_problem(server.client.request(method, path), 400)["detail"].partition("takes")[2]


def test_wrong_methods_are_told_the_right_ones(server: Server) -> None:
    for path, methods in (
        ("/queries/x", {"GET", "PUT", "POST", "DELETE"}),
        ("/status", {"GET"}),
        ("/streams", {"GET"}),
    ):
        found = server.client.patch(path)
        assert set(found.headers["allow"].split(", ")) == methods
    assert set(server.client.patch("/sparql").headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


def test_what_is_not_there_is_a_problem(server: Server) -> None:
    is_problem(server.client.get("/nothing"), 404)
    is_problem(server.client.patch("/queries/x"), 405)
    is_problem(server.client.post("/queries/x", params={"action": "sing"}), 422)
    is_problem(server.client.put("/queries/preview", content=VALUES), 400)


def test_openapi_names_every_path_and_every_answer(server: Server) -> None:
    document = server.client.get("/openapi.json").json()
    paths = {path.replace(":path", "") for path in document["paths"]}
    assert {"/queries/{name}", "/queries/{name}/answers", "/streams/{name}", "/metrics", "/health"} <= paths
    for operations in document["paths"].values():
        for operation in operations.values():
            assert operation["summary"]
            assert operation.get("description") or operation["responses"]
            for status, response in operation["responses"].items():
                assert response["description"], status
            assert "500" not in operation["responses"]
    described = document["paths"]["/streams/{name}"]["get"]["responses"]["200"]["content"]
    assert described["application/json"]["schema"] == {"type": "object"}
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert (document["security"], document["paths"]["/health"]["get"]["security"]) == ([{}, {"token": []}], [])


def test_a_long_name_in_any_script_is_one_like_others(server: Server) -> None:
    name = "पन्ह " * 100
    path = f"/queries/{quote(name[:500])}"
    assert server.client.put(path, content=fresh(server, "long")).status_code == 201
    assert server.client.get(path).json()["name"] == name[:500]
    assert server.client.get(f"{path}/answers/latest").status_code in (200, 404)
    assert server.client.delete(path).status_code == 204
