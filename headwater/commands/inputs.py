"""What `--stream`, `--data` and `--template` say, taken apart.

>>> stream_option("http://city/tollgates=gates/*.tnq")
('http://city/tollgates', 'gates/*.tnq')
>>> stream_option("<http://city/gates?kind=toll>=gates.tnq")
('http://city/gates?kind=toll', 'gates.tnq')
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from pathlib import Path

import typer

_PAIR = re.compile(r"(?:<([^>]+)>|([^=<>]+))=(.+)", re.DOTALL)


def stream_option(text: str) -> tuple[str, str]:
    """The stream and the source of `IRI=SOURCE`; an IRI that has an `=` itself stands in angle brackets."""
    return _pair(text, "--stream", "IRI=SOURCE, such as http://city/tollgates='gates/*.tnq'")


def template_option(text: str) -> tuple[str, Path]:
    """The stream and the template file of `IRI=FILE`."""
    stream, file = _pair(text, "--template", "IRI=FILE, such as http://city/sensors=sensors.template")
    if not Path(file).is_file():
        raise typer.BadParameter(f"there is no file {file}", param_hint="--template")
    return stream, Path(file)


def _pair(text: str, option: str, wanted: str) -> tuple[str, str]:
    match = _PAIR.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not {wanted}", param_hint=option)
    bracketed, bare, source = match.groups()
    return (bracketed or bare).strip(), source.strip()


def data_option(text: str) -> tuple[str, str | None]:
    """The file (or pattern) and the graph of `FILE[@GRAPH-IRI]`; an `@` in the file's own name does no harm."""
    if not Path(text).exists():
        for position, character in enumerate(text):
            if character == "@" and (Path(text[:position]).is_file() or glob.glob(text[:position])):
                return text[:position], text[position + 1 :].removeprefix("<").removesuffix(">") or None
    return text, None


def sources_by_stream(options: Iterable[str]) -> dict[str, list[str]]:
    """The sources of each stream, in the order in which they were given."""
    sources: dict[str, list[str]] = {}
    for option in options:
        stream, source = stream_option(option)
        sources.setdefault(stream, []).append(source)
    return sources
