"""`headwater run`: queries over streams and static data; answers to stdout, everything else to stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import typer

import headwater as hw
from headwater.algebra.plan import QueryPlan
from headwater.commands.answer_tables import Screen, answer_table
from headwater.commands.ending import WrongInput, end_on_signals
from headwater.commands.option_values import (
    group_sources,
    locate_streams,
    make_sink,
    make_source,
    parse_data_option,
    parse_endpoint_option,
    parse_idle_option,
    parse_template_option,
    read_duration,
    read_max_ahead,
    read_t0,
    unread_streams,
)
from headwater.commands.progress_line import ProgressLine, show_warnings, summary_text
from headwater.commands.query_files import QueryFile
from headwater.commands.settings_file import choose_egress, choose_idle, choose_limits, read_settings
from headwater.execution.answers import Answer
from headwater.explain.notation import Notation
from headwater.language.stream_clauses import Dialect, StreamOperator
from headwater.running.freed_memory import keep_freed_memory
from headwater.running.overload import Overload
from headwater.sinks.answer_text import answer_writer
from headwater.terms.model import SECOND
from headwater.windows.model import Bounds
from headwater.windows.settings import Content, Report


@dataclass(frozen=True)
class RunOptions:
    """What was typed."""

    queries: tuple[str, ...]
    streams: tuple[str, ...]
    data: tuple[str, ...]
    templates: tuple[str, ...]
    format: str
    in_process: bool
    dialect: Dialect | None
    bounds: Bounds | None
    report: Report | None
    emit: StreamOperator | None
    content: Content | None
    t0: str | None
    delay: str
    strict: bool
    checkpoint: Path | None
    dead_letters: Path | None
    follow: bool
    drain: bool
    evaluator: Literal["auto", "reference"] = "auto"
    out: tuple[str, ...] = ()
    window_cap: int | None = None
    endpoints: tuple[str, ...] = ()
    progress_json: Path | None = None
    locate_streams: bool = True
    overload: Overload = "wait"
    egress: tuple[str, ...] = ()
    egress_networks: tuple[str, ...] = ()
    denies_egress: bool = False
    settings: Path | None = None
    limits: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    trigger: str | None = None
    quiet: bool = False
    max_ahead: str | None = None
    realtime: bool = False


def run(options: RunOptions) -> None:
    """Runs until the streams end or, when following, until Ctrl-C."""
    keep_freed_memory()
    line = ProgressLine(sys.stderr, quiet=options.quiet)
    with show_warnings(line):
        _run(options, line)


def _run(options: RunOptions, line: ProgressLine) -> None:
    t0 = read_t0(options.t0)
    delay = read_duration("--delay", options.delay)
    sources = group_sources(options.streams)
    templates = dict(parse_template_option(text) for text in options.templates)
    locate_streams("--template", templates, sources)
    settings = read_settings(options.settings)
    given_idle = [parse_idle_option(text) for text in options.idle]
    locate_streams("--idle", [stream for stream, _ in given_idle if stream is not None], sources)
    idle_of_all, idle = choose_idle(settings, given_idle)
    trigger = settings.trigger if options.trigger is None else options.trigger
    trigger_seconds = None if trigger is None else read_duration("--trigger", trigger) / SECOND
    engine = hw.Engine(
        in_process=options.in_process,
        delay=delay,
        max_ahead=read_max_ahead(options.max_ahead),
        checkpoint=options.checkpoint,
        dead_letters=options.dead_letters,
        strict=options.strict,
        evaluator=options.evaluator,
        window_cap=options.window_cap,
        locate_streams=options.locate_streams,
        overload=options.overload,
        egress=choose_egress(settings, options.egress, options.egress_networks, options.denies_egress),
        limits=choose_limits(settings, options.limits),
        idle=idle_of_all,
    )
    for stream, named in sources.items():
        engine.stream(stream, make_source(named, templates.get(stream)), idle=idle.get(stream))
    for text in options.endpoints:
        _endpoint(engine, text)
    queries = [_register(engine, QueryFile.read(path), options, t0) for path in options.queries]
    for sentence in unread_streams(sources, [query.plan for query in queries]):
        line.print(f"warning: {sentence}")
    for name in options.resumed:
        engine.resume(name)
    for text in options.data:
        path, graph = parse_data_option(text)
        engine.dataset(path, graph=graph)
    sinks = [make_sink(text, options.format) for text in options.out]
    if options.format == "parquet" and not sinks:
        raise typer.BadParameter("parquet is written to a folder: name it with --out DIR", param_hint="--format")
    output = Output("json" if sinks else options.format, [query.plan for query in queries], line)
    line.say("reading …" if options.in_process else "starting Spark …")
    with (
        _progress_file(options.progress_json) as write,
        end_on_signals(engine.stop) as find_code,
        line.repeat(lambda: engine.progress),
    ):

        def on_progress(progress: hw.Progress) -> None:
            line.update(progress)
            write(progress)
            if len(progress.suspended) == len(progress.queries):
                engine.stop()

        summary = engine.run(
            follow=options.follow,
            drain=options.drain,
            on_answer=None if sinks else output.answer,
            on_progress=on_progress,
            sinks=sinks,
            trigger_seconds=trigger_seconds,
            realtime=options.realtime,
        )
        write(summary)
    line.clear()
    print(summary_text(summary), file=sys.stderr)
    if engine.continued is not None and engine.continued.kept and not (summary.elements or summary.stopped):
        print(
            f"nothing was read: an earlier run from the checkpoint {options.checkpoint} had read everything and given "
            "its answers; another folder begins anew",
            file=sys.stderr,
        )
    if (code := find_code()) is not None:
        raise typer.Exit(code)
    for name, reason in summary.suspended.items():
        raise hw.QuerySuspended(name, reason)


@contextmanager
def _progress_file(path: Path | None) -> Iterator[Callable[[hw.Progress], None]]:
    """What writes the counts of each batch as a line of JSON, and in the end those of the run."""
    if path is None:
        yield lambda progress: None
        return
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(open(path, "a", encoding="utf-8"))
        except OSError as error:
            reason = f"{path} cannot be written ({error.strerror}): name another file"
            raise typer.BadParameter(reason, param_hint="--progress-json") from None

        def write(progress: hw.Progress) -> None:
            stream.write(progress.to_json() + "\n")
            stream.flush()

        yield write


def _endpoint(engine: hw.Engine, text: str) -> None:
    url, settings = parse_endpoint_option(text)
    try:
        engine.endpoint(url, **settings)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--endpoint") from None


def _register(engine: hw.Engine, file: QueryFile, options: RunOptions, t0: int | None) -> hw.Query:
    """A query under its own name or, where it has none, under that of its file."""
    try:
        return engine.register(
            file.text,
            name=file.plan(options.dialect).name,
            dialect=options.dialect,
            bounds=options.bounds,
            report=options.report,
            emit=options.emit,
            content=options.content,
            t0=t0,
        )
    except hw.QueryError as error:
        raise WrongInput(f"{file.shown}: {error}") from None


class Output:
    """Where answers go: tables through rich, everything else as the text of its format."""

    def __init__(self, format: str, plans: list[QueryPlan], line: ProgressLine) -> None:
        self.line = line
        self._tables = format == "table"
        self._write = answer_writer(format, with_query=len(plans) > 1)
        self._notations = {plan.name: Notation.of(plan) for plan in plans}
        self._screen = Screen()

    def answer(self, answer: Answer) -> None:
        """Prints an answer at once, above the progress line."""
        with self.line.writing:
            self.line.clear()
            if self._tables:
                self._screen.print(answer_table(answer, self._notations[answer.query]))
            else:
                sys.stdout.write(self._write(answer))
            sys.stdout.flush()
            self.line.paint()
