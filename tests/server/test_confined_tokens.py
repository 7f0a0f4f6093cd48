"""A token that is confined to names of some beginning has nothing of the others: no stream, no count, no name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from headwater.server.access import Caller, hash_token
from headwater.server.page.page_access import PageOverview
from headwater.server.page.served.server_access import ServerAccess
from headwater.server.problems import Problem
from headwater.server.server_services import ServerServices
from headwater.server.stream_rights import find_stream_use
from headwater.terms.names import name_to_iri
from tests.server.serving import COUNT, PATIENCE, Server, serving

ADMIN, TEAM = "hw_admin_secret", "hw_team_secret"
SETTINGS = f"""
[[tokens]]
name = "admin"
hash = "{hash_token(ADMIN)}"
scopes = ["admin"]

[[tokens]]
name = "team"
hash = "{hash_token(TEAM)}"
scopes = ["read", "register", "feed"]
queries = ["team/"]
streams = ["team/"]

[limits]
seconds = 20
"""
MAKES = (
    "REGISTER STREAM <{made}> AS CONSTRUCT {{ ?x <urn:w> ?v }} "
    "FROM STREAM <{read}> [RANGE 2s STEP 1s] WHERE {{ ?x <urn:v> ?v }}"
)


def over(stream: str) -> str:
    return COUNT.replace("<s>", f"<{stream}>")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("shared"), SETTINGS, ADMIN) as found:
        for name in ("secret", "team/s"):
            assert found.client.put(f"/streams/{name}").status_code == 201
        assert found.put_query("hidden", over("secret")).status_code == 201
        assert found.put_query("derived", MAKES.format(made="fabricated", read="secret")).status_code == 201
        found.feed(0, 1, 2, 3, stream="secret")
        found.feed(0, 1, stream="team/s")
        yield found


@pytest.fixture
def team(shared: Server) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {TEAM}"}
    with httpx.Client(base_url=shared.url, headers=headers, timeout=PATIENCE, trust_env=False) as client:
        yield client


@pytest.mark.parametrize(
    "text",
    [
        over("secret"),
        over("headwater:/secret"),
        over("team/../secret"),
        over("fabricated"),
        over("nowhere"),
        over("file:///etc/passwd"),
        "SELECT * WHERE { STREAM ?s [RANGE 2s] { ?x <urn:v> ?v } }",
        "SELECT * WHERE { STREAM <team/s> [RANGE 2s] { ?x <urn:v> ?v } "
        "FILTER EXISTS { STREAM <secret> [RANGE 2s] { ?x <urn:v> ?v } } }",
        MAKES.format(made="secret2", read="team/s"),
        MAKES.format(made="team/made", read="secret"),
    ],
)
def test_a_text_reads_and_makes_no_stream_of_others(shared: Server, team: httpx.Client, text: str) -> None:
    for method, path in (("PUT", "/queries/team/q"), ("POST", "/queries/validate"), ("POST", "/queries/preview")):
        found = team.request(method, path, content=text)
        assert (found.status_code, found.json()["title"]) == (403, "The token does not allow this"), path
    assert shared.client.get("/queries/team/q").status_code == 404


def test_a_text_over_streams_of_its_own_is_registered_and_previewed(shared: Server, team: httpx.Client) -> None:
    assert team.post("/queries/validate", content=over("team/s")).json()["valid"]
    wrong = team.post("/queries/validate", content="SELECT ?x\nWHERE { ?x }").json()
    assert (wrong["valid"], wrong["errors"][0]["line"]) == (False, 2)
    found = team.post("/queries/preview", content=over("team/s")).json()
    assert found["answer"]["time_us"] == 1_000_000
    assert team.put("/queries/team/own", content=over("team/s")).status_code == 201
    assert team.put("/queries/team/made", content=MAKES.format(made="team/made", read="team/s")).status_code == 201
    assert team.put("/queries/team/reads", content=over("team/made").replace("urn:v", "urn:w")).status_code == 201
    assert team.put("/queries/team/wrong", content="SELECT").status_code == 400
    for name in ("reads", "made", "own"):
        assert team.delete(f"/queries/team/{name}").status_code == 204


def test_the_streams_of_a_text_are_found() -> None:
    use = find_stream_use(MAKES.format(made="a", read="b"), None)
    assert (set(use.read), set(use.made), use.reads_any) == ({"headwater:/b"}, {"headwater:/a"}, False)
    caller = Caller("t", frozenset({"read"}), ("",), ("a", "b"))
    assert not caller.has_all_streams
    with pytest.raises(Problem):
        caller.check("read", stream="c")


def test_counts_and_metrics_are_those_of_its_own_names(shared: Server, team: httpx.Client) -> None:
    assert team.put("/queries/team/counted", content=over("team/s")).status_code == 201
    metrics = team.get("/metrics").text
    assert 'headwater_query_status{query="team/counted",status="running"} 1.0' in metrics
    assert 'headwater_stream_unread_bytes{stream="team/s"}' in metrics
    status = team.get("/status").json()
    assert (status["queries"], status["streams"], status["subscriptions"]) == (1, 1, 0)
    assert set(status["run"]["streams"]) <= {"team/s"}
    for text in (metrics, str(status)):
        for other in ("secret", "hidden", "derived", "fabricated", "headwater_elements_total"):
            assert other not in text
    assert "hidden" in shared.client.get("/metrics").text
    assert shared.put_query("unseen", over("team/s")).status_code == 201
    refused = team.delete("/streams/team/s")
    assert (refused.status_code, "unseen" in refused.text) == (409, False)
    assert "unseen" in shared.client.delete("/streams/team/s").json()["detail"]
    assert shared.client.delete("/queries/unseen").status_code == 204
    assert shared.client.get("/status").json()["queries"] == 3


def test_only_an_admin_raises_a_limit(shared: Server, team: httpx.Client) -> None:
    for wrong in ({"seconds": "21"}, {"rows": "100000000"}, {"seconds": "1", "rows": "100000000"}):
        found = team.put("/queries/team/over", content=over("team/s"), params=wrong)
        assert (found.status_code, found.json()["title"]) == (403, "A request may only lower a limit")
    lower = {"seconds": "20", "rows": "5"}
    assert team.put("/queries/team/over", content=over("team/s"), params=lower).status_code == 201
    assert shared.put_query("team/over", over("team/s"), seconds="1000").status_code == 200


async def _overview_of(caller: Caller) -> PageOverview:
    class Engine:
        is_ready, failure = True, None

        async def call(self, *_: object, **__: object) -> dict[str, Any]:
            return {"datasets": [], "memory": 1}

    services: Any = object.__new__(ServerServices)
    services.engine, services.subscriptions = Engine(), 0
    services.fan_out = SimpleNamespace(counts={})
    run: dict[str, Any] = {
        "elements": 7,
        "streams": {"team/s": {"elements": 2}, "secret": {"elements": 5}},
        "watermarks": {},
    }
    streams = {name: {"source": "push", "iri": name_to_iri(name).value} for name in ("team/s", "secret")}
    services.status = {"queries": {}, "streams": streams, "run": run, "failure": None}
    return await ServerAccess(services, caller, lambda *_: None).overview()


def test_the_page_counts_the_elements_of_the_streams_that_its_reader_may_see() -> None:
    confined = Caller("team", frozenset({"read"}), ("team/",), ("team/",))
    assert asyncio.run(_overview_of(confined)).elements == 2
    assert asyncio.run(_overview_of(Caller())).elements == 7
