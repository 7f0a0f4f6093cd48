"""The settings of the server: what stands where, what the environment overrides, and what cannot be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import SettingError
from headwater.server.access import hash_token
from headwater.server.server_settings import read_server_settings

WHOLE = """
[server]
port = 9001
state = "state"
in_process = true

[engine]
delay = "2s"

[limits]
rows = 1000

[retention]
age = "2h"

[egress]
allow = ["https://example.org/sparql"]

[[streams]]
name = "http://city/gates"
template = "gates.template"
format = "json"

[[streams]]
name = "recorded"
source = "old/*.tnq"

[[queries]]
name = "busy"
file = "busy.rq"
report = "close"

[[data]]
data = "city.ttl"

[[tokens]]
name = "dashboard"
hash = "HASH"
scopes = ["read"]
queries = ["busy"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gates.template").write_text('<http://city/{gate}> <urn:saw> "{car}" .\n')
    (tmp_path / "busy.rq").write_text("SELECT ?x WHERE { ?x ?y ?z }")
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "headwater.toml"
    path.write_text(text)
    return path


def test_a_whole_file_is_read(folder: Path) -> None:
    path = write(folder, WHOLE.replace("HASH", hash_token("secret")))
    settings = read_server_settings(path, {})
    assert settings.server.port == 9001
    engine = settings.to_engine_settings()
    assert engine.state == str(folder / "state")
    assert engine.engine["delay"] == "2s"
    assert engine.engine["limits"] == {"rows": 1000}
    assert engine.retention_seconds == 7200
    assert engine.queries["busy"].text == "SELECT ?x WHERE { ?x ?y ?z }"
    assert engine.queries["busy"].options == {"report": "close"}
    assert engine.streams["http://city/gates"].template is not None
    assert engine.streams["recorded"].source == f"file://{folder}/old/*.tnq"
    assert engine.data == ({"data": str(folder / "city.ttl")},)
    assert settings.tokens[0].to_token().queries == ("busy",)


def test_without_a_file_there_are_defaults() -> None:
    settings = read_server_settings(None, {})
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8080)
    assert settings.to_engine_settings().egress == {"allow": [], "networks": []}


def test_the_environment_goes_before_the_file(folder: Path) -> None:
    path = write(folder, "[server]\nport = 1\n")
    environment = {
        "HEADWATER_SERVE_SERVER_PORT": "2",
        "HEADWATER_SERVE_SERVER_STATE": "elsewhere",
        "HEADWATER_SERVE_ENGINE_MAX_AHEAD": "1h",
        "HEADWATER_SERVE_STREAMS": '[{name = "s"}]',
        "HEADWATER_DEBUG": "1",
    }
    settings = read_server_settings(path, environment)
    assert (settings.server.port, settings.server.state) == (2, "elsewhere")
    assert settings.engine.max_ahead == "1h"
    assert settings.streams[0].name == "s"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("[server]\nport = 99999\n", "line 2, column 8", "server.port"),
        ("[server]\n\n  prot = 1\n", "line 3, column 10", "no such setting"),
        ("[serve]\nport = 1\n", "line 1, column 1", "no such setting"),
        ("[engine]\ndelay = 'soon'\n", "line 2, column 9", "soon"),
        ('[[streams]]\nname = "a"\n\n[[streams]]\nname = 7\n', "line 5, column 8", "streams.1.name"),
        ('[[streams]]\nname = "a"\n[[streams]]\nname = "a"\n', "line 1, column 1", "stands twice"),
        ('[[streams]]\nname = "a"\nformat = "json"\n', "line 1, column 1", "need a template"),
        ('[[queries]]\nname = "q"\n', "line 1, column 1", "either text or file"),
        ('[[tokens]]\nname = "t"\nhash = "secret"\n', "line 1, column 1", "--make-token"),
        ("[limits]\nrow = 1\n", "line 1, column 1", "no limit row"),
        ("[egress]\nallow = ['nonsense']\n", "line 1, column 1", "no address to allow"),
        ("[server]\ncertificate = 'a'\n", "line 1, column 1", "both certificate and key"),
        ("[server\n", "line 1, column", "no TOML"),
        ('[server]\nstate = """\nport = 1\n"""\nhost = 1\n', "line 5, column 8", "server.host"),
    ],
)
def test_what_cannot_be_right_is_said_with_its_place(folder: Path, text: str, place: str, message: str) -> None:
    with pytest.raises(SettingError) as failure:
        read_server_settings(write(folder, text), {})
    assert place in str(failure.value)
    assert message in str(failure.value)


def test_a_wrong_variable_is_named(folder: Path) -> None:
    with pytest.raises(SettingError, match=r"^HEADWATER_SERVE_SERVER_PORT: server.port"):
        read_server_settings(None, {"HEADWATER_SERVE_SERVER_PORT": "many"})
    with pytest.raises(SettingError, match="overrides no setting"):
        read_server_settings(None, {"HEADWATER_SERVE_PORTS": "1"})
