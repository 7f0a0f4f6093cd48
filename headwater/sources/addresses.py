"""Sources named by an address, as on a command line.

    kafka://host:9092/topic?format=turtle
    kafka://a:9092,b:9092/topic,other?start=latest&time=http://ex/at
    mqtt://host:1883/sensors/+/temperature?format=text
    tcp://host:9999?format=csv
    ws://host:8080/path?format=jsonld       (format, time and spool are taken out; the rest stays in the address)

What stands behind `?` are the arguments of `kafka`, `mqtt`, `tcp` and `websocket`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from headwater.errors import SettingError
from headwater.terms.arguments import parse_number

if TYPE_CHECKING:
    from headwater.sources.receivers import ReceivedSource
    from headwater.sources.records import RecordSource

_SCHEMES = ("kafka", "mqtt", "mqtts", "tcp", "ws", "wss")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_DECODING = ("format", "time")
_RECEIVING = (*_DECODING, "spool", "keep")


def is_address(text: str) -> bool:
    """Whether a source or a sink is named by an address and not by files; the scheme may be unknown."""
    return _ADDRESS.match(text) is not None


def take_connector_options(arguments: dict[str, str]) -> dict[str, str]:
    """Remove the arguments whose names have a dot, and give them: they are options of Spark's connector."""
    return {name: arguments.pop(name) for name in list(arguments) if "." in name}


def source_at(address: str, *, template: str | Path | None = None) -> RecordSource | ReceivedSource:
    """The source at an address; a `SettingError` that says what is wrong with it."""
    parts = urlsplit(address)
    if parts.scheme not in _SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in _SCHEMES)
        raise SettingError(f"{address!r}: no stream is read from {parts.scheme}://; use {known} or the path of files")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    path = unquote(parts.path.lstrip("/"))
    if parts.scheme == "kafka":
        from headwater.sources.kafka import kafka

        if not parts.netloc or not path:
            raise SettingError(f"{address!r}: expected kafka://host:port/topic")
        options = take_connector_options(given)
        arguments = _parse_arguments(address, given, (*_DECODING, "start", "skew", "per_batch"))
        return kafka(parts.netloc, *path.split(","), template=template, options=options, **arguments)
    if parts.scheme in ("mqtt", "mqtts"):
        from headwater.sources.mqtt import mqtt

        if not path:
            raise SettingError(f"{address!r}: expected mqtt://host:port/topic")
        arguments = _parse_arguments(address, given, (*_RECEIVING, "qos", "client"))
        return mqtt(f"{parts.scheme}://{parts.netloc}", path, template=template, **arguments)
    if parts.scheme == "tcp":
        from headwater.sources.sockets import tcp

        port = _port(parts.netloc)
        if not parts.hostname or port is None:
            raise SettingError(f"{address!r}: expected tcp://host:port")
        return tcp(parts.hostname, port, template=template, **_parse_arguments(address, given, _RECEIVING))
    from headwater.sources.sockets import websocket

    own = {name: given.pop(name) for name in _RECEIVING if name in given}
    url = urlunsplit(parts._replace(query=urlencode(given)))
    return websocket(url, template=template, **_parse_arguments(address, own, _RECEIVING))


def _port(netloc: str) -> int | None:
    digits = netloc.rpartition(":")[2]
    return int(digits) if digits.isdigit() else None


_NUMBERS = {"qos": int, "per_batch": int, "keep": float}


def _parse_arguments(address: str, given: Mapping[str, str], names: tuple[str, ...]) -> dict[str, Any]:
    """The arguments by name, numbers as numbers; a `SettingError` for one that is unknown or no number."""
    arguments: dict[str, Any] = {}
    for name, text in given.items():
        if name not in names:
            raise SettingError(f"{address!r}: {name!r} is not known here; known are {', '.join(names)}")
        arguments[name] = parse_number(f"{address!r}: {name}", text, _NUMBERS[name]) if name in _NUMBERS else text
    return arguments
