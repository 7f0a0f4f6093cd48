"""The engine's side of the server: what is registered stays, what is posted is answered, what cannot be is refused."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.execution.registered import RegistrationError
from headwater.language.errors import QueryError
from headwater.server.answers.log_files import LogReader, log_folder
from headwater.server.process.call_errors import NotAllowedHere, TooMany, UnknownName
from headwater.server.process.engine_service import EngineService
from headwater.server.process.engine_settings import EngineSettings
from headwater.server.process.registry import QueryEntry, StreamEntry

COUNT = "SELECT (COUNT(?v) AS ?n) FROM STREAM <s> [RANGE 2s STEP 1s] WHERE { ?x <urn:v> ?v }"
SUM = "SELECT (SUM(?v) AS ?n) FROM STREAM <s> [RANGE 2s STEP 1s] WHERE { ?x <urn:v> ?v }"
PATIENCE = 60.0


def lines(*seconds: int) -> bytes:
    return "".join(f"{one * 1000}\t<urn:x> <urn:v> {value(one)} .\n" for one in seconds).encode()


def value(number: int) -> str:
    return f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def wait_for(is_so: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := is_so()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found


def logged(state: Path, query: str) -> list[tuple[int, list[str]]]:
    found = []
    for record, _ in LogReader(log_folder(state / "answers", query)).read_after(None):
        for line in record.lines:
            answer = json.loads(line)
            rows = answer["results"]["bindings"]
            found.append((answer["time_us"] // 1_000_000, [row["n"]["value"] for row in rows]))
    return found


class Services:
    """Services over one state folder, one after the other."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.service: EngineService | None = None
        self.told: list[tuple[str, Any]] = []

    def start(self, **settings: Any) -> EngineService:
        self.close()
        self.service = EngineService(EngineSettings(str(self.state), **settings), lambda *one: self.told.append(one))
        self.service.start()
        return self.service

    def close(self) -> None:
        if self.service is not None:
            self.service.close()
            self.service = None


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    found = Services(tmp_path / "state")
    yield found
    found.close()


def test_what_is_posted_is_answered_and_logged_also_behind_a_restart(services: Services) -> None:
    service = services.start()
    assert service.put_stream("s", {}) == {"created": True, "changed": True}
    assert service.put_query("q", COUNT, {}) == {"created": True, "changed": True}
    assert service.put_query("q", COUNT, {}) == {"created": False, "changed": False}
    assert service.post("s", lines(0, 1, 2), "tnq")["good"] == 3
    wait_for(lambda: len(logged(services.state, "q")) == 2)
    service = services.start()
    assert service.status()["queries"]["q"]["status"] == "running"
    service.post("s", lines(3), "tnq", key="a")
    assert service.post("s", lines(3), "tnq", key="a")["is_repeated"]
    wait_for(lambda: len(logged(services.state, "q")) == 3)
    assert logged(services.state, "q") == [(0, ["1"]), (1, ["2"]), (2, ["2"])]
    assert ("answers", ["q"]) in services.told


def test_a_query_is_replaced_paused_resumed_and_dropped(services: Services) -> None:
    service = services.start()
    service.put_stream("s", {})
    service.put_query("q", COUNT, {})
    service.post("s", lines(0, 1), "tnq")
    wait_for(lambda: logged(services.state, "q"))
    service.pause_query("q")
    assert service.status()["queries"]["q"]["status"] == "paused"
    service = services.start()
    assert service.status()["queries"]["q"]["status"] == "paused", "also behind a restart"
    service.post("s", lines(2, 3, 4), "tnq")
    assert logged(services.state, "q") == [(0, ["1"])]
    service.resume_query("q")
    wait_for(lambda: logged(services.state, "q")[-1][0] == 3)
    assert not service.put_query("q", SUM, {})["created"]
    service.post("s", lines(5, 6), "tnq")
    wait_for(lambda: (5, ["9"]) in logged(services.state, "q"))
    assert (0, ["1"]) not in logged(services.state, "q"), "answers of another text are others"
    service.drop_query("q")
    assert logged(services.state, "q") == []
    assert service.status()["queries"] == {}
    with pytest.raises(UnknownName):
        service.drop_query("q")


def test_what_cannot_be_registered_changes_nothing(services: Services) -> None:
    service = services.start(most_queries=1, most_streams=1)
    with pytest.raises(RegistrationError, match="make it first"):
        service.put_query("q", COUNT, {})
    service.put_stream("s", {})
    with pytest.raises(TooMany):
        service.put_stream("t", {})
    service.put_query("q", COUNT, {})
    with pytest.raises(QueryError):
        service.put_query("q", "SELECT nonsense", {})
    with pytest.raises(TooMany):
        service.put_query("r", COUNT, {})
    with pytest.raises(RegistrationError, match="read by q"):
        service.drop_stream("s")
    with pytest.raises(RegistrationError, match="another one"):
        service.put_stream("s", {"source": "tcp://127.0.0.1:1"})
    with pytest.raises(UnknownName):
        service.post("t", b"", "tnq")
    assert list(service.status()["queries"]) == ["q"]
    service.post("s", lines(0, 1), "tnq")
    wait_for(lambda: logged(services.state, "q") == [(0, ["1"])])


