"""Random programs for the campaign: queries in the three languages, streams in files, static data, settings and sinks.

A program is a number. It decides the queries (made by `tests.kernel.generated_queries`), what the streams bring, with
late and poisoned elements among it, how the streams grow between two runs, and how the engine is set up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from pyoxigraph import RdfFormat, serialize

import headwater as hw
from headwater.datasets.loading.bulk_load import load
from headwater.language.stream_clauses import StreamOperator
from headwater.windows.settings import Report
from tests.engine.programs import write
from tests.kernel.generated_queries import EX, STREAMS, UNIT, a_case, a_triple

OTHER_GRAPH = EX + "other"
"""A graph that changes while queries run, and that none of them reads."""
FOLLOWERS = EX + "followers"
_MILLISECONDS = 1000
_POISON = (
    "{time}\t<http://example.org/a> <http://example.org/p> oops .",
    "{time}\t<http://example.org/a> <http://example.org/p>",
    "soon\t<http://example.org/a> <http://example.org/p> <http://example.org/b> .",
    "{time} <http://example.org/a> <http://example.org/p> <http://example.org/b> .",
    '{time}\t"a" <http://example.org/p> <http://example.org/b> .',
    '{time}\t<http://example.org/a> <http://example.org/p> "1\\q" .',
    "{time}\t<http://example.org/a b> <http://example.org/p> <http://example.org/b> .",
    "{time}\t<http://example.org/a> <http://example.org/p> \0 .",
    "{time}\t<http://example.org/a> <http://example.org/p> "
    + "<<( <http://example.org/a> <http://example.org/p> " * 70
    + "<http://example.org/b>"
    + " )>>" * 70
    + " .",
    "99999999999999999999\t<http://example.org/a> <http://example.org/p> <http://example.org/b> .",
)
_DERIVED = (
    f"PREFIX : <{EX}> REGISTER STREAM derived COMPUTED EVERY 1s AS "
    "CONSTRUCT { ?x :p ?v } FROM STREAM :s0 [RANGE 2s STEP 1s] WHERE { ?x :p ?v }",
    f"PREFIX : <{EX}> REGISTER QUERY of-derived AS "
    "SELECT ?x (COUNT(*) AS ?n) FROM STREAM <derived> [RANGE 3s STEP 1s] WHERE { ?x :p ?v } GROUP BY ?x",
)
_READER = (
    f"PREFIX : <{EX}> SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w0 ON :s0 [RANGE 1s STEP 1s] "
    "FROM NAMED WINDOW :w1 ON :s1 [RANGE 1s STEP 1s] "
    "WHERE { { WINDOW :w0 { ?x ?k ?v } } UNION { WINDOW :w1 { ?x ?k ?v } } }"
)
_SERVICE = (
    f"PREFIX : <{EX}> REGISTER QUERY remote AS SELECT ?x ?v ?n FROM STREAM :s0 [RANGE 2s STEP 1s] "
    "WHERE {{ ?x :p ?v . SERVICE <{url}> {{ ?x :followers ?n }} }}"
)


@dataclass(frozen=True)
class ProgramQuery:
    """A query as it is registered."""

    name: str
    text: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def register(self, engine: hw.Engine) -> None:
        engine.register(self.text, name=self.name, **self.options)


@dataclass(frozen=True)
class RandomProgram:
    """What runs, and what it reads.

    `parts` has the lines of each stream that are there before the first run, before the second one, and so on. The
    `visitor` is a query that comes and goes while the others stay. `changes_data` says that the static data is a data
    set, whose `OTHER_GRAPH` changes while queries run. `service` is the name of the query that asks an endpoint.
    """

    queries: tuple[ProgramQuery, ...]
    visitor: ProgramQuery | None
    parts: Mapping[str, tuple[tuple[str, ...], ...]]
    quads: bytes
    changes_data: bool
    delay: str
    batch_bytes: int
    evaluator: str
    format: str
    service: str | None = None

    def reading_all(self) -> RandomProgram:
        """The same program, in which each stream has a reader: what nobody reads is not received."""
        if any(query.name == "reader" for query in self.queries):
            return self
        return replace(self, queries=(*self.queries, ProgramQuery("reader", _READER)))

    def write_part(self, folder: Path, number: int) -> None:
        """Append one part to the files of the streams."""
        for index, stream in enumerate(STREAMS):
            write(folder / f"s{index}.tnq", self.parts[stream][number], append=True)

    def write_data(self, folder: Path) -> None:
        """Write the static data: a file, and where it changes a data set."""
        (folder / "data.nq").write_bytes(self.quads)
        if self.changes_data:
            load(folder / "data", [folder / "data.nq"])

    def make_engine(
        self, folder: Path, *, visitor: bool, sources: Mapping[str, Any] | None = None, **settings: Any
    ) -> hw.Engine:
        """An engine that reads the files of a folder, but for streams with `sources` of their own.

        `settings` are those that differ from run to run.
        """
        engine = hw.Engine(delay=self.delay, **settings)
        for index, stream in enumerate(STREAMS):
            engine.stream(stream, (sources or {}).get(stream) or hw.files(folder / f"s{index}.tnq"))
        engine.dataset(folder / ("data" if self.changes_data else "data.nq"))
        for query in self.queries:
            query.register(engine)
        if visitor and self.visitor is not None:
            self.visitor.register(engine)
        return engine


def a_program(random: Random, parts: int, url: str | None = None, *, largest_batch: int = 3000) -> RandomProgram:
    """A program whose streams come in so many parts; with a `url` one query asks that endpoint."""
    cases = [a_case(random, depth=random.choice([0, 1, 1, 2])) for _ in range(random.randint(1, 3))]
    named = [ProgramQuery(f"q{number}", case.text, _options(case.options)) for number, case in enumerate(cases)]
    queries, visitor = named, None
    # A query without a window answers once, each time it comes.
    if len(named) > 1 and random.randrange(2) and cases[-1].plan()[0].windows:
        *queries, last = named
        visitor = _as_visitor(last)
        # What a stream brings while nobody reads it is nobody's: dead letters are those of streams with a reader.
        queries.append(ProgramQuery("reader", _READER))
    if random.randrange(4) == 0:
        queries += [ProgramQuery(name, text) for name, text in zip(("derived", "of-derived"), _DERIVED, strict=True)]
    if url is not None:
        queries.append(ProgramQuery("remote", _SERVICE.format(url=url)))
    reads_any_graph = any("?g" in query.text for query in named)
    quads = serialize(cases[0].quads, format=RdfFormat.N_QUADS)
    assert quads is not None
    delay = random.choice([0, 0, 500, 2000])
    return RandomProgram(
        tuple(queries),
        visitor,
        {stream: _stream_parts(random, parts, delay) for stream in STREAMS},
        quads,
        changes_data=not reads_any_graph and random.randrange(3) == 0,
        delay=f"{delay}ms",
        batch_bytes=random.choice([150, 400, 1000, largest_batch]),
        evaluator=random.choice(["auto", "auto", "auto", "reference", "fixed-order"]),
        # Only JSON says whether an answer is complete, and how good it is.
        format=random.choice(["json", "csv", "nquads", "parquet"]) if visitor is None and url is None else "json",
        service=None if url is None else "remote",
    )


def _as_visitor(query: ProgramQuery) -> ProgramQuery:
    """The query, such that its answers do not depend on when it came.

    What is new depends on who listens, and so does what has changed; what is there does not.
    """
    steady = Report.NONEMPTY if query.options["report"] is Report.CHANGE else query.options["report"]
    return replace(query, options={**query.options, "emit": StreamOperator.RSTREAM, "report": steady})


def _options(options: Any) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ("bounds", "report", "emit", "content")}


def _stream_parts(random: Random, parts: int, delay: int) -> tuple[tuple[str, ...], ...]:
    """The lines of a stream, in parts; an element stands in one of them."""
    time = random.randrange(-4, 4) * UNIT // _MILLISECONDS
    found: list[tuple[str, ...]] = []
    for _ in range(parts):
        lines: list[str] = []
        for _ in range(random.randrange(9)):
            time += 1 + random.randrange(6) * UNIT // _MILLISECONDS
            # Some are behind, not all of them too far; one in ten is so late that it is a dead letter.
            behind = random.choice([0, 0, 0, 0, 0, 0, delay // 2, delay, delay + 3000])
            lines += [f"{time - behind}\t{a_triple(random)} ." for _ in range(random.randint(1, 4))]
            if random.randrange(8) == 0:
                lines.append(random.choice(_POISON).format(time=time))
        found.append(tuple(lines))
    # Without an element in a stream nothing is due; the last one closes what the others opened.
    found[0] = (f"{time - 60_000}\t{a_triple(random)} .", *found[0]) if not any(found) else found[0]
    return tuple(found)
