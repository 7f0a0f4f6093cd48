"""The settings of the server: what stands where, what the environment overrides, and what cannot be right."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from headwater.errors import SettingError
from headwater.server.access import hash_token
from headwater.server.http_server import check_settings, open_port
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
        ('[[queries]]\nname = "q"\n', "line 1, column 1", "either text or file"),
        ('[[tokens]]\nname = "t"\nhash = "secret"\n', "line 1, column 1", "--make-token"),
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


TEXT = "SELECT ?x\nFROM STREAM <s> [RANGE 1s STEP 1s] WHERE { ?x <urn:v> }"
GOOD = "SELECT ?x FROM STREAM <s> [RANGE 1s STEP 1s] WHERE { ?x <urn:v> ?v }"
STREAM = '[[streams]]\nname = "s"\n'


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("[limits]\nrow = 1\n", "toml, line 2, column 7", "no limit row"),
        ("[egress]\nallow = [\n  'https://example.org/',\n  'nonsense',\n]\n", "toml, line 4, column 4", "to allow"),
        ("[egress]\nnetworks = ['nonsense']\n", "toml, line 2, column 14", "nonsense"),
        (STREAM + 'format = "json"\n', "toml, line 3, column 10", "need a template"),
        (STREAM + 'format = "jsn"\n', "toml, line 3, column 10", "jsn"),
        (STREAM + 'format = "json"\ntemplate = "bad.template"\n', "toml, line 4, column 12", "bad.template:1: @time"),
        (STREAM + 'template = "none.template"\n', "toml, line 3, column 12", "none.template cannot be read"),
        (STREAM + 'source = "foo://bar"\n', "toml, line 3, column 10", "no stream is read from foo://"),
        (STREAM + 'idle = "soon"\n', "toml, line 3, column 8", "soon"),
        ('[[data]]\ngraph = "g"\ndata = "nofile.ttl"\n', "toml, line 3, column 8", "no file or folder"),
        ('[[endpoints]]\nurl = "https://example.org/"\nbogus = 1\n', "toml, line 3, column 9", "'bogus'"),
        ("[[endpoints]]\ntimeout = 1\n", "toml, line 1, column 1", "url"),
        (f'{STREAM}[[queries]]\nname = "q"\ntext = """\n{TEXT}"""\n', "toml, line 7, column 44", "queries.0"),
        (
            f'{STREAM}[[queries]]\nname = "q"\ntext = "SELECT ?x WHERE {{ ?x }}"\n',
            "toml, line 5, column 27",
            "queries.0",
        ),
        (f'{STREAM}[[queries]]\nname = "q"\nfile = "bad.rq"\n', "bad.rq, line 2, column 44", "queries.0"),
        (f'[[queries]]\nname = "q"\ntext = "{GOOD}"\n', "toml, line 3, column 8", "stream s, which is not there"),
        (f'{STREAM}[[queries]]\nname = "q"\ntext = "{GOOD}"\nt0 = "soon"\n', "toml, line 6, column 6", "soon"),
        (f'[[queries]]\nname = "q"\ntext = "{GOOD}"\nlimits = {{bogus = 1}}\n', "toml, line 4, column 10", "bogus"),
        ('[server]\ncertificate = "c.pem"\nkey = "k.pem"\n', "toml, line 2, column 15", "c.pem cannot be read"),
        ('[server]\ncors = ["https://a.org", "nope"]\n', "toml, line 2, column 27", "'nope' is no origin"),
    ],
)
def test_what_the_engine_would_refuse_is_said_with_its_place(folder: Path, text: str, place: str, message: str) -> None:
    (folder / "bad.rq").write_text(TEXT)
    (folder / "bad.template").write_text("@time\n<http://city/{gate> <urn:saw> .\n")
    settings = read_server_settings(write(folder, text), {})
    with pytest.raises(SettingError) as failure:
        check_settings(settings)
    assert place in str(failure.value)
    assert message in str(failure.value)


def test_several_mistakes_are_said_at_once(folder: Path) -> None:
    text = "[limits]\nrow = 1\n[[data]]\ndata = 'none.ttl'\n[[endpoints]]\nurl = 'https://example.org/'\nbogus = 1\n"
    with pytest.raises(SettingError) as failure:
        check_settings(read_server_settings(write(folder, text), {}))
    assert len(str(failure.value).splitlines()) == 3


def test_settings_that_are_right_have_no_complaints(folder: Path) -> None:
    (folder / "city.ttl").write_text("<urn:a> <urn:b> <urn:c> .")
    made = (
        "REGISTER STREAM <made> AS CONSTRUCT { ?x <urn:v> ?v } "
        "FROM STREAM <recorded> [RANGE 1s STEP 1s] WHERE { ?x ?p ?v }"
    )
    text = (
        WHOLE.replace("HASH", hash_token("secret"))
        + f'[[queries]]\nname = "maker"\ntext = "{made}"\n[[queries]]\nname = "reader"\n'
        + f'text = "{GOOD.replace("<s>", "<made>")}"\nlimits = {{rows = 10, seconds = 0.5}}\n'
        + '[[endpoints]]\nurl = "https://example.org/sparql"\nper_second = 2\n'
    )
    assert check_settings(read_server_settings(write(folder, text), {})) == []


def test_small_packets_are_sent_at_once() -> None:
    with open_port("127.0.0.1", 0) as opened:
        assert opened.proto == socket.IPPROTO_TCP, "asyncio sets no TCP_NODELAY"


def test_a_port_that_is_used_is_said_in_words() -> None:
    expected = pytest.raises(SettingError, match="another program listens there: stop it, or name another port")
    with open_port("127.0.0.1", 0) as taken, expected:
        open_port("127.0.0.1", taken.getsockname()[1])


def test_a_wrong_variable_is_named(folder: Path) -> None:
    with pytest.raises(SettingError, match=r"^HEADWATER_SERVE_SERVER_PORT: server.port"):
        read_server_settings(None, {"HEADWATER_SERVE_SERVER_PORT": "many"})
    with pytest.raises(SettingError, match="overrides no setting"):
        read_server_settings(None, {"HEADWATER_SERVE_PORTS": "1"})
