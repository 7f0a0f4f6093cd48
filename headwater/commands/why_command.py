"""`headwater why`: what led to an answer, from the streams and data that were read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import typer

import headwater as hw
from headwater.algebra.plan import QueryPlan
from headwater.commands.ending import WrongInput
from headwater.commands.option_values import (
    group_sources,
    locate_streams,
    make_source,
    parse_data_option,
    parse_template_option,
    read_duration,
    read_max_ahead,
    read_t0,
    read_time,
)
from headwater.commands.query_files import QueryFile
from headwater.commands.settings_file import choose_egress, choose_limits, read_settings
from headwater.explain.notation import Notation
from headwater.language.stream_clauses import Dialect
from headwater.running.tick_explaining import Explanation, RowChoice
from headwater.terms.model import NamedNode, Term
from headwater.terms.names import iri_to_name
from headwater.terms.timestamps import format_time
from headwater.windows.model import Bounds
from headwater.windows.settings import Content, Report

_MOST_COLLAPSED = 3
"""So many triples that stand for several elements are shown."""


@dataclass(frozen=True)
class WhyOptions:
    """What was typed; the first of the queries is explained."""

    queries: Sequence[str]
    tick: str
    row: Sequence[str] = ()
    streams: Sequence[str] = ()
    data: Sequence[str] = ()
    templates: Sequence[str] = ()
    format: str = "text"
    bounds: Bounds | None = None
    report: Report | None = None
    content: Content | None = None
    t0: str | None = None
    delay: str = "0s"
    max_ahead: str | None = None
    dialect: Dialect | None = None


def explain_answer(options: WhyOptions) -> None:
    """Print what led to the rows of a query at a tick."""
    tick, t0 = read_time("--tick", options.tick), read_t0(options.t0)
    sources = group_sources(options.streams)
    templates = dict(parse_template_option(text) for text in options.templates)
    locate_streams("--template", templates, sources)
    settings = read_settings()
    engine = hw.Engine(
        in_process=True,
        delay=read_duration("--delay", options.delay),
        max_ahead=read_max_ahead(options.max_ahead),
        egress=choose_egress(settings, (), (), False),
        limits=choose_limits(settings, ()),
    )
    for stream, named in sources.items():
        engine.stream(stream, make_source(named, templates.get(stream)))
    for text in options.data:
        file, graph = parse_data_option(text)
        engine.dataset(file, graph=graph)
    query, *_ = [_register(engine, QueryFile.read(path), options, t0) for path in options.queries]
    plan = query.plan
    explanation = query.why(tick, _parse_row(options.row, plan))
    if options.format == "json":
        print(explanation.to_json())
    else:
        print("\n".join(_lines(explanation, Notation.of(plan))))


def _register(engine: hw.Engine, file: QueryFile, options: WhyOptions, t0: int | None) -> hw.Query:
    try:
        return engine.register(
            file.text,
            name=file.plan(options.dialect).name,
            dialect=options.dialect,
            bounds=options.bounds,
            report=options.report,
            content=options.content,
            t0=t0,
        )
    except hw.QueryError as error:
        raise WrongInput(f"{file.shown}: {error}") from None


def _parse_row(texts: Sequence[str], plan: QueryPlan) -> RowChoice:
    """The number of a row, or values of its variables; names may have the prefixes of the query."""
    if not texts:
        return None
    if len(texts) == 1 and texts[0].isdigit():
        return int(texts[0])
    prefixes = dict(plan.prefixes)
    row: dict[str, object] = {}
    for text in texts:
        name, is_pair, value = text.partition("=")
        if not is_pair:
            raise typer.BadParameter(f"{text} is neither a number nor NAME=VALUE", param_hint="--row")
        prefix, has_prefix, local = value.partition(":")
        row[name.lstrip("?")] = NamedNode(prefixes[prefix] + local) if has_prefix and prefix in prefixes else value
    return row


def _lines(explanation: Explanation, notation: Notation) -> Iterator[str]:
    def term_text(term: Term | None) -> str:
        return "unbound" if term is None else notation.term(term)

    yield f"{explanation.query} at {format_time(explanation.time)}"
    for row in explanation.rows:
        shown = zip(explanation.variables, row, strict=True)
        yield "  row " + ", ".join(f"?{name} = {term_text(term)}" for name, term in shown)
    if explanation.elements:
        yield "because of these elements"
    for element in explanation.elements:
        line = "" if element.line is None else f", line {element.line}"
        where = f"  ({element.source}{line})" if element.source else ""
        yield f"  {format_time(element.time)}  {iri_to_name(element.stream)}{where}"
        for triple in element.triples:
            yield f"    {' '.join(term_text(part) for part in triple)}"
    for triple in explanation.collapsed[:_MOST_COLLAPSED]:
        text = " ".join(term_text(part) for part in triple)
        yield f"of which several have {text}: in a set these are one triple (--content bag keeps each)"
    if len(explanation.collapsed) > _MOST_COLLAPSED:
        yield f"and so it is with {len(explanation.collapsed) - _MOST_COLLAPSED:,} other triples"
    if explanation.static:
        yield "and of these static triples" if explanation.elements else "because of these static triples"
    for one in explanation.static:
        where = "" if one.graph is None else f"  in {notation.term(one.graph)}"
        yield f"  {' '.join(term_text(part) for part in one.triple)}{where}"
    yield "solutions of each step"
    width = max((len(f"{step.solutions:,}") for step in explanation.steps), default=1)
    for step in explanation.steps:
        end = "   ← here they end" if step == explanation.end else ""
        yield f"  {step.solutions:>{width},}  {'  ' * step.depth}{step.text}{end}"
