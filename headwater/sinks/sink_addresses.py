"""Sinks named by an address, as on a command line: `kafka://host:9092/topic`, `https://host/hook`, or a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from headwater.errors import SettingError
from headwater.sources.addresses import is_address, take_connector_options
from headwater.terms.redaction import redact_url

if TYPE_CHECKING:
    from headwater.sinks.sink import Sink


def sink_at(address: str, *, format: str = "json") -> Sink:
    """The sink at `kafka://host:port/topic?per=row`, at a web address or in a folder; a `ValueError` if it is wrong."""
    from headwater.sinks.file_sink import FileSink
    from headwater.sinks.kafka_sink import KafkaSink
    from headwater.sinks.webhook_sink import WebhookSink

    if not is_address(address):
        return FileSink(address, format=format)
    parts = urlsplit(address)
    if parts.scheme in ("http", "https"):
        if format != "json":
            raise SettingError(f"{redact_url(address)!r}: a web address is sent JSON, not {format}: leave out --format")
        return WebhookSink(address)
    topic = unquote(parts.path.lstrip("/"))
    if parts.scheme != "kafka" or not parts.netloc or not topic:
        raise SettingError(
            f"{redact_url(address)!r}: answers go to a folder, to kafka://host:port/topic or to https://…"
        )
    given = dict(parse_qsl(parts.query))
    options = take_connector_options(given)
    if unknown := given.keys() - {"per", "format", "parts"}:
        raise SettingError(
            f"{redact_url(address)!r}: {', '.join(sorted(unknown))} is not known here; known are format, parts, per"
        )
    if (in_parts := given.get("parts", "false")) not in ("true", "false"):
        raise SettingError(f"{redact_url(address)!r}: parts={in_parts}: use true or false")
    how = {"format": given.get("format", format), "per": given.get("per", "answer")}
    return KafkaSink(parts.netloc, topic, **how, options=options, parts=in_parts == "true")
