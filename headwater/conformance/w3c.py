"""The W3C tests of SPARQL 1.0 and 1.1, answered by a continuous query.

An evaluation test's default graph arrives as a stream: its triples are cut into elements of increasing time, all
within one window that C-SPARQL merges into the default graph.

    FROM STREAM <urn:headwater:w3c> [RANGE 1m TUMBLING]        elements at 1 s, 2 s, …; the window closes at 1 m

Named graphs (of the manifest, of FROM and FROM NAMED) are static graphs. The answer when the window closes is written
in the format of the expected result, read back and compared with it. A syntax test asks the parser and the planner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pyoxigraph import Quad, Store

from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.conformance.expected_results import (
    Expected,
    Solutions,
    read_expected,
    same_graph,
    same_solutions,
    through_writer,
)
from headwater.conformance.manifests import Case, CaseKind, file_of, read_cases
from headwater.execution.answers import Answer
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.language.errors import QueryError
from headwater.language.parser import parse
from headwater.language.query import ParsedQuery
from headwater.language.stream_clauses import Dialect, FromGraph, FromStream, RangeSpec
from headwater.running.named_evaluators import by_definition
from headwater.terms.model import SECOND, Element, NamedNode, Triple
from headwater.terms.rdf_documents import read_quads
from headwater.terms.stored_forms import to_stored_quad
from headwater.windows.settings import Options, resolve_settings

STREAM = NamedNode("urn:headwater:w3c")
WIDTH = 60 * SECOND
_CHUNKS = 5


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """How a test went: `problem` is None where it passed; `skipped` says why it was not run."""

    case: Case
    problem: str | None = None
    skipped: str | None = None


def cases(folder: Path) -> Iterator[Case]:
    """All query tests below a folder that holds `sparql/sparql10` and `sparql/sparql11`."""
    root = folder / "sparql" if (folder / "sparql").is_dir() else folder
    for suite in ("sparql10", "sparql11"):
        for manifest in sorted((root / suite).glob("*/manifest.ttl")):
            yield from read_cases(manifest, f"{suite}/{manifest.parent.name}")


def run_case(case: Case, evaluator: MakeEvaluator = by_definition) -> CaseOutcome:
    """Runs one test; whatever goes wrong inside is the test's failure, not the runner's."""
    if case.kind.evaluates and case.folder.endswith("/service"):
        return CaseOutcome(
            case, skipped="asks endpoints on the web that do not exist; SERVICE is tested against our own"
        )
    try:
        if case.kind.evaluates:
            return CaseOutcome(case, _evaluate(case, evaluator))
        return CaseOutcome(case, _parse(case))
    except Exception as error:
        return CaseOutcome(case, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")


def _read_query(case: Case) -> ParsedQuery:
    # Not read_text: it would make one of two kinds of line break, which are different strings in a literal.
    return parse(case.query.read_bytes().decode("utf-8"), base=case.query.resolve().as_uri())


def _parse(case: Case) -> str | None:
    try:
        plan_query(_read_query(case))
    except QueryError as error:
        return None if case.kind is CaseKind.BAD_SYNTAX else f"refused: {error.message}"
    return "accepted, but it is wrong" if case.kind is CaseKind.BAD_SYNTAX else None


def _evaluate(case: Case, evaluator: MakeEvaluator) -> str | None:
    assert case.result is not None
    query = _read_query(case)
    window = FromStream(STREAM, RangeSpec(WIDTH, WIDTH))
    continuous = replace(query, dialect=Dialect.CSPARQL, dataset=(*query.dataset, window))
    plan = _hidden(plan_query(continuous, streams=[STREAM.value]))
    static = _static_graphs(case, query)
    data = [quad.triple for path in case.data for quad in read_quads(path)]
    answer = _last_answer(plan, static, data, evaluator)
    return _difference(case, query, read_expected(case.result), answer)


def _hidden(plan: QueryPlan) -> QueryPlan:
    """The window in the default graph only: C-SPARQL shows it to GRAPH ?g as well, which no W3C test expects."""
    return replace(plan, windows=tuple(replace(source, graph=None) for source in plan.windows))


def _static_graphs(case: Case, query: ParsedQuery) -> Store:
    named = {path.resolve().as_uri(): path for path in case.graphs}
    for clause in query.dataset:
        if isinstance(clause, FromGraph):
            named[clause.graph.value] = file_of(clause.graph.value)
    static = Store()
    for iri, path in named.items():
        graph = NamedNode(iri)
        static.add_graph(graph)
        quads = (Quad(q.subject, q.predicate, q.object, graph) for q in read_quads(path, base_iri=iri))
        static.extend(map(to_stored_quad, quads))
    return static


def _last_answer(plan: QueryPlan, static: Store, data: list[Triple], evaluator: MakeEvaluator) -> Answer:
    """The answer at the end of the window, the data having come in chunks."""
    program = Program([RegisteredQuery(plan, resolve_settings(plan, Options(t0=0)))], static, 0, evaluator)
    size = max(1, -(-len(data) // _CHUNKS))
    chunks = [tuple(data[start : start + size]) for start in range(0, len(data), size)]
    answers: list[Answer] = []
    for number, chunk in enumerate(chunks, 1):
        element = Element(number * SECOND, chunk, position=(number,))
        answers += program.advance({STREAM.value: [element]}).answers
    # An element without triples only says how late it is, so that the window closes even when nothing came.
    end = Element(WIDTH, (), position=(len(chunks) + 1,))
    answers += program.advance({STREAM.value: [end]}, ended=[STREAM.value]).answers
    (answer,) = answers
    return answer


def _difference(case: Case, query: ParsedQuery, expected: Expected, answer: Answer) -> str | None:
    """What is wrong with an answer, in a line."""
    if isinstance(expected, bool):
        return None if answer.boolean is expected else f"expected {expected}, got {answer.boolean}"
    if not isinstance(expected, Solutions):
        if same_graph(expected, answer.triples):
            return None
        return f"expected a graph of {len(expected)} triples, got another one of {len(answer.triples)}"
    if answer.kind is not QueryKind.SELECT:
        return f"expected solutions, got the answer of {answer.kind.name}"
    assert case.result is not None
    found = through_writer(Solutions(answer.variables, answer.rows), case.result.suffix)
    ordered = expected.in_order or bool(query.form.modifiers.order_by)
    if same_solutions(expected, found, ordered=ordered, lax=case.lax):
        return None
    return f"expected {_format_solutions(expected)}, got {_format_solutions(found)}"


def _format_solutions(table: Solutions) -> str:
    rows = "; ".join(" ".join("-" if term is None else str(term) for term in row) for row in table.rows[:3])
    more = f" … ({len(table.rows)} rows)" if len(table.rows) > 3 else ""
    return f"[{' '.join(table.variables)}] {rows or 'no rows'}{more}"
