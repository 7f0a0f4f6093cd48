"""The settings of `headwater serve`: one TOML file, whose values the environment can override.

    [server]
    port = 8080
    state = "/var/lib/headwater"

    [[streams]]
    name = "http://city/gates"

    [[queries]]
    name = "busy"
    file = "busy.rq"

`HEADWATER_SERVE_SERVER_PORT=9000` overrides `port` of `[server]`, and so on for every table; `HEADWATER_SERVE_TOKENS`
and the like have a whole list, in TOML. Relative paths are those from the folder of the file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from headwater.errors import SettingError
from headwater.server.access import AccessToken
from headwater.server.process.engine_settings import EngineSettings
from headwater.server.process.registry import PUSH, QueryEntry, StreamEntry
from headwater.server.toml_places import SettingsPlaces
from headwater.terms.arguments import check_duration, check_idle
from headwater.terms.durations import parse_duration

PREFIX = "HEADWATER_SERVE_"
_MEGABYTE = 1 << 20


class _Table(BaseModel):
    """A table of the file; keys that it does not know are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _check_with(check: Callable[[Any], object], value: Any) -> Any:
    """The value, if a check of the engine takes it."""
    try:
        check(value)
    except SettingError as error:
        raise ValueError(str(error)) from None
    return value


def read_limits(given: Mapping[str, float]) -> dict[str, float]:
    """Limits as the engine takes them: all but seconds are counts."""
    return {name: number if name == "seconds" else int(number) for name, number in given.items()}


class ServerTable(_Table):
    """`[server]`: where it listens, and where it keeps everything."""

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    state: str = "headwater-state"
    in_process: bool = False
    certificate: str | None = None
    key: str | None = None
    cors: tuple[str, ...] = ()
    callback_secret: str | None = Field(default=None, min_length=16)
    """Signs what is sent to callbacks; `${env:NAME}` and `${file:PATH}` stand for what a variable or a file has."""

    @model_validator(mode="after")
    def _check_certificate(self) -> ServerTable:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("TLS needs both certificate and key")
        return self


class EngineTable(_Table):
    """`[engine]`: arguments of the engine."""

    delay: str = "0s"
    idle: str | None = None
    max_ahead: str | None = None
    trigger: str = "100ms"
    batch_bytes: int = Field(default=4 * _MEGABYTE, ge=1)
    window_cap: int | None = Field(default=None, ge=1)
    locate_streams: bool = False
    master: str = "local[*]"

    @field_validator("delay", "trigger")
    @classmethod
    def _check_duration(cls, value: str) -> str:
        return str(_check_with(lambda one: check_duration("it", one), value))

    @field_validator("idle", "max_ahead")
    @classmethod
    def _check_idle(cls, value: str | None) -> str | None:
        return value if value is None else str(_check_with(lambda one: check_idle("it", one), value))


class HttpTable(_Table):
    """`[http]`: limits on what comes over HTTP."""

    body_bytes: int = Field(default=16 * _MEGABYTE, ge=1)
    body_seconds: float = Field(default=60.0, gt=0)
    head_seconds: float = Field(default=10.0, gt=0)
    requests_per_second: float | None = Field(default=None, gt=0)
    burst: int = Field(default=100, ge=1)
    queries: int = Field(default=200, ge=0)
    streams: int = Field(default=200, ge=0)
    subscriptions: int = Field(default=5_000, ge=0)
    waiting_events: int = Field(default=1_000, ge=1)
    slow_seconds: float = Field(default=30.0, gt=0)
    waiting_bytes: int = Field(default=8 * _MEGABYTE, ge=1)
    unread_bytes: int = Field(default=256 * _MEGABYTE, ge=1)
    preview_seconds: float = Field(default=10.0, gt=0)


class RetentionTable(_Table):
    """`[retention]`: how much of the answers of each query is kept for subscribers that come back."""

    age: str = "1d"
    bytes: int = Field(default=64 * _MEGABYTE, ge=1)

    @field_validator("age")
    @classmethod
    def _check_age(cls, value: str) -> str:
        return str(_check_with(lambda one: check_duration("it", one), value))


class EgressTable(_Table):
    """`[egress]`: what may be asked by SERVICE and the like; nothing, unless it stands here."""

    allow: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()


class StreamTable(_Table):
    """`[[streams]]`: a stream, fed over HTTP (`push`) or from an address."""

    name: str = Field(min_length=1)
    source: str = PUSH
    template: str | None = None
    format: str | None = None
    time: str | None = None
    idle: str | None = None


class QueryTable(_Table):
    """`[[queries]]`: a query, its text or the file that has it."""

    name: str = Field(min_length=1)
    text: str | None = None
    file: str | None = None
    dialect: Literal["csparql", "cqels", "rspql"] | None = None
    bounds: Literal["(]", "[)"] | None = None
    report: Literal["close", "change", "nonempty", "periodic", "eager"] | None = None
    emit: Literal["rstream", "istream", "dstream"] | None = None
    content: Literal["set", "bag"] | None = None
    t0: str | None = None
    limits: dict[str, float] | None = None
    gauges: bool = False

    @field_validator("limits")
    @classmethod
    def _read_limits(cls, value: dict[str, float] | None) -> dict[str, float] | None:
        return None if value is None else read_limits(value)

    @model_validator(mode="after")
    def _check_text(self) -> QueryTable:
        if (self.text is None) == (self.file is None):
            raise ValueError("a query needs either text or file")
        return self


class DataTable(_Table):
    """`[[data]]`: linked data, a data set's folder, files, or the address of a document."""

    data: str
    graph: str | None = None
    refresh: str | None = None