def test_a_query_over_http_reads_no_file_of_the_machine(services: Services, tmp_path: Path) -> None:
    service = services.start()
    path = tmp_path / "stream.tnq"
    path.write_bytes(lines(0, 1))
    with pytest.raises(RegistrationError):
        service.put_query("q", COUNT.replace("<s>", f"<file://{path}>"), {})
    service.put_stream("s", {})
    rates = f"SERVICE <http://127.0.0.1:9/> OPTION (RATES <file://{path}>) {{ ?x <urn:w> ?w }}"
    with pytest.raises(Exception, match=r"."):
        service.put_query("q", COUNT.replace("?v }", f"?v {rates} }}"), {})
    assert service.status()["queries"] == {}


def test_a_stream_is_deleted_and_made_anew_while_others_go_on(services: Services) -> None:
    service = services.start()
    for name in ("s", "t"):
        service.put_stream(name, {})
    service.put_query("q", COUNT, {})
    service.post("s", lines(0, 1), "tnq")
    wait_for(lambda: logged(services.state, "q"))
    service.post("t", lines(0, 1), "tnq")
    service.drop_stream("t")
    service.post("s", lines(2), "tnq")
    wait_for(lambda: len(logged(services.state, "q")) == 2)
    service.put_stream("t", {})
    service.put_query("r", COUNT.replace("<s>", "<t>"), {})
    service.post("t", lines(7, 8), "tnq")
    wait_for(lambda: logged(services.state, "r") == [(7, ["1"])])


def test_what_stands_in_the_settings_is_fixed_and_goes_with_them(services: Services) -> None:
    fixed = {"queries": {"q": QueryEntry(COUNT)}, "streams": {"s": StreamEntry()}}
    service = services.start(**fixed)
    with pytest.raises(NotAllowedHere, match="settings file"):
        service.drop_query("q")
    with pytest.raises(NotAllowedHere, match="settings file"):
        service.drop_stream("s")
    service.post("s", lines(0, 1), "tnq")
    wait_for(lambda: logged(services.state, "q"))
    service = services.start(**fixed)
    service.post("s", lines(2), "tnq")
    wait_for(lambda: logged(services.state, "q") == [(0, ["1"]), (1, ["2"])])
    service = services.start(streams=fixed["streams"])
    assert service.status()["queries"] == {}


def test_a_query_whose_stream_has_gone_is_failed_and_the_others_run(services: Services) -> None:
    service = services.start(streams={"t": StreamEntry()})
    service.put_stream("s", {})
    service.put_query("q", COUNT, {})
    service.put_query("r", COUNT.replace("<s>", "<t>"), {})
    service = services.start()
    states = {name: one["status"] for name, one in service.status()["queries"].items()}
    assert states == {"q": "running", "r": "failed"}
    service.post("s", lines(0, 1), "tnq")
    wait_for(lambda: logged(services.state, "q"))


def test_a_query_is_checked_and_explained(services: Services) -> None:
    service = services.start()
    service.put_stream("s", {})
    found = service.validate(COUNT)
    assert found["valid"]
    assert found["windows"] == [{"stream": "s", "label": "s", "window": "RANGE 2s STEP 1s"}]
    assert found["unknown_streams"] == []
    wrong = service.validate("SELECT ?x WHERE {\n  ?x <urn:p> }")
    assert not wrong["valid"]
    assert wrong["errors"][0]["line"] == 2
    assert service.validate(COUNT.replace("<s>", "<other>"))["unknown_streams"] == ["other"]
    service.put_query("q", COUNT, {})
    assert "Window" in service.plan("q", "text") or "window" in service.plan("q", "text")
    assert service.plan("q", "mermaid").startswith("---\ntitle")
    assert service.plan("q", "json")["form"] == "select"


def test_a_preview_answers_over_what_there_is_and_leaves_nothing(services: Services) -> None:
    service = services.start()
    service.put_stream("s", {})
    service.post("s", lines(0, 1, 2), "tnq")
    found = service.preview(SUM, {})
    assert found["answer"]["time_us"] == 2_000_000
    assert found["answer"]["results"]["bindings"][0]["n"]["value"] == "3"
    assert service.status()["queries"] == {}
    assert service.preview(COUNT, {})["whole"]


def test_a_preview_that_never_ends_is_ended(services: Services) -> None:
    service = services.start(preview_seconds=0.5)
    service.put_stream("s", {})
    many = b"".join(lines(number) for number in range(2_000))
    service.post("s", many, "tnq")
    triple = "FROM STREAM <s> [RANGE 2000s STEP 1s] WHERE { ?a <urn:v> ?b . ?c <urn:v> ?d . ?e <urn:v> ?f }"
    begin = threading.active_count()
    try:
        found = service.preview(f"SELECT (COUNT(*) AS ?n) {triple}", {})
    except Exception as error:
        assert "limit" in str(error)
    else:
        assert not found["whole"]
    assert threading.active_count() <= begin + 5


@pytest.mark.parametrize("locates", [False, True])
def test_an_error_about_a_stream_names_no_other_stream(services: Services, locates: bool) -> None:
    service = services.start(engine={"locate_streams": locates})
    service.put_stream("secret", {})
    with pytest.raises(RegistrationError, match="the stream s, which is not there") as found:
        service.put_query("q", COUNT, {})
    assert "secret" not in str(found.value)


def test_a_query_names_the_address_of_a_stream_where_streams_are_located(services: Services, tmp_path: Path) -> None:
    (tmp_path / "s.tnq").write_bytes(lines(0, 1, 2, 3))
    service = services.start(engine={"locate_streams": True})
    service.put_query("q", COUNT.replace("<s>", f"<{(tmp_path / 's.tnq').as_uri()}>"), {})
    assert wait_for(lambda: logged(services.state, "q"))
