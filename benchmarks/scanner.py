"""How fast text becomes ids: `python -m benchmarks.scanner [--quick]`.

A file of sensor observations in timed N-Quads (four triples each: sensor, value, time and unit) is read into columns of
ids by the scanner, into elements by the line-by-line reader, and, its timestamps left out, into quads by pyoxigraph
alone; in turns, on one core, the file in the cache of the system; the best of some rounds counts, since others use the
machine too. Prints one JSON object last:

- `triples_per_s`, `mb_per_s`: the scanner, all triples, spans of their texts included.
- `vs_pyoxigraph`, `vs_reader`: how many times as many triples per second as these two.
- `with_texts`, `with_pattern`: triples read per second where the dictionary of all terms is made too, and where one
  pattern of four is wanted, with the dictionary of its subjects.
- `by_kind`: triples per second for lines of one kind; `parsed_share`: which part of them the parser had to read.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from pyoxigraph import RdfFormat, parse

from benchmarks.reporting import in_turns, machine, print_result, progress, rounded
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import XSD, Element, NamedNode
from headwater.terms.scanning.padded_text import PaddedText
from headwater.terms.scanning.pattern_tables import ScanPattern, ScanPatterns
from headwater.terms.scanning.precompile_scanner import precompile_scanner
from headwater.terms.scanning.ranges import scan_range
from headwater.terms.scanning.scanner import scan
from headwater.terms.tnq import read_tnq

_DATA = "http://example.org/data/"
_TERMS = "http://example.org/terms#"
_SENSORS = 20_000
_FIRST_TIME = 1_400_000_000_000
_KINDS: dict[str, Callable[[random.Random], str]] = {
    "iri": lambda draw: f"<{_DATA}room/{draw.randrange(500)}>",
    "integer": lambda draw: f'"{draw.randrange(100_000)}"^^<{XSD}integer>',
    "double": lambda draw: f'"{draw.uniform(-20, 40):.2f}"^^<{XSD}double>',
    "double_17_digits": lambda draw: f'"{draw.uniform(-20, 40)!r}"^^<{XSD}double>',
    "date_time": lambda draw: f'"2014-08-01T07:{draw.randrange(60):02d}:{draw.randrange(60):02d}Z"^^<{XSD}dateTime>',
    "text": lambda draw: f'"about \\"{draw.randrange(100_000)}\\" words\\nin two lines"@en',
    "unicode_text": lambda draw: f'"Ærøskøbing, 東京, Αθήνα {draw.randrange(100_000)}"',
    "escaped_text": lambda draw: f'"\\u00c6r\\u00f8sk\\u00f8bing {draw.randrange(100_000)}"',
}


def observations(triples: int) -> Iterator[str]:
    """Lines of observations, four for each element."""
    draw = random.Random(1)
    time = _FIRST_TIME
    for number in range(triples // 4):
        time += draw.randrange(3)
        subject = f"{time}\t<{_DATA}observation/{number}>"
        yield f"{subject} <{_TERMS}sensor> <{_DATA}sensor/{draw.randrange(_SENSORS)}> .\n"
        yield f"{subject} <{_TERMS}value> {_KINDS['double'](draw)} .\n"
        yield f"{subject} <{_TERMS}time> {_KINDS['date_time'](draw)} .\n"
        yield f'{subject} <{_TERMS}unit> "celsius" .\n'


def measure(triples: int, rounds: int, folder: Path) -> dict[str, object]:
    """All figures for a file of so many triples."""
    timed, untimed = folder / "observations.tnq", folder / "observations.nq"
    lines = list(observations(triples))
    timed.write_text("".join(lines))
    untimed.write_text("".join(line.partition("\t")[2] for line in lines))
    wanted = ScanPatterns([ScanPattern(predicate=encode(NamedNode(_TERMS + "value")), texts="s")])
    counts: dict[str, Callable[[], int]] = {
        "scanner": lambda: len(scan_range(timed)),
        "reader": lambda: _count_read(timed),
        "pyoxigraph": lambda: sum(1 for _ in parse(path=untimed, format=RdfFormat.N_QUADS)),
        "texts": lambda: _with_texts(timed, None),
        "pattern": lambda: 4 * _with_texts(timed, wanted),
    }
    for name, count in counts.items():
        if count() != len(lines):
            raise AssertionError(f"{name} has not read the {len(lines)} triples of the file")
    progress(f"{len(lines)} triples, {rounds} rounds")
    taken = _best(counts, rounds)
    return {
        "triples_per_s": rounded(len(lines) / taken["scanner"]),
        "mb_per_s": rounded(timed.stat().st_size / 1e6 / taken["scanner"]),
        "vs_pyoxigraph": rounded(taken["pyoxigraph"] / taken["scanner"]),
        "vs_reader": rounded(taken["reader"] / taken["scanner"]),
        "with_texts": rounded(len(lines) / taken["texts"]),
        "with_pattern": rounded(len(lines) / taken["pattern"]),
        "bytes_per_line": rounded(timed.stat().st_size / len(lines)),
        **_by_kind(triples // 10, rounds),
    }


def _best(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least seconds of each of some runs, taken in turns."""
    taken = [in_turns(runs, 1, lambda: None) for _ in range(rounds)]
    return {name: min(times[name] for times in taken) for name in runs}


def _count_read(path: Path) -> int:
    with open(path, "rb") as stream:
        return sum(len(element.triples) for element in read_tnq(stream, "") if isinstance(element, Element))


def _with_texts(path: Path, patterns: ScanPatterns | None) -> int:
    scanned = scan_range(path, patterns=patterns, texts="spo")
    if not len(scanned.texts()):
        raise AssertionError("no texts were collected")
    return len(scanned)


def _by_kind(triples: int, rounds: int) -> dict[str, object]:
    draw = random.Random(2)
    texts = {
        kind: PaddedText.of(
            "".join(f"{_FIRST_TIME}\t<{_DATA}s/{n}> <{_TERMS}p> {value(draw)} .\n" for n in range(triples)).encode()
        )
        for kind, value in _KINDS.items()
    }
    taken = _best({kind: partial(scan, text) for kind, text in texts.items()}, rounds)
    return {
        "by_kind": {kind: rounded(triples / seconds) for kind, seconds in taken.items()},
        "parsed_share": {kind: rounded(scan(text).parsed_lines / triples) for kind, text in texts.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scanner", description="How fast text becomes ids.")
    parser.add_argument("--quick", action="store_true", help="a smaller file, some seconds")
    arguments = parser.parse_args()
    facts = machine()
    precompile_scanner()
    triples, rounds = (100_000, 5) if arguments.quick else (1_000_000, 7)
    with tempfile.TemporaryDirectory() as folder:
        findings = measure(triples, rounds, Path(folder))
    print_result({**findings, "quick": arguments.quick, "machine": facts})


if __name__ == "__main__":
    main()
