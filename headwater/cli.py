"""The command `headwater`: what can be typed, and the help for it. What the commands do is in `headwater.commands`.

A command's module is imported when the command runs, so that `headwater check` does not wait for Spark.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from headwater import __version__
from headwater.commands.ending import report_failures
from headwater.explain.drawing_model import PlanFormat, PlanGraph, PlanStage
from headwater.language.stream_clauses import Dialect, StreamOperator
from headwater.running.overload import Overload
from headwater.windows.model import Bounds
from headwater.windows.settings import Content, Report

app = typer.Typer(
    help="Continuous SPARQL (C-SPARQL, CQELS-QL, RSP-QL) over RDF streams and linked data, on Apache Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(is_wanted: bool) -> None:
    """Prints the version and ends, before anything else is looked at."""
    if is_wanted:
        typer.echo(f"headwater {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What may stand before a command."""


OutputFormat: TypeAlias = Literal["table", "json", "csv", "nquads", "parquet"]
Suite: TypeAlias = Literal["w3c", "csrbench"]


def example(*lines: str) -> str:
    """The end of a command's help: something that can be typed in a clone of the project."""
    # The leading backspace asks the help formatter to keep the lines as they are.
    return "\n".join(("\b", "Example:", *(f"  {line}" for line in lines)))


QUERIES = "The query files; - reads standard input."
QueryPaths = Annotated[list[str], typer.Argument(metavar="QUERY.rq", help=QUERIES, show_default=False)]
QueryPath = Annotated[
    str | None,
    typer.Argument(metavar="QUERY.rq", help="The query file; - reads standard input.", show_default=False),
]
DialectOption = Annotated[
    Dialect | None, typer.Option(help="The language of the queries; otherwise recognised from the text.")
]


