"""Sources named by an address: on a command line, in Python, or by the IRI of a stream itself.

    kafka://host:9092/topic?format=turtle
    kafka://a:9092,b:9092/topic,other?start=latest&time=http://ex/at
    mqtt://host:1883/sensors/+/temperature?format=text
    tcp://host:9999?format=csv
    ws://host:8080/path?format=jsonld       (format, time, spool, keep and time-outs are taken out of the address)
    file:///data/gates/*.tnq                (or file:gates/*.tnq, relative to the working directory)

User and password may stand before the host; better they stay in the environment (`egress.credentials`). What stands
behind `?` are the arguments of `kafka`, `mqtt`, `tcp` and `websocket`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from headwater.errors import SettingError
from headwater.terms.arguments import parse_number
from headwater.terms.redaction import redact_url

if TYPE_CHECKING:
    from headwater.sources.files import FileSource
    from headwater.sources.receivers import ReceivedSource
    from headwater.sources.records import RecordSource
    from headwater.terms.template import RowTemplate

_SCHEMES = {
    "kafka": "kafka://",
    "mqtt": "mqtt://",
    "mqtts": "mqtts://",
    "tcp": "tcp://",
    "ws": "ws://",
    "wss": "wss://",
    "file": "file:",
}
READABLE = ", ".join(_SCHEMES.values())
"""How the addresses begin at which a stream can be read, for messages."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|file:")
_DECODING = ("format", "time")
_RECEIVING = (*_DECODING, "spool", "keep", "connect_timeout", "read_timeout")


def is_address(text: str) -> bool:
    """Whether a source or a sink is named by an address and not by files; the scheme may be unknown."""
    return _ADDRESS.match(text) is not None


def is_stream_address(iri: str) -> bool:
    """Whether a stream can be read at its own IRI."""
    return is_address(iri) and iri.partition(":")[0].lower() in _SCHEMES


def take_connector_options(arguments: dict[str, str]) -> dict[str, str]:
    """Remove the arguments whose names have a dot, and give them: they are options of Spark's connector."""
    return {name: arguments.pop(name) for name in list(arguments) if "." in name}


def find_source_at(iri: str) -> FileSource | RecordSource | ReceivedSource | None:
    """The source that the IRI of a stream locates (C-SPARQL, section 2.3); None where the IRI is no such address.

    The author of a query writes this address, so it may say what is read and what that means, but not what is
    written on this machine (`spool`), nor how Spark's connector is set up: a `SettingError` says to bind the stream.
    """
    if not is_stream_address(iri):
        return None
    parts = _split(iri)
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    refused = [name for name in names if name == "spool" or (parts.scheme == "kafka" and "." in name)]
    if refused:
        raise SettingError(
            f"{redact_url(iri)!r}: a query cannot say {' and '.join(refused)}; "
            "say it where the stream is bound, with engine.stream(…) or --stream"
        )
    return source_at(iri)


def source_at(
    address: str, *, template: RowTemplate | str | Path | None = None
) -> FileSource | RecordSource | ReceivedSource:
    """The source at an address; a `SettingError` that says what is wrong with it."""
    parts = _split(address)
    if parts.scheme not in _SCHEMES:
        raise SettingError(
            f"{redact_url(address)!r}: no stream is read from {parts.scheme}://; use {READABLE} or the path of files"
        )
    if "#" in address:
        raise SettingError(f"{redact_url(address)!r}: an address ends before #; in a topic or a path, write %23 for it")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    path = unquote(parts.path.lstrip("/"))
    if parts.scheme == "file":
        from headwater.sources.files import files

        if parts.netloc not in ("", "localhost") or not path:
            raise SettingError(f"{redact_url(address)!r}: expected file:///folder/file or file:file, on this machine")
        _parse_arguments(address, given, ())
        return files(unquote(parts.path), template=template)
    if parts.scheme == "kafka":
        from headwater.sources.kafka import kafka

        if not parts.netloc or not path:
            raise SettingError(f"{redact_url(address)!r}: expected kafka://host:port/topic")
        options = take_connector_options(given)
        arguments = _parse_arguments(address, given, (*_DECODING, "start", "skew", "per_batch", "connect_timeout"))
        return kafka(parts.netloc, *path.split(","), template=template, options=options, **arguments)
    if parts.scheme in ("mqtt", "mqtts"):
        from headwater.sources.mqtt import mqtt

        if not path:
            raise SettingError(f"{redact_url(address)!r}: expected mqtt://host:port/topic")
        arguments = _parse_arguments(address, given, (*_RECEIVING, "qos", "client"))
        return mqtt(f"{parts.scheme}://{parts.netloc}", path, template=template, **arguments)
    if parts.scheme == "tcp":
        from headwater.sources.sockets import tcp

        port = _port(parts.netloc)
        if not parts.hostname or port is None:
            raise SettingError(f"{redact_url(address)!r}: expected tcp://host:port")
        return tcp(parts.hostname, port, template=template, **_parse_arguments(address, given, _RECEIVING))
    from headwater.sources.sockets import websocket

    own = {name: given.pop(name) for name in _RECEIVING if name in given}
    url = urlunsplit(parts._replace(query=urlencode(given)))
    return websocket(url, template=template, **_parse_arguments(address, own, _RECEIVING))


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError as error:
        raise SettingError(f"{redact_url(address)!r} is no address: {error}") from None


def _port(netloc: str) -> int | None:
    digits = netloc.rpartition(":")[2]
    return int(digits) if digits.isdigit() else None


_NUMBERS = {"qos": int, "per_batch": int, "keep": float}


def _parse_arguments(address: str, given: Mapping[str, str], names: tuple[str, ...]) -> dict[str, Any]:
    """The arguments by name, numbers as numbers; a `SettingError` for one that is unknown or no number."""
    arguments: dict[str, Any] = {}
    for name, text in given.items():
        if name not in names:
            known = ", ".join(names) or "none"
            raise SettingError(f"{redact_url(address)!r}: {name!r} is not known here; known are {known}")
        arguments[name] = (
            parse_number(f"{redact_url(address)!r}: {name}", text, _NUMBERS[name]) if name in _NUMBERS else text
        )
    return arguments
