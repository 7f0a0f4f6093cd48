"""The dead-letter folder: every element that took no part in the answers, one JSON object per line, with the reason.

A batch writes one file, named after the run and the batch. A batch that is run again after a failure writes the same
file again, so nothing is lost and nothing doubled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headwater.errors import HeadwaterError
from headwater.sinks.errors import report_write_errors
from headwater.terms.durable_files import create_folder, remove_files, replace_file
from headwater.terms.names import iri_to_name
from headwater.terms.text_lines import shorten_text
from headwater.terms.timestamps import format_time

LineNumbers = Callable[[str, str, list[tuple[int, ...]]], list[int | None]]
"""Stream, name of the item, positions: the lines at which these elements began."""
TextAt = Callable[[str, str, tuple[int, ...]], str | None]
"""Stream, name of the item, position: the statements of the element there."""


class StrictError(HeadwaterError, RuntimeError):
    """With `strict`, the first bad or late element; the message names source, line and reason."""

    def __init__(self, letter: DeadLetter) -> None:
        place = letter.source if letter.line is None else f"{letter.source}, line {letter.line}"
        reason = letter.reason
        if letter.kind == "late" and letter.time is not None:
            reason = (
                f"the element of {format_time(letter.time)} is late: elements after it were seen already; "
                "allow a longer delay"
            )
        super().__init__(f"{place}: {reason} (stream {iri_to_name(letter.stream)}; stopped because of strict)")
        self.letter = letter


def add_line_numbers(letters: Iterable[DeadLetter], line_numbers: LineNumbers) -> list[DeadLetter]:
    """The dead letters, late elements with the numbers of the lines at which they begin."""
    listed = list(letters)
    unknown: dict[tuple[str, str], list[int]] = {}
    for index, letter in enumerate(listed):
        if letter.line is None and letter.position:
            unknown.setdefault((letter.stream, letter.source), []).append(index)
    for (stream, source), indexes in unknown.items():
        numbers = line_numbers(stream, source, [listed[index].position for index in indexes])
        for index, number in zip(indexes, numbers, strict=True):
            listed[index] = replace(listed[index], line=number)
    return listed


def add_texts(letters: Iterable[DeadLetter], text_at: TextAt) -> list[DeadLetter]:
    """The dead letters, each with its text from the source."""
    return [
        replace(letter, text=text_at(letter.stream, letter.source, letter.position) or "")
        if letter.text is None
        else letter
        for letter in letters
    ]


def dead_letter_to_json(letter: DeadLetter) -> str:
    """One line of a dead-letter file."""
    return json.dumps(
        {
            "kind": letter.kind,
            "stream": iri_to_name(letter.stream),
            "reason": letter.reason,
            "time": None if letter.time is None else format_time(letter.time),
            "text": None if letter.text is None else shorten_text(letter.text),
            "source": letter.source,
            "line": letter.line,
        },
        ensure_ascii=False,
    )


def write_dead_letters(folder: Path, run: str, batch: int, letters: Sequence[DeadLetter]) -> None:
    """Write the dead letters of a batch, replacing what an earlier attempt at the same batch wrote."""
    path = folder / f"{run}-{batch:08d}.jsonl"
    if not letters:
        with report_write_errors(folder):
            if path.exists():
                remove_files(path)
        return
    text = "".join(f"{dead_letter_to_json(letter)}\n" for letter in letters)
    with report_write_errors(folder):
        create_folder(folder)
        replace_file(path, text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An element that took no part in any answer, with the reason; `kind` is bad, late or ahead.

    `text` is None until it is read from the source.
    """

    kind: str
    stream: str
    reason: str
    text: str | None
    source: str
    position: tuple[int, ...] = ()
    line: int | None = None
    time: int | None = None
    is_of_shard: bool = False
    """Whether only the shard knows of it that has its statements; of others each shard knows."""