@app.command(
    epilog=example(
        "headwater run examples/cars-per-district.rq --in-process \\",
        "  --stream http://city/tollgates=examples/tollgates.tnq \\",
        "  --data examples/city.ttl",
    )
)
@report_failures
def run(
    queries: QueryPaths,
    stream: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IRI=SOURCE",
            help="A stream and its files: a path or a glob, quoted. Repeat it for more streams or more files. "
            "Or an address: kafka://host:port/topic?format=turtle, mqtt://host/topic, tcp://host:port, ws://host/path. "
            "A stream whose IRI is such an address, or a file:, needs no --stream.",
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE[@GRAPH-IRI]", help="Static RDF, as default graph or as the graph named."),
    ] = None,
    endpoint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL[,per_second=5,timeout=3…]",
            help="How to ask an endpoint of SERVICE. Credentials are taken from the environment: HEADWATER_AUTH_…",
        ),
    ] = None,
    template: Annotated[
        list[str] | None,
        typer.Option(metavar="IRI=FILE", help="For CSV or JSON rows: the template that says what a row means."),
    ] = None,
    output: Annotated[OutputFormat, typer.Option("--format", help="How answers are written.")] = "table",
    out: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TARGET",
            help="Write answers to a folder (files by query and batch), to kafka://host:port/topic or to https://…, "
            "not to stdout.",
        ),
    ] = None,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Evaluate in this process: no Spark, no Java, same answers.")
    ] = False,
    dialect: DialectOption = None,
    bounds: Annotated[Bounds | None, typer.Option(help="Which end of a time window belongs to it.")] = None,
    report: Annotated[Report | None, typer.Option(help="When queries are evaluated.")] = None,
    emit: Annotated[
        StreamOperator | None, typer.Option(help="All of each result, what is new in it, or what is gone.")
    ] = None,
    content: Annotated[Content | None, typer.Option(help="Whether equal triples of a window collapse.")] = None,
    t0: Annotated[
        str | None,
        typer.Option("--t0", metavar="TIME", help="When the first window opens: milliseconds or an xsd:dateTime."),
    ] = None,
    delay: Annotated[str, typer.Option(metavar="DURATION", help="How late elements may come, such as 5s.")] = "0s",
    max_ahead: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION|off",
            help="How far elements may be ahead of those before them; others are dead letters (1d with --follow).",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad or late element.")] = False,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the progress here, and go on from it.")
    ] = None,
    dead_letters: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write bad and late elements here, with the reason.")
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Go on when all files are read: wait for what is added. Ctrl-C ends."),
    ] = False,
    realtime: Annotated[
        bool,
        typer.Option(
            "--realtime",
            help="Experimental: follow topics of Kafka in Spark's real-time mode, to --out kafka://…; in micro-batches "
            "where that is not possible.",
        ),
    ] = False,
    evaluator: Annotated[
        Literal["auto", "reference"],
        typer.Option(help="The incremental kernel where it can, or the slow definition for everything."),
    ] = "auto",
    window_cap: Annotated[
        int | None,
        typer.Option(min=1, metavar="TRIPLES", help="How much a window may hold before the run fails (20 million)."),
    ] = None,
    progress_json: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append the counts of each batch, query by query, as a line of JSON."),
    ] = None,
    no_locate_streams: Annotated[
        bool,
        typer.Option("--no-locate-streams", help="Read only streams that --stream names: no IRI is an address."),
    ] = False,
    overload: Annotated[
        Overload,
        typer.Option(help="What a run does that follows and falls behind: evaluate all ticks later, or fewer of them."),
    ] = "wait",
    egress: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="An address that may be asked by SERVICE, LOAD, --data and located streams: scheme://host:port/path. "
            "Repeat it; without any, and without a settings file, everything may be asked.",
        ),
    ] = None,
    egress_network: Annotated[
        list[str] | None,
        typer.Option(metavar="CIDR", help="A private network that may be connected to, such as 10.1.0.0/16."),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME=NUMBER",
            help="What each query may take: seconds, rows, bytes, state_bytes, literal or ticks; may be repeated.",
        ),
    ] = None,
    resume: Annotated[
        list[str] | None,
        typer.Option("--resume", metavar="QUERY", help="Resume a query that the checkpoint has as suspended."),
    ] = None,
    no_egress: Annotated[bool, typer.Option("--no-egress", help="Ask no address at all.")] = False,
    settings: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The settings file, TOML; otherwise the one that HEADWATER_SETTINGS names."),
    ] = None,
    idle: Annotated[
        list[str] | None,
        typer.Option(
            "--idle",
            metavar="[IRI=]DURATION",
            help="Do not wait for a followed stream, or for any, that was silent for so long, such as 2s; off waits. "
            "Repeat it for more streams.",
        ),
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option("--trigger", metavar="DURATION", help="How often followed sources are looked at (1s)."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Do not say on stderr how far the run has come.")
    ] = False,
    no_drain: Annotated[
        bool, typer.Option("--no-drain", help="At the end, do not answer the windows that are still open.")
    ] = False,
) -> None:
    """Register queries over streams and static data, and print their answers."""
    from headwater.commands.run_command import RunOptions
    from headwater.commands.run_command import run as run_queries

    run_queries(
        RunOptions(
            queries=tuple(queries),
            streams=tuple(stream or ()),
            data=tuple(data or ()),
            templates=tuple(template or ()),
            format=output,
            in_process=in_process,
            dialect=dialect,
            bounds=bounds,
            report=report,
            emit=emit,
            content=content,
            t0=t0,
            delay=delay,
            max_ahead=max_ahead,
            strict=strict,
            checkpoint=checkpoint,
            dead_letters=dead_letters,
            follow=follow,
            realtime=realtime,
            drain=not no_drain,
            evaluator=evaluator,
            window_cap=window_cap,
            out=tuple(out or ()),
            endpoints=tuple(endpoint or ()),
            progress_json=progress_json,
            locate_streams=not no_locate_streams,
            overload=overload,
            egress=tuple(egress or ()),
            egress_networks=tuple(egress_network or ()),
            denies_egress=no_egress,
            limits=tuple(limit or ()),
            resumed=tuple(resume or ()),
            settings=settings,
            idle=tuple(idle or ()),
            trigger=trigger,
            quiet=quiet,
        )
    )