class TokenTable(_Table):
    """`[[tokens]]`: who may do what; the hash is what `headwater serve --make-token` prints."""

    name: str = Field(min_length=1)
    hash: str
    scopes: tuple[str, ...] = ("read",)
    queries: tuple[str, ...] | None = None
    streams: tuple[str, ...] | None = None

    def to_token(self) -> AccessToken:
        return AccessToken.of(self.name, self.hash, self.scopes, self.queries, self.streams)

    @model_validator(mode="after")
    def _check_token(self) -> TokenTable:
        _check_with(lambda one: one.to_token(), self)
        return self


class ServerSettings(_Table):
    """All of the file."""

    server: ServerTable = ServerTable()
    engine: EngineTable = EngineTable()
    http: HttpTable = HttpTable()
    retention: RetentionTable = RetentionTable()
    egress: EgressTable = EgressTable()
    limits: dict[str, float] = Field(default_factory=dict)
    streams: tuple[StreamTable, ...] = ()
    queries: tuple[QueryTable, ...] = ()
    data: tuple[DataTable, ...] = ()
    endpoints: tuple[dict[str, Any], ...] = ()
    tokens: tuple[TokenTable, ...] = ()
    folder: str = Field(default="", exclude=True)
    places: SettingsPlaces = Field(default=SettingsPlaces(), exclude=True)

    @field_validator("limits")
    @classmethod
    def _read_limits(cls, value: dict[str, float]) -> dict[str, float]:
        return read_limits(value)

    @field_validator("streams", "queries", "tokens")
    @classmethod
    def _check_names(cls, tables: tuple[Any, ...]) -> tuple[Any, ...]:
        names = [one.name for one in tables]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"the name {', '.join(doubled)} stands twice")
        return tables

    def path_of(self, name: str) -> Path:
        """A path of the file, relative ones from its folder."""
        return Path(self.folder) / name

    @property
    def state(self) -> Path:
        return self.path_of(self.server.state).absolute()

    def to_engine_settings(self) -> EngineSettings:
        """What the engine process is told; texts and templates are read now."""
        table = self.engine
        arguments: dict[str, Any] = table.model_dump(exclude={"trigger"}, exclude_none=True)
        if self.limits:
            arguments["limits"] = self.limits
        return EngineSettings(
            state=str(self.state),
            in_process=self.server.in_process,
            engine=arguments,
            trigger_seconds=parse_duration(table.trigger) / 1_000_000,
            egress={"allow": list(self.egress.allow), "networks": list(self.egress.networks)},
            endpoints=self.endpoints,
            data=tuple(one.model_dump(exclude_none=True) | {"data": self.data_place(one)} for one in self.data),
            queries={one.name: self.query_entry(one) for one in self.queries},
            streams={one.name: self.stream_entry(one) for one in self.streams},
            retention_seconds=parse_duration(self.retention.age) / 1_000_000,
            retention_bytes=self.retention.bytes,
            most_queries=self.http.queries,
            most_streams=self.http.streams,
            most_unread=self.http.unread_bytes,
            preview_seconds=self.http.preview_seconds,
        )

    def data_place(self, table: DataTable) -> str:
        return table.data if "://" in table.data else str(self.path_of(table.data).absolute())

    def query_entry(self, table: QueryTable) -> QueryEntry:
        text = table.text if table.file is None else self.read_text(table.file)
        names = ("dialect", "bounds", "report", "emit", "content", "t0", "limits")
        options = {name: value for name in names if (value := getattr(table, name)) is not None}
        return QueryEntry(text or "", options, table.gauges)

    def stream_entry(self, table: StreamTable) -> StreamEntry:
        template = None if table.template is None else self.read_text(table.template)
        is_path = table.source != PUSH and "://" not in table.source and not table.source.startswith("file:")
        source = f"file://{self.path_of(table.source).absolute()}" if is_path else table.source
        return StreamEntry(source, template, table.format, table.time, table.idle)

    def read_text(self, name: str) -> str:
        try:
            return self.path_of(name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no UTF-8"
            raise SettingError(f"{self.path_of(name)} cannot be read ({reason})") from None


def read_server_settings(path: Path | None, environment: Mapping[str, str] | None = None) -> ServerSettings:
    """The settings of a file, under the environment; a `SettingError` with line and column for what cannot be right.

    Whether the engine takes the values is for `setting_checks` to say.
    """
    text = ""
    if path is not None:
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no UTF-8"
            raise SettingError(f"the settings file {path} cannot be read ({reason})") from None
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{path} is no TOML: {error}") from None
    overridden = _override(found, os.environ if environment is None else environment)
    places = SettingsPlaces(path, text, overridden)
    found |= {"folder": "" if path is None else str(path.absolute().parent), "places": places}
    try:
        settings = ServerSettings.model_validate(found)
    except ValidationError as error:
        raise SettingError("\n".join(_describe(places, one) for one in error.errors())) from None
    return settings


def _override(found: dict[str, Any], environment: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """Put what the environment says into the tables; gives the variables by the keys that they set."""
    overridden: dict[tuple[str, ...], str] = {}
    for variable, value in environment.items():
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX).lower()
        table, _, key = name.partition("_")
        if name in ServerSettings.model_fields:
            found[name] = _parse_value(value)
            overridden[name,] = variable
        elif table in ServerSettings.model_fields and isinstance(found.setdefault(table, {}), dict):
            found[table][key] = _parse_value(value)
            overridden[table, key] = variable
        else:
            raise SettingError(f"{variable} overrides no setting: it is {PREFIX}TABLE_KEY, as {PREFIX}SERVER_PORT")
    return overridden


def _parse_value(text: str) -> Any:
    """A value in TOML, or the text itself where it is none."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _describe(places: SettingsPlaces, error: Any) -> str:
    place = tuple(error["loc"])
    name = ".".join(map(str, place))
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = "there is no such setting"
    return f"{places.describe(place)}{name}: {message}"
