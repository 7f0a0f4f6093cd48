"""What a program must have delivered, whatever happened to it: what the reference says in one run without a failure."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import headwater as hw
from headwater.terms.model import NamedNode
from tests.chaos.lives import in_fork
from tests.chaos.random_programs import OTHER_GRAPH, RandomProgram

Delivered = Mapping[str, Counter[str]]
"""By query, the answers as comparable texts, each as often as it stands in the files."""


class ChaosError(AssertionError):
    """A run that gave what it must not give."""


def evaluate_definition(program: RandomProgram, folder: Path, sources: Mapping[str, Any] | None = None) -> None:
    """Write the answers and dead letters of the definition into `expected`; `sources` are streams not from files."""
    engine = program.make_engine(
        folder / "run",
        visitor=True,
        sources=sources,
        in_process=True,
        evaluator="reference",
        dead_letters=folder / "expected" / "letters",
    )
    engine.run(sinks=[hw.FileSink(folder / "expected" / "out", format=program.format)])


def expect(program: RandomProgram, folder: Path, sources: Mapping[str, Any] | None = None) -> None:
    """Evaluate the definition in a fork."""
    notes = folder / "oracle"
    notes.mkdir()
    how, text = in_fork(lambda: evaluate_definition(program, folder, sources), notes)
    if how != "done":
        raise ChaosError(f"the run without a failure {how}: {text}")


@dataclass(frozen=True)
class Outcome:
    """The answers, and the dead letters with how often they stand there."""

    answers: Delivered
    letters: Counter[str]

    @classmethod
    def read(cls, folder: Path, format: str) -> Outcome:
        answers: dict[str, Counter[str]] = {}
        for path in sorted((folder / "out").glob("*/[!.]*")):
            answers.setdefault(path.parent.name, Counter()).update(_READERS[format](path))
        letters = (line for path in (folder / "letters").glob("[!.]*") for line in path.read_text().splitlines())
        return cls(answers, Counter(letters))

    def with_letters(self, change: Callable[[dict[str, Any]], Iterable[dict[str, Any]]]) -> Outcome:
        """The same answers; each dead letter is replaced with those that `change` makes of it, each of them once."""
        letters = (json.dumps(letter, sort_keys=True) for text in self.letters for letter in change(json.loads(text)))
        return Outcome(self.answers, Counter(dict.fromkeys(letters, 1)))


def statements_of(letter: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A dead letter for each of its statements, without the line.

    Which messages of the same time are one element depends on which of them were there when a batch began, and the text
    of one may go on with those of the next.
    """
    for statement in letter["text"].splitlines() or [""]:
        yield {**letter, "text": statement, "line": None}


def compare(
    program: RandomProgram,
    folder: Path,
    *,
    endpoint_failed: bool,
    change_letters: Callable[[dict[str, Any]], Iterable[dict[str, Any]]] | None = None,
) -> Outcome:
    """Compare what was delivered with what was expected; gives the latter. A `ChaosError` says what is different.

    With `change_letters` dead letters are compared as that makes them.
    """
    found = Outcome.read(folder / "run", program.format)
    wanted = Outcome.read(folder / "expected", program.format)
    if change_letters is not None:
        found, wanted = found.with_letters(change_letters), wanted.with_letters(change_letters)
    for query in program.queries:
        own, expected = found.answers.get(query.name, Counter()), wanted.answers.get(query.name, Counter())
        if query.name == program.service:
            _compare_remote(own, expected, endpoint_failed)
        else:
            compare_counts(query.name, own, expected)
    if program.visitor is not None:
        name = program.visitor.name
        complete = Counter(
            {one: n for one, n in found.answers.get(name, Counter()).items() if json.loads(one)["complete"]}
        )
        if doubled := complete - wanted.answers.get(name, Counter()):
            raise ChaosError(f"{name}, which comes and goes, says it is complete and is not: {_some(doubled)}")
    compare_counts("dead letters", found.letters, wanted.letters)
    return wanted


