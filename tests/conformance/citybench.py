"""CityBench: twelve queries in two dialects over sensors of the city of Aarhus, as programs that anyone can run.

The benchmark's streams are CSV files of months; a template for each (`examples/citybench/templates`) says which triples
a row means. Its queries look three seconds back while most sensors report every five minutes, so a program gets a slice
of the files in which the streams of its query overlap in time.

    for query in citybench_programs(folder, into):
        step = query.program().advance(query.elements(), ended=query.stream_iris)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from pyoxigraph import Quad, Store

from headwater.algebra.build import plan_query
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.language.parser import parse
from headwater.language.stream_clauses import Dialect, FromGraph
from headwater.running.named_evaluators import by_definition
from headwater.terms.element_files import ElementReader, element_reader
from headwater.terms.model import Element, NamedNode
from headwater.terms.rdf_documents import read_quads
from headwater.terms.stored_forms import to_stored_quad
from headwater.terms.timestamps import HOUR
from headwater.windows.settings import Options, resolve_settings

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "citybench"
"""Where the repository keeps the templates."""

_GRAPH_FILES = {
    "SensorRepository.rdf": "SensorRepository.n3",
    "AarhusCulturalEvents.rdf": "AarhusCulturalEvents.n3",
    "AarhusLibraryEvents.rdf": "AarhusLibraryEvents.n3",
    "culturalevents": "AarhusCulturalEvents.n3",
    "libraryevents": "AarhusLibraryEvents.n3",
}
_GARAGE = re.compile(r"(AarhusParkingData)[A-Z]+")


@dataclass(frozen=True)
class CityStream:
    """A stream of a query: its rows and their template, or neither where the benchmark has no such file."""

    iri: str
    file: Path | None = None
    template: Path | None = None

    def reader(self) -> ElementReader | None:
        """Reads the rows as elements; None for a stream without rows."""
        return None if self.file is None else element_reader(self.file, template=self.template)

    def elements(self) -> list[Element]:
        """All elements of the stream."""
        reader = self.reader()
        return [] if reader is None else [found for found in reader.read() if isinstance(found, Element)]


@dataclass(frozen=True)
class CityQuery:
    """A query file of the benchmark with all that it reads; `datasets` are files, some with the name of their graph."""

    name: str
    text: str
    dialect: Dialect
    streams: tuple[CityStream, ...]
    datasets: tuple[tuple[Path, str | None], ...]

    @property
    def stream_iris(self) -> list[str]:
        return [stream.iri for stream in self.streams]

    def elements(self) -> dict[str, list[Element]]:
        """What each stream brings."""
        return {stream.iri: stream.elements() for stream in self.streams}

    def static_store(self) -> Store:
        """The static graphs."""
        store = Store()
        for path, graph in self.datasets:
            quads = _statements(path)
            store.bulk_extend(quads if graph is None else _in_graph(quads, NamedNode(graph)))
        return store

    def program(self, options: Options | None = None, evaluator: MakeEvaluator = by_definition) -> Program:
        """The query, ready to be advanced in this process."""
        plan = plan_query(parse(self.text), name=self.name, streams=self.stream_iris)
        return Program(
            [RegisteredQuery(plan, resolve_settings(plan, options or Options()))], self.static_store(), 0, evaluator
        )


@cache
def _statements(path: Path) -> tuple[Quad, ...]:
    return tuple(map(to_stored_quad, read_quads(path)))


def _in_graph(quads: Iterable[Quad], graph: NamedNode) -> Iterable[Quad]:
    return (Quad(q.subject, q.predicate, q.object, graph) for q in quads)


def citybench_programs(
    folder: Path, into: Path, rows: int = 12, longest: int = 2 * HOUR, example: Path = EXAMPLE
) -> list[CityQuery]:
    """All 24 query files with slices of their streams, which are written below `into`.

    A slice begins when the last of a query's streams has begun and ends when one of them has brought so many `rows`, or
    after `longest` microseconds: most C-SPARQL texts answer every second, whether something came or not.
    """
    if not (example / "templates").is_dir():
        raise FileNotFoundError(f"no templates in {example}; they are in examples/citybench of the repository")
    paths = sorted((folder / "queries").glob("*/*.rq"), key=lambda path: (path.parent.name, int(path.stem[1:])))
    return [_query(path, folder, into, example, rows, longest) for path in paths]


def _query(path: Path, folder: Path, into: Path, example: Path, rows: int, longest: int) -> CityQuery:
    name = f"{path.parent.name}/{path.stem}"
    text = path.read_text("utf-8")
    parsed = parse(text)
    iris = dict.fromkeys(source.stream.value for source in plan_query(parsed).windows)
    streams = [_whole_stream(iri, folder, example) for iri in iris]
    static = folder / "static"
    graphs = [clause.graph.value for clause in parsed.dataset if isinstance(clause, FromGraph)]
    datasets: list[tuple[Path, str | None]] = [
        (static / _GRAPH_FILES[re.split(r"[/:#]", graph)[-1]], graph) for graph in dict.fromkeys(graphs)
    ]
    if parsed.dialect is Dialect.CQELS:
        datasets.insert(0, (static / "SensorRepository.n3", None))
    return CityQuery(name, text, parsed.dialect, _sliced(streams, into / name, rows, longest), tuple(datasets))


def _whole_stream(iri: str, folder: Path, example: Path) -> CityStream:
    name = iri.rpartition("#")[2]
    garage = _GARAGE.fullmatch(name)
    file = folder / "streams" / f"{garage.group(1) if garage else name}.csv"
    return CityStream(iri, file, example / "templates" / f"{name}.template") if file.exists() else CityStream(iri)


def _sliced(streams: list[CityStream], into: Path, rows: int, longest: int) -> tuple[CityStream, ...]:
    readers = [reader for stream in streams if (reader := stream.reader()) is not None]
    start = max(_first(reader, 1, None) for reader in readers)
    end = min(start + longest, *(_first(reader, rows, start) for reader in readers))
    into.mkdir(parents=True, exist_ok=True)
    return tuple(_cut(stream, into, start, end) for stream in streams)


def _first(reader: ElementReader, number: int, start: int | None) -> int:
    """The time of an element, counted from a start; that of the last one where there are fewer."""
    found = (e for e in reader.read() if isinstance(e, Element) and (start is None or e.time >= start))
    *_, last = islice(found, number)
    return last.time


def _cut(stream: CityStream, into: Path, start: int, end: int) -> CityStream:
    """The stream with the part of its file that holds the rows from start to end."""
    reader = stream.reader()
    if reader is None or stream.file is None or reader.template is None:
        return stream
    data = stream.file.read_bytes()
    header_end = 0 if reader.template.columns is not None else data.index(b"\n") + 1
    # Where times are counted by rows, the first row has to stay the first.
    low: int | None = header_end if reader.template.uses_row_number else None
    high = len(data)
    for element in reader.read():
        if not isinstance(element, Element) or element.time < start:
            continue
        if element.time > end:
            high = element.position[0]
            break
        low = element.position[0] if low is None else low
    file = into / f"{stream.iri.rpartition('#')[2]}.csv"
    file.write_bytes(data[:header_end] + (b"" if low is None else data[low:high]))
    return CityStream(stream.iri, file, stream.template)
