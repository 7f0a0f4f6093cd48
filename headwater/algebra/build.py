"""Builds the plan of a parsed query: dataset, windows, algebra and query form."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.algebra.named_graphs import reads_graph_times, reads_window_graphs
from headwater.algebra.nodes import Distinct, Node, Project, Unit, Values
from headwater.algebra.plan import QueryKind, QueryPlan, WindowSource
from headwater.algebra.plan_depth import check_depth, too_deep_query
from headwater.algebra.scope import visible_variables
from headwater.algebra.translate import Translator
from headwater.language.patterns import GroupPattern
from headwater.language.query import AskQuery, ConstructQuery, DescribeQuery, ParsedQuery, SelectQuery
from headwater.language.stream_clauses import FromGraph, FromStream, FromWindow
from headwater.terms.model import NamedNode, Variable


def plan_query(query: ParsedQuery, *, name: str | None = None, streams: Iterable[str] = ()) -> QueryPlan:
    """The plan of a query. `streams` are the streams that the engine knows; `STREAM ?s` ranges over them."""
    prefix = "hw_"
    while prefix in query.text:
        prefix += "_"
    translator = Translator(query.text, prefix, tuple(NamedNode(stream) for stream in streams))
    notes: list[str] = []
    try:
        _declare_windows(query, translator, notes)
        kind, root, described = _translate_form(query, translator)
    except RecursionError:
        raise too_deep_query(query.text) from None
    check_depth(root, query.text)
    graphs = [clause for clause in query.dataset if isinstance(clause, FromGraph)]
    default = tuple(clause.graph for clause in graphs if not clause.named)
    named = tuple(clause.graph for clause in graphs if clause.named)
    registered = query.registration.name if query.registration else None
    return QueryPlan(
        name=name or registered or "query",
        kind=kind,
        root=root,
        variables=visible_variables(root),
        windows=tuple(translator.windows),
        dialect=query.dialect,
        template=query.form.template if isinstance(query.form, ConstructQuery) else (),
        described=described,
        default_graphs=default or None,
        # A query with FROM and no FROM NAMED has no named graphs (SPARQL 1.1, section 13.2).
        named_graphs=named or (() if default else None),
        registration=query.registration,
        stream_operator=query.stream_operator,
        prefixes=query.prefixes,
        base=query.base,
        text=query.text,
        notes=tuple(notes),
        reads_window_graphs=reads_window_graphs(root),
        reads_graph_times=reads_graph_times(root),
    )


def _declare_windows(query: ParsedQuery, translator: Translator, notes: list[str]) -> None:
    """Add the windows of the dataset clauses to the translator; what was guessed goes into `notes`."""
    for clause in query.dataset:
        if isinstance(clause, FromStream):
            merged = not clause.named
            if clause.named and not _mentions_graph(query):
                # SPARQLStream texts (SRBench) write NAMED and match the stream without GRAPH.
                merged = True
                notes.append(
                    f"no GRAPH reads the named stream <{clause.stream.value}>: it is merged into the default graph"
                )
            translator.add_window(
                WindowSource(clause.stream, clause.window, clause.stream.value, clause.stream, merged)
            )
        elif isinstance(clause, FromWindow):
            source = WindowSource(clause.stream, clause.window, clause.name.value)
            translator.named[clause.name] = translator.add_window(source)


def _mentions_graph(query: ParsedQuery) -> bool:
    return "GraphPattern(" in repr(query.form)


def _translate_form(
    query: ParsedQuery, translator: Translator
) -> tuple[QueryKind, Node, tuple[NamedNode | Variable, ...]]:
    """The kind of the query, its algebra (section 18.2), and the terms that DESCRIBE names."""
    match query.form:
        case SelectQuery() as select:
            return QueryKind.SELECT, translator.translate_select(select, query.aggregates), ()
        case ConstructQuery(_, where, modifiers, values):
            return QueryKind.CONSTRUCT, translator.translate_solutions(where, modifiers, values, query.aggregates), ()
        case AskQuery(where, modifiers, values):
            return QueryKind.ASK, translator.translate_solutions(where, modifiers, values, query.aggregates), ()
        case DescribeQuery(terms, where, modifiers, values):
            root = translator.translate_solutions(where or GroupPattern(()), modifiers, values, query.aggregates)
            described = tuple(terms) if terms is not None else visible_variables(root)
            variables = tuple(dict.fromkeys(term for term in described if isinstance(term, Variable)))
            solutions: Node = root if where is not None else Values((), ((),))
            return QueryKind.DESCRIBE, Distinct(Project(solutions or Unit(), variables)), described
    raise TypeError(f"no plan for {type(query.form).__name__}")