@app.command(
    epilog=example(
        "headwater explain examples/across-town.rq",
        "headwater explain examples/across-town.rq --format svg > plan.svg",
        "headwater explain examples/across-town.rq --rules",
        "headwater explain --coverage examples",
    )
)
@report_failures
def explain(
    query: QueryPath = None,
    graph: Annotated[
        PlanGraph | None,
        typer.Option(help="The O-Graph (operators) or the D-Graph of the C-SPARQL paper; otherwise the plan as text."),
    ] = None,
    output: Annotated[PlanFormat, typer.Option("--format", help="How it is drawn; svg needs Graphviz.")] = "text",
    coverage: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="For each query file of a folder, say who evaluates it: the kernel, or the reference and why.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE[@GRAPH-IRI]",
            help="Static RDF or a data set: says how large the views over it are, and where.",
        ),
    ] = None,
    stream: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IRI=FILES",
            help="A sample of a stream: patterns are shown at the one source that has their predicates.",
        ),
    ] = None,
    plan: Annotated[
        PlanStage,
        typer.Option(help="As it is written, with filters at the sources as in the C-SPARQL paper, or as evaluated."),
    ] = "evaluated",
    rules: Annotated[bool, typer.Option("--rules", help="Show how the plan is rewritten, a step per rule.")] = False,
    dialect: DialectOption = None,
) -> None:
    """Show how a query was understood: its plan, as text or as a drawing, and what evaluates it."""
    others = {
        "--coverage": rules and coverage,
        "--graph": graph,
        "--format": output != "text",
        "--data": data,
        "--stream": stream,
        "--plan": plan != "evaluated",
    }
    ignored = ", ".join(option for option, value in others.items() if value)
    if ignored and (rules or coverage is not None):
        raise typer.BadParameter(f"{'--rules' if rules else '--coverage'} prints text alone: leave out {ignored}")
    if rules and query is not None:
        from headwater.commands.rules_command import rules as show_rules

        show_rules(query, dialect)
    elif coverage is not None and query is None:
        from headwater.commands.coverage_command import coverage as show_coverage

        show_coverage(coverage, dialect)
    elif query is not None and coverage is None:
        from headwater.commands.explain_command import ExplainOptions
        from headwater.commands.explain_command import explain as explain_query

        explain_query(query, ExplainOptions(graph, output, plan, dialect, data or (), stream or ()))
    else:
        raise typer.BadParameter("give either a query file or --coverage with a folder of them")


@app.command(epilog=example("headwater check examples/cars-per-district.rq examples/busy-districts.rq"))
@report_failures
def check(
    queries: QueryPaths,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE[@GRAPH-IRI]", help="Static RDF or a data set: warns of what nothing in it can match."
        ),
    ] = None,
    stream: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IRI=FILES",
            help="A sample of a stream: warns of what its first elements lack or cannot mean.",
        ),
    ] = None,
    template: Annotated[
        list[str] | None,
        typer.Option(metavar="IRI=FILE", help="For CSV or JSON rows: the template that says what a row means."),
    ] = None,
    dialect: DialectOption = None,
) -> None:
    """Parse and plan queries, and say what is wrong with them. Exit code 2 when something is."""
    from headwater.commands.check_command import CheckOptions
    from headwater.commands.check_command import check as check_queries

    check_queries(queries, CheckOptions(dialect, data or (), stream or (), template or ()))


@app.command(
    epilog=example(
        "headwater why examples/cars-per-district.rq \\",
        "  --tick 2026-03-02T07:05:00Z --row district=c:East \\",
        "  --stream http://city/tollgates=examples/tollgates.tnq \\",
        "  --data examples/city.ttl",
    )
)
@report_failures
def why(
    queries: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY.rq",
            help="The query file, and behind it those of queries whose streams it reads; - reads standard input.",
            show_default=False,
        ),
    ],
    tick: Annotated[str, typer.Option(metavar="TIME", help="The time of the answer: milliseconds or an xsd:dateTime.")],
    row: Annotated[
        list[str] | None,
        typer.Option(metavar="NUMBER|NAME=VALUE", help="The number of a row, or values of it; otherwise all rows."),
    ] = None,
    stream: Annotated[
        list[str] | None, typer.Option(metavar="IRI=FILES", help="A stream and its files, as for run.")
    ] = None,
    data: Annotated[list[str] | None, typer.Option(metavar="FILE[@GRAPH-IRI]", help="Static RDF, as for run.")] = None,
    template: Annotated[
        list[str] | None,
        typer.Option(metavar="IRI=FILE", help="For CSV or JSON rows: the template that says what a row means."),
    ] = None,
    output: Annotated[Literal["text", "json"], typer.Option("--format", help="How it is written.")] = "text",
    bounds: Annotated[Bounds | None, typer.Option(help="Which end of a time window belongs to it, as for run.")] = None,
    report: Annotated[Report | None, typer.Option(help="When queries are evaluated, as for run.")] = None,
    content: Annotated[Content | None, typer.Option(help="Whether equal triples of a window collapse.")] = None,
    t0: Annotated[
        str | None, typer.Option("--t0", metavar="TIME", help="When the first window opens, as for run.")
    ] = None,
    delay: Annotated[str, typer.Option(metavar="DURATION", help="How late elements may come, such as 5s.")] = "0s",
    max_ahead: Annotated[
        str | None,
        typer.Option(metavar="DURATION|off", help="How far elements may be ahead of those before them, as for run."),
    ] = None,
    dialect: DialectOption = None,
) -> None:
    """Say what led to an answer: the elements and static triples behind its rows, or where solutions end."""
    from headwater.commands.why_command import WhyOptions, explain_answer

    explain_answer(
        WhyOptions(
            queries=queries,
            tick=tick,
            row=row or (),
            streams=stream or (),
            data=data or (),
            templates=template or (),
            format=output,
            bounds=bounds,
            report=report,
            content=content,
            t0=t0,
            delay=delay,
            max_ahead=max_ahead,
            dialect=dialect,
        )
    )


