"""Reading the elements of a stream from a file: the reader is chosen by the file's ending.

| ending | form | in byte ranges |
|---|---|---|
| `.tnq` | `TIMESTAMP<TAB>N-Quads statement` (`headwater.terms.tnq`) | yes |
| `.nq`, `.trig` | named graphs with `prov:generatedAtTime` (`headwater.terms.timed_graphs`) | no |
| `.jsonl`, `.jsonld` | the same as one JSON-LD document per line | yes |
| `.csv` | rows with a template (`headwater.terms.template`) | yes |
| `.json`, `.ndjson`, `.jsonl` with a template | JSON objects, one per line or in an array | one per line |

`.gz` may follow; such a file is read as a whole. A reader never stops at bad input: what cannot become an
element is given as a `BadElement` at its place.

```
reader = element_reader("traffic.csv", template="traffic.template")
for start, end in reader.split_ranges(64_000_000):
    for element in reader.read_range(start, end): ...
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

from pyoxigraph import RdfFormat

from headwater.errors import SettingError
from headwater.terms.model import BadElement, Element
from headwater.terms.rdf_documents import BROKEN_COMPRESSION, compression_of, file_ending, is_compressed, open_bytes
from headwater.terms.row_files import (
    columns_of_json,
    read_csv,
    read_csv_header,
    read_json_array,
    read_json_lines,
    read_json_rows,
)
from headwater.terms.template import RowTemplate
from headwater.terms.text_lines import LineNumbers, byte_ranges, count_lines_before, offset_lines, seek_line
from headwater.terms.timed_graphs import read_jsonld_lines, read_timed_nquads, read_timed_trig
from headwater.terms.tnq import find_key_before, read_tnq


class StreamFormat(StrEnum):
    """The forms of a stream file."""

    TNQ = "tnq"
    N_QUADS = "nquads"
    TRIG = "trig"
    JSON_LD_LINES = "jsonld"
    CSV = "csv"
    JSON_ROWS = "json"


_ENDINGS = {
    ".tnq": StreamFormat.TNQ,
    ".nq": StreamFormat.N_QUADS,
    ".trig": StreamFormat.TRIG,
    ".jsonl": StreamFormat.JSON_LD_LINES,
    ".jsonld": StreamFormat.JSON_LD_LINES,
    ".csv": StreamFormat.CSV,
    ".json": StreamFormat.JSON_ROWS,
    ".ndjson": StreamFormat.JSON_ROWS,
}
_ROW_FORMATS = (StreamFormat.CSV, StreamFormat.JSON_ROWS)
_WHOLE_FORMATS = (StreamFormat.N_QUADS, StreamFormat.TRIG)


def element_reader(
    path: str | Path,
    *,
    template: RowTemplate | str | Path | None = None,
    format: StreamFormat | None = None,
    source: str | None = None,
) -> ElementReader:
    """The reader for a stream file. Rows need a template, given compiled or as the path of its file.

    `source` is what bad elements and blank nodes are named after; the path where it is None.
    """
    ending = file_ending(path)
    chosen = format or _ENDINGS.get(ending)
    if chosen is None:
        raise SettingError(
            f"{path}: no stream reader for the file ending {ending!r}; "
            f"give the file a name that ends in {', '.join(_ENDINGS)} (.gz may follow)"
        )
    if template is not None and chosen is StreamFormat.JSON_LD_LINES and format is None:
        chosen = StreamFormat.JSON_ROWS
    if chosen in _ROW_FORMATS and template is None:
        raise SettingError(
            f"{path}: rows need a template that says which triples a row means; "
            "say it with files(…, template=…) or --template"
        )
    if template is not None and chosen not in _ROW_FORMATS:
        raise SettingError(f"{path}: a template is for CSV and JSON rows, not for {chosen}")
    compiled = RowTemplate.load(template) if isinstance(template, str | Path) else template
    if chosen is StreamFormat.CSV and compiled is not None and compiled.lists:
        raise SettingError(f"{path}: the template says @each, which is for members of JSON rows, not for CSV")
    return ElementReader(Path(path), chosen, compiled, source or str(path))


def split_ranges(path: str | Path, size: int) -> list[tuple[int, int]]:
    """Byte ranges of about `size` that together cover a stream file; one range where it cannot be cut."""
    ending = file_ending(path)
    return _split(Path(path), _ENDINGS.get(ending, StreamFormat.TRIG), size)


def _split(path: Path, format: StreamFormat, size: int) -> list[tuple[int, int]]:
    length = path.stat().st_size
    whole = [(0, length)] if length else []
    return byte_ranges(length, size) if _reads_lines(path, format) else whole


def _reads_lines(path: Path, format: StreamFormat) -> bool:
    if is_compressed(path) or format in _WHOLE_FORMATS:
        return False
    if format is StreamFormat.JSON_ROWS:
        return not _is_json_array(path)
    return format is not StreamFormat.JSON_LD_LINES or not _is_json_document(path)


def _is_json_array(path: Path) -> bool:
    with open_bytes(path) as stream:
        return _first_text(stream).startswith(b"[")


def _is_json_document(path: Path) -> bool:
    """Whether a `.jsonld` file is one document over several lines instead of one document per line."""
    if file_ending(path) != ".jsonld":
        return False
    with open_bytes(path) as stream:
        first, second = _first_text(stream), _first_text(stream)
    if first in (b"{", b"["):
        return True
    return second != b"" and not second.startswith(b"{") and not first.endswith((b"}", b"]"))


def _first_text(stream: IO[bytes]) -> bytes:
    return next((text.strip() for _, _, text in offset_lines(stream) if text.strip()), b"")


@dataclass(frozen=True, slots=True)
class ElementReader:
    """Reads one stream file, as a whole or by byte ranges; both give the same elements and positions.

    It can be sent to another process, which opens the file itself.
    """

    path: Path
    format: StreamFormat
    template: RowTemplate | None
    source: str

    def split_ranges(self, size: int) -> list[tuple[int, int]]:
        """Byte ranges of about `size` that together cover the file; one range where it cannot be cut."""
        return _split(self.path, self.format, size)

    def read(self) -> Iterator[Element | BadElement]:
        """All elements of the file, in the order of their positions."""
        return self.read_range(0, None)

    def list_columns(self, most: int) -> set[str]:
        """The columns that the JSON rows among the first bytes of the file have; none for other formats."""
        if self.format is not StreamFormat.JSON_ROWS:
            return set()
        with open_bytes(self.path) as stream:
            return {name for row in read_json_rows(stream.read(most)) for name in columns_of_json(row)}

    def read_range(self, start: int, end: int | None) -> Iterator[Element | BadElement]:
        """The elements that begin in the bytes from `start` to before `end`; to the end of the file if None.

        The element at the border is read by exactly one of two neighbouring ranges. A file that cannot be
        cut belongs as a whole to the range that begins at 0.
        """
        if _reads_lines(self.path, self.format):
            yield from self._read_lines(start, end)
        elif start == 0:
            try:
                yield from self._read_whole()
            except BROKEN_COMPRESSION as error:
                yield BadElement(f"broken {compression_of(self.path)} file: {error}", "", self.source)

    def _read_whole(self) -> Iterator[Element | BadElement]:
        """All elements of the file, by its format."""
        with open_bytes(self.path) as stream:
            if self.format is StreamFormat.TNQ:
                yield from read_tnq(stream, self.source)
            elif self.format is StreamFormat.N_QUADS:
                yield from read_timed_nquads(stream, self.source)
            elif self.format is StreamFormat.TRIG:
                yield from read_timed_trig(stream.read(), self.source)
            elif self.template is None:
                if _is_json_document(self.path):
                    yield from read_timed_trig(stream.read(), self.source, RdfFormat.JSON_LD)
                else:
                    yield from read_jsonld_lines(stream, self.source)
            elif self.format is StreamFormat.CSV:
                yield from read_csv(stream, self.source, self.template)
            elif _is_json_array(self.path):
                yield from read_json_array(stream.read(), self.source, self.template)
            else:
                yield from read_json_lines(stream, self.source, self.template)

    def _read_lines(self, start: int, end: int | None) -> Iterator[Element | BadElement]:
        """The elements that begin in a byte range of a file of lines."""
        with open(self.path, "rb") as stream:
            if self.format is StreamFormat.CSV and self.template is not None and self.template.columns is None:
                yield from self._read_csv_with_header(stream, self.template, start, end)
                return
            offset = seek_line(stream, start, end)
            if end is not None and offset >= end:
                return
            first_line = self._line_number_at(offset)
            if self.format is StreamFormat.TNQ:
                continues = find_key_before(self.path, offset)
                yield from read_tnq(stream, self.source, offset, first_line, end=end, continues=continues)
            elif self.template is None:
                yield from read_jsonld_lines(stream, self.source, offset, first_line, end=end)
            else:
                read = read_csv if self.format is StreamFormat.CSV else read_json_lines
                yield from read(stream, self.source, self.template, offset, first_line, end=end)

    def _line_number_at(self, offset: int) -> Callable[[], int]:
        return lambda: count_lines_before(self.path, offset) + 1

    def _read_csv_with_header(
        self, stream: IO[bytes], template: RowTemplate, start: int, end: int | None
    ) -> Iterator[Element | BadElement]:
        header = read_csv_header(offset_lines(stream), self.source, template, LineNumbers())
        header_end = stream.tell()
        if header.bad is not None:
            (place,) = header.bad.position
            if start <= place and (end is None or place < end):
                yield header.bad
        offset = seek_line(stream, max(start, header_end), end)
        first_line = self._line_number_at(offset)
        yield from read_csv(stream, self.source, template, offset, first_line, end=end, header=header)
