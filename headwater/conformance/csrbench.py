"""CSRBench: recorded answers of three engines, from both dialect texts of its queries.

The data is one Turtle file per second. What engines printed in 2013 is no ground truth, but much of it is what the
definition gives:

- C-SPARQL, Q1 and Q2: windows `[open, close)` from t0 = 0, every window that closed, the empty ones too.
- SPARQLstream, Q1 to Q3: the same windows for some t0, non-empty answers only.

The other recordings are compared as well, for information: how many windows agree.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Any, TextIO

from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.conformance.expected_results import comparable
from headwater.errors import SettingError
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.language.parser import parse
from headwater.language.stream_clauses import StreamOperator
from headwater.running.named_evaluators import by_definition
from headwater.terms.model import MILLISECOND, SECOND, Element, Literal, NamedNode, Term
from headwater.terms.rdf_documents import read_quads
from headwater.windows.model import Bounds
from headwater.windows.settings import Content, Options, Report, resolve_settings

DIALECTS = ("csparql", "cqels")
_PROPERTY = re.compile(r"^srb\.query(\d)\.window\.(size|slide|firstt0)\s*=\s*(\d+)", re.MULTILINE)

Table = Counter[frozenset[tuple[str, Any]]]
"""The rows of an answer as a multiset; values of numbers, not their spelling."""


@dataclass(frozen=True)
class Timed:
    """An answer, recorded or ours, at a time in milliseconds."""

    time: int
    rows: Table


@dataclass(frozen=True)
class Bench:
    """The files of CSRBench, and what evaluates its queries."""

    folder: Path
    evaluator: MakeEvaluator = by_definition

    @cached_property
    def elements(self) -> list[Element]:
        """The stream: file NN is what came at second NN."""
        files = sorted((self.folder / "data").glob("data_*.ttl"))
        return [
            Element(int(file.stem[-2:]) * SECOND, tuple(quad.triple for quad in read_quads(file)), position=(number,))
            for number, file in enumerate(files)
        ]

    def text(self, dialect: str, number: int) -> str:
        """A query with its parameters filled in."""
        place = self.folder / "dialects" / f"{dialect}-Q{number}"
        values = json.loads(place.with_suffix(".json").read_text("utf-8"))["vars"]
        return Template(place.with_suffix(".rq").read_text("utf-8")).substitute(values)

    def window(self, number: int) -> dict[str, int]:
        """`size`, `slide` and `firstt0` of a query's window, in milliseconds."""
        text = (self.folder / "queries.properties").read_text("utf-8")
        return {name: int(value) for query, name, value in _PROPERTY.findall(text) if int(query) == number}

    def read_recorded(self, engine: str, number: int) -> list[Timed]:
        """What an engine printed."""
        content = json.loads((self.folder / "answers" / f"{engine}-answer-{number}.json").read_text("utf-8"))
        return [
            Timed(relation["timestamp"], _table(b["binding"] for b in relation["results"]["bindings"]))
            for relation in content["relations"]
        ]

    def answers(self, dialect: str, number: int, options: Options) -> list[Timed]:
        """What Headwater answers."""
        query = plan_query(parse(self.text(dialect, number)))
        program = Program([RegisteredQuery(query, resolve_settings(query, options))], Store(), 0, self.evaluator)
        (stream,) = program.inputs
        given = program.advance({stream: self.elements}, ended=[stream]).answers
        return [
            Timed(a.time // MILLISECOND, Counter(_row(zip(a.variables, row, strict=True)) for row in a.rows))
            for a in given
        ]


def _table(bindings: Iterator[dict[str, dict[str, str]]]) -> Table:
    return Counter(_row((name, _recorded_term(value)) for name, value in binding.items()) for binding in bindings)


def _recorded_term(value: dict[str, str]) -> Term:
    if value["type"] == "uri":
        return NamedNode(value["value"])
    return Literal(value["value"], datatype=NamedNode(value["datatype"]) if "datatype" in value else None)


def _row(bindings: Any) -> frozenset[tuple[str, Any]]:
    # The recordings call doubles integers or decimals, so that a number is its value here.
    bound = ((name, comparable(term)) for name, term in bindings if term is not None)
    return frozenset((name, value[1] if isinstance(value, tuple) else value) for name, value in bound)


def close_windows(t0: int) -> Options:
    """Every window `[open, close)` from an instant (milliseconds) on, as a set."""
    return Options(
        bounds=Bounds.RIGHT_OPEN,
        report=Report.CLOSE,
        emit=StreamOperator.RSTREAM,
        content=Content.SET,
        t0=t0 * MILLISECOND,
    )


def csparql_problem(bench: Bench, dialect: str, number: int) -> str | None:
    """How our answers differ from C-SPARQL's recording; None where they do not.

    Every recorded window is compared, the empty ones too. Its time may be off by one constant of at most a second: the
    answers of Q1 carry the instant at which the window closes, those of Q2 the second before.
    """
    recorded = bench.read_recorded("csparql", number)
    ours = bench.answers(dialect, number, close_windows(bench.window(number)["firstt0"]))
    for shift in (0, 1000):
        moved = [Timed(answer.time + shift, answer.rows) for answer in recorded]
        beyond = {answer.time for answer in ours} - {answer.time for answer in moved}
        if _agreeing(moved, ours) == len(moved) and not any(a.rows for a in ours if a.time in beyond):
            return None
    times = {answer.time for answer in recorded}
    unrecorded = sum(bool(answer.rows) for answer in ours if answer.time not in times)
    return f"{_agreeing(recorded, ours)} of {len(recorded)} windows agree, {unrecorded} more of ours have rows"


def sparqlstream_t0(bench: Bench, number: int) -> int:
    """The only t0 below the slide, in milliseconds, whose windows can close when SPARQLstream's did."""
    return bench.read_recorded("sparqlstream", number)[0].time % bench.window(number)["slide"]


def sparqlstream_problem(bench: Bench, dialect: str, number: int) -> str | None:
    """How our answers differ from SPARQLstream's recording; None where they do not."""
    t0 = sparqlstream_t0(bench, number)
    recorded = [answer for answer in bench.read_recorded("sparqlstream", number) if answer.rows]
    ours = [answer for answer in bench.answers(dialect, number, close_windows(t0)) if answer.rows]
    # The stream ended inside the last window, which the engine may have reported without waiting for its close.
    early = ours[-1].time - recorded[-1].time
    same = recorded[:-1] == ours[:-1] and recorded[-1].rows == ours[-1].rows
    if same and 0 <= early < bench.window(number)["slide"]:
        return None
    return f"{_agreeing(recorded, ours)} of {len(recorded)} windows agree (t0 = {t0} ms)"


def _agreeing(recorded: list[Timed], ours: list[Timed]) -> int:
    found = {answer.time: answer.rows for answer in ours}
    return sum(found.get(answer.time) == answer.rows for answer in recorded)


def _csparql_note(bench: Bench, number: int) -> str:
    recorded = bench.read_recorded("csparql", number)
    ours = bench.answers("csparql", number, close_windows(0))
    said = [answer for answer in recorded if answer.rows]
    return f"{_agreeing(said, ours)} of {len(said)} non-empty windows agree"


def _cqels_note(bench: Bench, number: int) -> str:
    """CQELS reports each new row as it comes and knows no slide."""
    recorded = [row for answer in bench.read_recorded("cqels", number) for row in answer.rows.elements()]
    options = Options(report=Report.EAGER, emit=StreamOperator.ISTREAM, content=Content.SET)
    ours = [row for answer in bench.answers("cqels", number, options) for row in answer.rows.elements()]
    same = "the same" if Counter(recorded) == Counter(ours) else "not the same"
    return f"{len(recorded)} new rows recorded, {len(ours)} ours, {same}"


def run_csrbench(folder: Path, out: TextIO) -> int:
    """Checks what must agree, then notes what else does; 1 where a check failed."""
    if not (folder / "queries.properties").is_file():
        raise SettingError(f"no CSRBench in {folder}: expected queries.properties, data, dialects and answers")
    bench = Bench(folder)
    checks: list[tuple[str, Callable[[Bench, str, int], str | None], tuple[int, ...]]] = [
        ("csparql", csparql_problem, (1, 2)),
        ("sparqlstream", sparqlstream_problem, (1, 2, 3)),
    ]
    passed = failed = 0
    for engine, problem_of, numbers in checks:
        for number in numbers:
            problems = {dialect: problem_of(bench, dialect, number) for dialect in DIALECTS}
            failed += sum(problem is not None for problem in problems.values())
            passed += sum(problem is None for problem in problems.values())
            said = ", ".join(f"{dialect} text: {problem or 'same answers'}" for dialect, problem in problems.items())
            print(f"Q{number} answers of {engine:<14}{said}", file=out)
    for number in (3, 4):
        print(f"Q{number} answers of {'csparql':<14}{_csparql_note(bench, number)} (for information)", file=out)
    for number in (1, 2, 3, 4):
        print(f"Q{number} answers of {'cqels':<14}{_cqels_note(bench, number)} (for information)", file=out)
    print(f"\n{passed} passed, {failed} failed", file=out)
    return 1 if failed else 0
