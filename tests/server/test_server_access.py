"""Who may do what over HTTP, how often, and what the audit log has."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from headwater.errors import SettingError
from headwater.server.access import AccessControl, AccessToken, Caller, hash_token, make_token
from headwater.server.problems import Problem
from headwater.server.request_limits import RateLimit
from tests.server.serving import COUNT, PATIENCE, TNQ, Server, lines, serving

TOKENS = {
    "reader": ("read", "[]"),
    "feeder": ("feed", '["public/"]'),
    "author": ("register", '["public/"]'),
    "admin": ("admin", '[""]'),
}
SECRETS = {name: f"hw_{name}_secret" for name in TOKENS}


def settings() -> str:
    tables = ["[http]\nrequests_per_second = 2000\nburst = 500\n"]
    for name, (scope, prefixes) in TOKENS.items():
        confined = f"queries = {prefixes}\nstreams = {prefixes}\n" if name in ("feeder", "author") else ""
        hashed = hash_token(SECRETS[name])
        tables.append(f'[[tokens]]\nname = "{name}"\nhash = "{hashed}"\nscopes = ["{scope}"]\n{confined}')
    return "\n".join(tables)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("guarded"), settings(), SECRETS["admin"]) as found:
        for name in ("public/s", "private/s"):
            assert found.client.put(f"/streams/{name}").status_code == 201
        found.put_query("public/q", COUNT.replace("<s>", "<public/s>"))
        yield found


def ask(server: Server, who: str | None, method: str, path: str, **arguments: object) -> int:
    headers = dict(arguments.pop("headers", {}))  # type: ignore[call-overload]
    if who is not None:
        headers["Authorization"] = f"Bearer {SECRETS.get(who, who)}"
    with httpx.Client(base_url=server.url, timeout=PATIENCE, trust_env=False) as client:
        return client.request(method, path, headers=headers, **arguments).status_code  # type: ignore[arg-type]


def test_without_a_token_nothing_but_health_answers(guarded: Server) -> None:
    assert ask(guarded, None, "GET", "/health") == 200
    paths = ["/", "/ready", "/metrics", "/openapi.json", "/queries", "/queries/public/q/answers", "/streams", "/none"]
    for path in paths:
        for who in (None, "wrong"):
            assert ask(guarded, who, "GET", path) == 401
    assert ask(guarded, None, "PUT", "/streams/x") == 401
    with pytest.raises(InvalidStatus), connect(f"ws://127.0.0.1:{guarded.port}/live"):
        pass


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/queries", {"reader", "admin"}),
        ("GET", "/queries/public/q", {"reader", "admin"}),
        ("GET", "/queries/public/q/plan", {"reader", "admin"}),
        ("GET", "/metrics", {"reader", "admin"}),
        ("POST", "/streams/public/s", {"feeder", "admin"}),
        ("POST", "/streams/private/s", {"admin"}),
        ("PUT", "/streams/public/s", {"author", "admin"}),
        ("PUT", "/streams/private/s", {"admin"}),
        ("PUT", "/queries/public/q", {"author", "admin"}),
        ("PUT", "/queries/private/q", {"admin"}),
        ("POST", "/queries/public/q?action=resume", {"author", "admin"}),
    ],
)
def test_each_scope_allows_its_own(guarded: Server, method: str, path: str, allowed: set[str]) -> None:
    for who in TOKENS:
        body = lines(1) if path.startswith("/streams") and method == "POST" else COUNT.replace("<s>", "<public/s>")
        content = None if method == "GET" or (path.startswith("/streams") and method == "PUT") else body
        found = ask(guarded, who, method, path, content=content, headers=TNQ)
        assert (found < 300) == (who in allowed), (who, found)
        assert who in allowed or found == 403


def test_a_stream_from_elsewhere_needs_an_admin(guarded: Server) -> None:
    description = {"source": "tcp://127.0.0.1:1"}
    assert ask(guarded, "author", "PUT", "/streams/public/elsewhere", json=description) == 403
    assert ask(guarded, "admin", "PUT", "/streams/public/elsewhere", json=description) == 403, "the egress policy"


def test_the_audit_log_says_who_changed_what_and_has_no_secret(guarded: Server) -> None:
    ask(guarded, "author", "PUT", "/streams/public/noted")
    ask(guarded, None, "DELETE", "/streams/public/noted")
    path = guarded.folder / "headwater-state" / "audit.jsonl"
    text = path.read_text()
    entries = [json.loads(line) for line in text.splitlines()]
    noted = [(one["caller"], one["method"], one["status"]) for one in entries if one["path"] == "/streams/public/noted"]
    assert noted == [("author", "PUT", 201), ("anybody", "DELETE", 401)]
    assert not any(secret in text for secret in SECRETS.values())
    assert path.stat().st_mode & 0o077 == 0
    assert (guarded.folder / "headwater-state").stat().st_mode & 0o077 == 0
    assert all(one["method"] != "GET" for one in entries)


def test_the_audit_log_says_what_was_done(guarded: Server) -> None:
    client, path = guarded.client, guarded.folder / "headwater-state" / "audit.jsonl"

    def last() -> dict[str, object]:
        # Whoever has the answer finds its line.
        entry: dict[str, object] = json.loads(path.read_text().splitlines()[-1])
        return {key: value for key, value in entry.items() if key not in ("at", "caller", "address", "method", "path")}

    for action in ("pause", "resume"):
        client.post("/queries/public/q", params={"action": action})
        assert last() == {"status": 200, "name": "public/q", "action": action}
    client.post("/sparql", data={"update": "INSERT DATA { <urn:a> <urn:p> 1 }"})
    assert last() == {"status": 204, "operation": "update"}
    client.post("/sparql", data={"query": "ASK {}"})
    assert last() == {"status": 200, "operation": "query"}
    turtle = {"Content-Type": "text/turtle"}
    client.put("/data", params={"graph": "urn:g"}, content=b"<urn:a> <urn:p> 2 .", headers=turtle)
    assert last() == {"status": 201, "graph": "urn:g", "operation": "update"}
    client.put("/data?default", content=b"<urn:a> <urn:p> 2 .", headers=turtle)
    assert last()["graph"] == "default"


def test_a_token_is_made_and_known_by_its_hash() -> None:
    token = make_token()
    assert token != make_token()
    access = AccessControl([AccessToken("t", hash_token(token))])
    assert access.identify(f"Bearer {token}") == Caller("t", frozenset({"read"}))
    assert access.identify(f"bearer  {token} ").name == "t"
    for wrong in (None, "", token, f"Basic {token}", f"Bearer {token}x", "Bearer", "Bearer \ud800"):
        with pytest.raises(Problem) as failure:
            access.identify(wrong)
        assert failure.value.status == 401
    assert AccessControl().identify(None).may("admin")


def test_settings_of_tokens_that_cannot_be_right_are_refused() -> None:
    with pytest.raises(SettingError, match="not itself"):
        AccessToken.of("t", "secret", ["read"], None, None)
    with pytest.raises(SettingError, match="sing"):
        AccessToken.of("t", hash_token("x"), ["sing"], None, None)


def test_requests_are_limited_by_caller() -> None:
    now = [0.0]
    limit = RateLimit(2.0, 3, clock=lambda: now[0])
    for _ in range(3):
        limit.check("a")
    with pytest.raises(Problem) as failure:
        limit.check("a")
    assert failure.value.status == 429
    assert failure.value.headers["Retry-After"] == "1"
    limit.check("b")
    now[0] += 0.5
    limit.check("a")
    with pytest.raises(Problem):
        limit.check("a")
