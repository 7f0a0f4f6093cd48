"""What `--stream`, `--data`, `--template`, `--idle`, `--out` and `--endpoint` say, taken apart.

>>> parse_stream_option("http://city/tollgates=gates/*.tnq")
('http://city/tollgates', 'gates/*.tnq')
>>> parse_stream_option("<http://city/gates?kind=toll>=gates.tnq")
('http://city/gates?kind=toll', 'gates.tnq')
>>> parse_endpoint_option("http://example.org/sparql,per_second=5,retries=1")
('http://example.org/sparql', {'retries': 1, 'per_second': 5.0})
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer

import headwater as hw
from headwater.algebra.plan import QueryPlan
from headwater.commands.query_files import EVERY_STREAM
from headwater.errors import SettingError
from headwater.linting.observed_data import StreamSample
from headwater.running.ahead_limits import OFF
from headwater.sinks.sink import Sink
from headwater.sinks.sink_addresses import sink_at
from headwater.sources.addresses import is_address, is_stream_address, source_at
from headwater.sources.files import FileSource
from headwater.sources.receivers import ReceivedSource
from headwater.sources.source import Source
from headwater.sources.stream_samples import sample_stream
from headwater.terms.arguments import check_idle, parse_number
from headwater.terms.durations import parse_duration
from headwater.terms.model import NamedNode
from headwater.terms.names import iri_to_name, name_to_iri
from headwater.terms.redaction import mask_user_info, redact_url
from headwater.terms.timestamps import parse_time

_SETTING = re.compile(r"(.+),\s*([a-z_]+)=([^,=]*)")
_ENDPOINT_SETTINGS: dict[str, type[float] | None] = {
    "per_second": float,
    "concurrent": int,
    "burst": int,
    "timeout": float,
    "retries": int,
    "largest_response": int,
    "method": None,
}
_PAIR = re.compile(r"(?:<([^>]+)>|([^=<>]+))=(.+)", re.DOTALL)


def parse_stream_option(text: str) -> tuple[str, str]:
    """The stream and the source of `IRI=SOURCE`; an IRI that has an `=` itself stands in angle brackets."""
    return _pair(text, "--stream", "IRI=SOURCE, such as http://city/tollgates='gates/*.tnq'")


def parse_template_option(text: str) -> tuple[str, Path]:
    """The stream and the template file of `IRI=FILE`."""
    stream, file = _pair(text, "--template", "IRI=FILE, such as http://city/sensors=sensors.template")
    if not Path(file).is_file():
        raise typer.BadParameter(f"there is no file {file}", param_hint="--template")
    return stream, Path(file)


def read_t0(text: str | None) -> int | None:
    """The time of `--t0`, where it was given."""
    return None if text is None else read_time("--t0", text)


def read_time(option: str, text: str) -> int:
    """A time, in microseconds since 1970."""
    try:
        return parse_time(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def read_duration(option: str, text: str) -> int:
    """A duration, in microseconds."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def read_max_ahead(text: str | None) -> int | str | None:
    """The limit of `--max-ahead`: microseconds, `off`, or None where it was not given."""
    return text if text is None or text == OFF else read_duration("--max-ahead", text)


def _pair(text: str, option: str, wanted: str) -> tuple[str, str]:
    match = _PAIR.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{mask_user_info(text)!r} is not {wanted}", param_hint=option)
    bracketed, bare, source = match.groups()
    return (bracketed or bare).strip(), source.strip()


def parse_data_option(text: str) -> tuple[str, str | None]:
    """The file (or pattern) and the graph of `FILE[@GRAPH-IRI]`; an `@` in the file's own name does no harm."""
    if not Path(text).exists():
        for position, character in enumerate(text):
            if character == "@" and (Path(text[:position]).is_file() or glob.glob(text[:position])):
                return text[:position], text[position + 1 :].removeprefix("<").removesuffix(">") or None
    return text, None


def group_sources(options: Iterable[str]) -> dict[str, list[str]]:
    """The sources of each stream, in the order in which they were given."""
    sources: dict[str, list[str]] = {}
    for option in options:
        stream, source = parse_stream_option(option)
        sources.setdefault(stream, []).append(source)
    return sources


def parse_endpoint_option(text: str) -> tuple[str, dict[str, float | int | str]]:
    """The address and the settings of `URL[,NAME=VALUE…]`; an address that has a comma itself keeps it."""
    address, found = text.strip(), dict[str, float | int | str]()
    while (last := _SETTING.fullmatch(address)) is not None:
        address, name, value = last.groups()
        try:
            if name not in _ENDPOINT_SETTINGS:
                raise SettingError(f"{name!r} is no setting: use {', '.join(_ENDPOINT_SETTINGS)}")
            kind = _ENDPOINT_SETTINGS[name]
            found[name] = value if kind is None else parse_number(name, value, kind)
        except SettingError as error:
            # Behind the first comma may stand what is secret.
            shown = redact_url(text.strip().partition(",")[0])
            raise typer.BadParameter(f"{shown!r}: {error}", param_hint="--endpoint") from None
    return address, found


def parse_idle_option(text: str) -> tuple[str | None, str]:
    """The stream and the idle time of `[IRI=]DURATION`; without a stream it holds for all."""
    wanted = "DURATION or IRI=DURATION, such as 2s or http://city/tollgates=2s; off waits for ever"
    stream, duration = _pair(text, "--idle", wanted) if "=" in text else (None, text.strip())
    try:
        check_idle("idle", duration)
    except SettingError as error:
        raise typer.BadParameter(str(error), param_hint="--idle") from None
    return stream, duration


def locate_streams(option: str, named: Iterable[str], sources: dict[str, list[str]]) -> None:
    """Give a stream that an option names, and `--stream` does not, its own IRI as its source, if that is an address."""
    for stream in set(named) - sources.keys():
        if not is_stream_address(stream):
            raise typer.BadParameter(f"no --stream is named {stream}", param_hint=option)
        sources[stream] = [stream]


def unread_streams(sources: Iterable[str], plans: Iterable[QueryPlan]) -> Iterator[str]:
    """A sentence for each stream that `--stream` names and no query reads."""
    read = dict.fromkeys(source.stream for plan in plans for source in plan.windows)
    if NamedNode(EVERY_STREAM) in read:
        return
    names = ", ".join(iri_to_name(one.value) for one in read)
    hint = f"they read {names}" if read else "a query reads a stream by FROM STREAM, STREAM or a window ON it"
    for stream in sources:
        if name_to_iri(stream) not in read:
            yield f"no query reads the stream {stream} (--stream); {hint}"


def make_source(named: list[str], template: Path | None) -> Source | ReceivedSource:
    """The source of a stream: files by their patterns, or what is at an address."""
    if not any(map(is_address, named)):
        return hw.files(*named, template=template)
    if len(named) > 1:
        raise typer.BadParameter(
            f"{' and '.join(map(redact_url, named))}: a stream has one address, and no files beside it",
            param_hint="--stream",
        )
    try:
        return source_at(named[0], template=template)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--stream") from None


def sample_of_files(named: list[str], template: Path | None = None) -> StreamSample:
    """The first elements in the files of a stream."""
    source = make_source(named, template)
    if not isinstance(source, FileSource):
        raise typer.BadParameter(f"{named[0]}: give files as a sample of the stream", param_hint="--stream")
    source.check()
    sample = sample_stream(source)
    assert sample is not None
    return sample


def make_sink(text: str, format: str) -> Sink:
    """Where `--out` writes: a folder, or a topic of Kafka; as JSON where tables were asked for."""
    try:
        return sink_at(text, format="json" if format == "table" else format)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--out") from None
