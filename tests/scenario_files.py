"""Scenario files: a stream, data, queries and the answers expected at each tick, readable by anyone.

    title: what it shows
    shows: CS2 CS3                      ids of docs/papers.md
    prefix : <http://example.org/>
    delay: 2s                           optional

    [stream :gates]
    0    :g1 :registers "156" .         a time (milliseconds, or 5s, or a date and time), then Turtle
    1s   :n { :g1 :registers "157" . }  the same with the name of the element's graph
    [data]  or  [data :graph]
    :g1 :placedIn :s1 .
    [query NAME dialect=cqels emit=rstream bounds=[) report=close content=bag t0=0]
    SELECT …                            the scenario's prefixes are added where the text declares none
    [answers NAME]  or  [answers NAME nonempty]
    at 5s
    ?gate | ?n
    :g1 | 2
    at 10s
    (empty)
    [late 1]  [bad 0]                   how many elements were put aside
    [error some words of the message]   instead of answers: registration fails so

Rows are compared as multisets; a `-` is an unbound variable; lines of a CONSTRUCT answer are Turtle. With
`nonempty` only answers that say something are listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pyoxigraph import Quad, RdfFormat, Store, parse

from headwater.algebra.plan import QueryKind
from headwater.execution.answers import Answer
from headwater.terms.durations import parse_duration
from headwater.terms.model import Element, Row, Triple
from headwater.terms.names import name_to_iri
from headwater.terms.statements import graph_label
from headwater.terms.stored_forms import to_stored_quad
from headwater.terms.timestamps import parse_time

SCENARIOS = Path(__file__).parent / "scenarios"


@dataclass
class QueryText:
    name: str
    text: str
    options: dict[str, str]


@dataclass
class Expected:
    """One expected answer: rows by variable name, triples, or a verdict."""

    time: int
    rows: list[dict[str, str]] = field(default_factory=list)
    triples: set[str] = field(default_factory=set)
    boolean: bool | None = None


@dataclass
class Scenario:
    path: Path
    title: str = ""
    shows: tuple[str, ...] = ()
    delay: str = "0"
    prefixes: dict[str, str] = field(default_factory=dict)
    streams: dict[str, list[Element]] = field(default_factory=dict)
    data: Store = field(default_factory=Store)
    queries: list[QueryText] = field(default_factory=list)
    answers: dict[str, tuple[list[Expected], bool]] = field(default_factory=dict)
    late: int = 0
    bad: int = 0
    error: str | None = None


def scenario_paths() -> list[Path]:
    return sorted(SCENARIOS.glob("*.rsp"))


def time_of(text: str) -> int:
    """`5s`, `-3s`, `1500` (milliseconds) or a date and time, as microseconds."""
    if re.fullmatch(r"-?\d+(us|ms|s|m|h|d)", text):
        return -parse_duration(text[1:]) if text.startswith("-") else parse_duration(text)
    return parse_time(text)


def read_scenario(path: Path) -> Scenario:
    scenario = Scenario(path)
    section: list[str] = []
    body: list[str] = []
    for line in [*path.read_text().splitlines(), "[end]"]:
        header = re.fullmatch(r"\[(\w+)(?: +(.*))?\]", line.strip())
        if header is not None and header[1] in {"stream", "data", "query", "answers", "late", "bad", "error", "end"}:
            if section:
                _close_section(scenario, section, body)
            section, body = [header[1], *(header[2] or "").split(" ")], []
        elif section:
            body.append(line)
        else:
            _head(scenario, line)
    return scenario


def _head(scenario: Scenario, line: str) -> None:
    if match := re.fullmatch(r"prefix (\w*): <(.*)>", line.strip()):
        scenario.prefixes[match[1]] = match[2]
    elif line.startswith("title:"):
        scenario.title = line.removeprefix("title:").strip()
    elif line.startswith("shows:"):
        scenario.shows = tuple(line.removeprefix("shows:").split())
    elif line.startswith("delay:"):
        scenario.delay = line.removeprefix("delay:").strip()
    elif line.strip() and not line.startswith("#"):
        raise ValueError(f"{scenario.path.name}: {line!r} belongs to no section")


def _close_section(scenario: Scenario, section: list[str], body: list[str]) -> None:
    kind, *words = section
    lines = [line for line in body if line.strip() and not line.lstrip().startswith("#")]
    match kind:
        case "stream":
            elements = scenario.streams.setdefault(_iri(scenario, words[0]), [])
            for line in lines:
                time, text = line.split(None, 1)
                quads = list(_trig(scenario, text))
                triples = tuple(dict.fromkeys(quad.triple for quad in quads))
                label = graph_label(quads[0].graph_name) if quads else None
                elements.append(Element(time_of(time), triples, label, (len(elements),)))
        case "data":
            graph = name_to_iri(_iri(scenario, words[0])) if words[0] else None
            for triple in _turtle(scenario, "\n".join(lines)):
                parts = (triple.subject, triple.predicate, triple.object)
                scenario.data.add(to_stored_quad(Quad(*parts, graph) if graph is not None else Quad(*parts)))
        case "query":
            name = words[0] if words[0] and "=" not in words[0] else f"query{len(scenario.queries) or ''}"
            options = dict(word.split("=", 1) for word in words if "=" in word)
            scenario.queries.append(QueryText(name, _with_prefixes(scenario, "\n".join(body)), options))
        case "answers":
            name = words[0] if words[0] and words[0] != "nonempty" else scenario.queries[0].name
            scenario.answers[name] = (_expected(scenario, lines), "nonempty" in words)
        case "late":
            scenario.late = int(words[0])
        case "bad":
            scenario.bad = int(words[0])
        case "error":
            scenario.error = " ".join(words)


def _iri(scenario: Scenario, word: str) -> str:
    if word.startswith("<"):
        return word.strip("<>")
    prefix, _, local = word.partition(":")
    return scenario.prefixes[prefix] + local


def _turtle(scenario: Scenario, text: str) -> list[Triple]:
    return [quad.triple for quad in _trig(scenario, text)]


def _trig(scenario: Scenario, text: str) -> list[Quad]:
    head = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in scenario.prefixes.items())
    return list(parse((head + text).encode(), RdfFormat.TRIG))


def _with_prefixes(scenario: Scenario, text: str) -> str:
    missing = [p for p in scenario.prefixes if not re.search(rf"prefix\s+{p}:", text, re.IGNORECASE)]
    return "".join(f"PREFIX {p}: <{scenario.prefixes[p]}>\n" for p in missing) + text


def _expected(scenario: Scenario, lines: list[str]) -> list[Expected]:
    answers: list[Expected] = []
    variables: list[str] = []
    for line in lines:
        stripped = line.strip()
        if stripped.startswith("at "):
            answers.append(Expected(time_of(stripped.removeprefix("at ").strip())))
            variables = []
        elif stripped == "(empty)":
            continue
        elif stripped in ("true", "false"):
            answers[-1].boolean = stripped == "true"
        elif stripped.startswith("?") and not variables:
            variables = [word.strip()[1:] for word in stripped.split("|")]
        elif variables:
            cells = [cell.strip() for cell in stripped.split("|")]
            named = zip(variables, cells, strict=True)
            answers[-1].rows.append({v: _term(scenario, cell) for v, cell in named if cell != "-"})
        else:
            answers[-1].triples.update(str(triple) for triple in _turtle(scenario, stripped))
    return answers


def _term(scenario: Scenario, text: str) -> str:
    return str(_turtle(scenario, f"<urn:s> <urn:p> {text} .")[0].object)


def row_as_dict(variables: Iterable[str], row: Row) -> dict[str, str]:
    return {v: str(term) for v, term in zip(variables, row, strict=True) if term is not None}


def compare(scenario: Scenario, name: str, answers: list[Answer]) -> None:
    """Fail with a readable message where the answers of a query are not the expected ones."""
    expected, only_nonempty = scenario.answers[name]
    got = [answer for answer in answers if answer.query == name and not (only_nonempty and answer.is_empty)]
    assert [a.time for a in got] == [e.time for e in expected], (
        f"{scenario.path.name}: ticks of {name}: {[a.time / 1e6 for a in got]} s"
        f" but expected {[e.time / 1e6 for e in expected]} s"
    )
    for answer, wanted in zip(got, expected, strict=True):
        where = f"{scenario.path.name}: {name} at {answer.time / 1e6} s"
        if answer.kind is QueryKind.SELECT:
            have = Counter(frozenset(row_as_dict(answer.variables, row).items()) for row in answer.rows)
            assert have == Counter(frozenset(row.items()) for row in wanted.rows), where
        elif answer.kind is QueryKind.ASK:
            assert answer.boolean == wanted.boolean, where
        else:
            assert {str(triple) for triple in answer.triples} == wanted.triples, where