@app.command(
    epilog=example(
        "headwater load dblp.nt.gz authors/ --into dblp",
        "headwater load city.ttl --graph http://city/map --into city",
        "zstd -dc dblp.nt.zst | headwater load - --into dblp",
    )
)
@report_failures
def load(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR|FILE…",
            help="RDF files, or folders of them; - is N-Triples or N-Quads on standard input.",
            show_default=False,
        ),
    ],
    into: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The data set: a new folder, or one that was made by load.")
    ],
    graph: Annotated[
        str | None, typer.Option(metavar="IRI", help="The graph for what stands in no named graph.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first line that cannot be read.")] = False,
) -> None:
    """Load linked data into a folder on disk. Given again after an interruption, it goes on where it stopped."""
    from headwater.commands.load_command import load_files

    load_files(sources, into, graph, strict)


@app.command(
    epilog=example("headwater demo --seconds 60", "headwater demo --seconds 10 --in-process", "headwater demo --page")
)
@report_failures
def demo(
    seconds: Annotated[float, typer.Option(min=1, help="How long it takes in all, about.")] = 60,
    in_process: Annotated[bool, typer.Option("--in-process", help="Without Spark.")] = False,
    page: Annotated[bool, typer.Option("--page", help="In a browser, with a map, until it is stopped.")] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where the page is, with --page.")] = 8080,
) -> None:
    """A city's morning traffic, generated, and three queries over it: one in each language."""
    if page:
        from headwater.commands.demo_page import demo_page

        demo_page(seconds, port)
        return
    from headwater.commands.demo_command import demo as run_demo

    run_demo(seconds, in_process)


@app.command(
    epilog=example(
        "headwater conformance w3c rdf-tests",
        "headwater conformance csrbench csrbench",
    )
)
@report_failures
def conformance(
    suite: Annotated[Suite, typer.Argument(help="Which suite.", show_default=False)],
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Where its files are.", exists=True, file_okay=False, show_default=False),
    ],
) -> None:
    """Run a public test suite and count what passed."""
    from headwater.commands.conformance_command import conformance as run_suite

    run_suite(suite, folder)


@app.command(
    epilog=example(
        "headwater serve --in-process",
        "headwater serve --config headwater.toml --check",
        "headwater serve --make-token dashboard --scope read",
    )
)
@report_failures
def serve(
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The settings file of the server, TOML.", show_default=False)
    ] = None,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Evaluate without Spark and Java, in one process beside the server.")
    ] = False,
    host: Annotated[str | None, typer.Option(help="The address to listen at (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="The port to listen at (8080).")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only say whether the settings can be right.")] = False,
    make_token: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print a new token, and what goes into the settings.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="SCOPE", help="For --make-token: read, feed, register, update or admin; may be repeated."),
    ] = None,
) -> None:
    """Serve queries, streams and answers over HTTP, until SIGTERM or Ctrl-C."""
    from headwater.commands.serve_command import ServeOptions
    from headwater.commands.serve_command import serve as run_server

    run_server(ServeOptions(config, in_process, host, port, check, make_token, tuple(scope or ())))


def main() -> None:
    """The console script."""
    # RDF and JSON are UTF-8, whatever the terminal's language is.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    app(prog_name="headwater")
