"""The settings file of the command line: what holds for every command of an installation.

    [egress]
    allow = ["https://query.example.org/sparql", "https://*.example.com"]
    networks = ["10.1.0.0/16"]

    [limits]
    seconds = 10
    rows = 100_000

    [run]
    trigger = "500ms"
    idle = "2s"                      # or a table: all = "2s", "http://city/gates" = "off"

It is TOML, and named by `--settings FILE` or by the environment variable `HEADWATER_SETTINGS`. It holds no secrets:
those are in the environment or in files of their own (`egress.credentials`).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.errors import SettingError
from headwater.terms.arguments import check_duration, check_idle
from headwater.values.query_limits import QueryLimits

VARIABLE = "HEADWATER_SETTINGS"
_ALL = "all"


@dataclass(frozen=True, slots=True)
class FileSettings:
    """What a settings file says; None where it says nothing."""

    egress: hw.EgressPolicy | None = None
    limits: QueryLimits | None = None
    idle: Mapping[str | None, str] = field(default_factory=dict)
    """By stream; None stands for all of them."""
    trigger: str | None = None


def read_settings(path: Path | None = None) -> FileSettings:
    """The settings of a file, or of the one that the environment names; a `SettingError` for what cannot be right."""
    named = path or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    if named is None:
        return FileSettings()
    try:
        found = tomllib.loads(named.read_text("utf-8"))
    except OSError as error:
        raise SettingError(f"the settings file {named} cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"the settings file {named} is no TOML: {error}") from None
    if unknown := found.keys() - {"egress", "limits", "run"}:
        known = "egress, limits and run"
        raise SettingError(f"the settings file {named} has {', '.join(sorted(unknown))}: known are {known}")
    try:
        limits = QueryLimits.of(found["limits"]) if "limits" in found else None
        return FileSettings(hw.EgressPolicy.of(found.get("egress")), limits, *_read_run(found.get("run", {})))
    except SettingError as error:
        raise SettingError(f"the settings file {named}: {error}") from None


def _read_run(table: Any) -> tuple[dict[str | None, str], str | None]:
    """The idle times and the trigger of a table `[run]`."""
    if not isinstance(table, dict) or (table.keys() - {"idle", "trigger"}):
        raise SettingError("[run] has idle and trigger, and nothing else")
    given, trigger = table.get("idle", {}), table.get("trigger")
    by_stream = given if isinstance(given, dict) else {_ALL: given}
    for name, value in {**by_stream, **({} if trigger is None else {"trigger": trigger})}.items():
        if not isinstance(value, str):
            raise SettingError(f"{name} of [run] must be a duration such as '2s', and it is {value!r}")
    for value in by_stream.values():
        check_idle("idle", value)
    if trigger is not None:
        check_duration("trigger", trigger)
    return {None if stream == _ALL else stream: value for stream, value in by_stream.items()}, trigger


def choose_idle(settings: FileSettings, options: Sequence[tuple[str | None, str]]) -> tuple[str | None, dict[str, str]]:
    """The idle time of all streams, and those of some: of the options, then of the settings file."""
    found = {**settings.idle, **dict(options)}
    return found.get(None), {stream: value for stream, value in found.items() if stream is not None}


def choose_egress(
    settings: FileSettings, allow: Sequence[str], networks: Sequence[str], denies_all: bool
) -> hw.EgressPolicy | None:
    """The egress policy of a command: from its options if one of them is given, otherwise from the settings file."""
    if denies_all and (allow or networks):
        raise SettingError("--no-egress allows nothing: leave it out, or leave out --egress and --egress-network")
    if allow or networks or denies_all:
        return hw.EgressPolicy(allow, networks)
    return settings.egress


def choose_limits(settings: FileSettings, options: Sequence[str]) -> QueryLimits:
    """The limits of queries: those of the options, then those of the settings file, then the defaults."""
    given: dict[str, float] = {}
    for text in options:
        name, _, number = text.partition("=")
        try:
            given[name] = float(number) if name == "seconds" else int(number.replace("_", ""))
        except ValueError:
            raise SettingError(f"--limit {text}: write NAME=NUMBER, such as rows=100000") from None
    return QueryLimits.of(given, settings.limits)