def compare_data(folder: Path) -> None:
    """Compare the data set with the changes that were begun and acknowledged."""
    noted = (folder / "acknowledged").read_text().splitlines() if (folder / "acknowledged").exists() else []
    begun = {line.removeprefix("begin ") for line in noted if line.startswith("begin ")}
    done = {line.removeprefix("done ") for line in noted if line.startswith("done ")}
    data = hw.DataSet.open(folder / "run" / "data")
    data.verify()
    there = {str(quad.object).strip('"') for quad in data.quads() if quad.graph_name == NamedNode(OTHER_GRAPH)}
    if not done <= there <= begun:
        raise ChaosError(f"the data set has {sorted(there)}; begun: {sorted(begun)}, acknowledged: {sorted(done)}")


def compare_counts(name: str, found: Counter[str], wanted: Counter[str]) -> None:
    """Compare what is there with what should be; a `ChaosError` names what is lost, or there too often."""
    if lost := wanted - found:
        raise ChaosError(f"{name}: lost {_some(lost)}; there is instead {_some(found - wanted)}")
    if doubled := found - wanted:
        raise ChaosError(f"{name}: doubled or invented {_some(doubled)}")


def _compare_remote(found: Counter[str], wanted: Counter[str], endpoint_failed: bool) -> None:
    """An answer that says that something is missing or suspect may have fewer rows; others are as expected.

    A query that an endpoint has suspended says so, and has no answers until it is resumed.
    """
    by_time = {json.loads(text)["time"]: json.loads(text) for text in wanted}
    for text, count in found.items():
        one = json.loads(text)
        if "suspended" in one:
            if not endpoint_failed:
                raise ChaosError(f"remote: the endpoint was well, and the query is suspended: {text}")
            continue
        expected = by_time.pop(one["time"], None)
        if expected is None or count != 1:
            raise ChaosError(f"remote: doubled or invented {text}")
        # The reference does not say how good an answer is: it asks again at each tick.
        quality = one.get("quality", {"missing": 0, "suspects": 0})
        is_marked = quality["missing"] + quality["suspects"] > 0 or not one["complete"]
        if is_marked and not endpoint_failed:
            raise ChaosError(f"remote: the endpoint was well, and the answer says it was not: {text}")
        rows, expected_rows = (Counter(map(json.dumps, side["rows"])) for side in (one, expected))
        if rows != expected_rows and not (is_marked and rows <= expected_rows):
            raise ChaosError(f"remote: {text} instead of {expected}")
    if by_time and not endpoint_failed:
        raise ChaosError(f"remote: lost the answers at {sorted(by_time)}")


def _some(counts: Counter[str]) -> str:
    listed = [f"{text} ({count} times)" for text, count in list(counts.items())[:3]]
    return f"{sum(counts.values())}: " + "; ".join(listed)[:1500]


def _read_json(path: Path) -> Iterator[str]:
    for line in path.read_text("utf-8", "surrogatepass").splitlines():
        yield comparable_answer(json.loads(line))


def comparable_answer(answer: dict[str, Any]) -> str:
    """What an answer in JSON says, as a text, the same for each order of its rows."""
    rows = answer.get("results", {}).get("bindings")
    content = {
        "time": answer["time_us"],
        "variables": answer["head"].get("vars"),
        "rows": None if rows is None else sorted(rows, key=lambda row: json.dumps(row, sort_keys=True)),
        "graph": sorted(answer.get("graph", "").splitlines()),
        "boolean": answer.get("boolean"),
        "complete": answer.get("complete", True),
    }
    content |= {name: answer[name] for name in ("quality", "suspended") if name in answer}
    return json.dumps(content, sort_keys=True)


def _read_csv(path: Path) -> Iterator[str]:
    with open(path, newline="", encoding="utf-8") as stream:
        yield from (json.dumps(row) for row in list(csv.reader(stream))[1:])


def _read_nquads(path: Path) -> Iterator[str]:
    yield from path.read_text("utf-8", "surrogatepass").splitlines()


def _read_parquet(path: Path) -> Iterator[str]:
    yield from (json.dumps(row, sort_keys=True, default=str) for row in pq.read_table(path).to_pylist())


_READERS = {"json": _read_json, "csv": _read_csv, "nquads": _read_nquads, "parquet": _read_parquet}
