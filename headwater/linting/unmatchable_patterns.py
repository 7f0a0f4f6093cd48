"""Patterns that nothing can match, for a warning: the graph that they read can have no triple.

    WHERE { GRAPH <gates> {…} ?street :capacity ?c }    nothing in the default graph: all data has a graph's name
    WHERE { GRAPH <gaets> {…} }                         no stream of the query and no loaded graph is called that

Such a query is right and answers nothing, or less than its author thinks. Data may be loaded later, so it is no error.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.algebra.active_graphs import ActiveGraph, StaticGraph, default_active_graph
from headwater.algebra.nodes import Bgp, Node, PathMatch
from headwater.algebra.plan import QueryPlan
from headwater.algebra.unrolled_paths import can_be_empty
from headwater.explain.notation import Notation
from headwater.linting.lint_subject import LintSubject
from headwater.linting.observed_data import LoadedGraphs
from headwater.optimizer.dependencies import patterns_with_graphs
from headwater.terms.model import NamedNode


def find_unmatchable_patterns(subject: LintSubject) -> Iterator[str]:
    """Patterns whose graph can have no triple; without loaded data, those where that holds whatever is loaded."""
    plan, loaded, notation = subject.plan, subject.observed.loaded, subject.notation
    found: dict[str, list[str]] = {}
    for node, graph in patterns_with_graphs(plan, plan.root, default_active_graph(plan)):
        reason = None if graph.windows else _reason(plan, graph, loaded, notation)
        texts = list(_pattern_texts(node, notation))
        if reason is not None and texts:
            found.setdefault(reason, []).extend(texts)
    for reason, texts in found.items():
        yield f"nothing can match {' . '.join(dict.fromkeys(texts))}: {reason}"


def _pattern_texts(node: Node, notation: Notation) -> Iterator[str]:
    match node:
        case Bgp(triples):
            yield from map(notation.triple, triples)
        case PathMatch(subject, path, object_) if not can_be_empty(path):
            yield f"{notation.term(subject)} {notation.predicate(path)} {notation.term(object_)}"


def _reason(plan: QueryPlan, graph: ActiveGraph, loaded: LoadedGraphs | None, notation: Notation) -> str | None:
    """Why a static graph has no triple; None where it may have some."""
    reasons = [_static_reason(plan, one, loaded, notation) for one in graph.static_graphs]
    if any(reason is None for reason in reasons):
        return None
    return next((reason for reason in reasons if reason is not None), "there is no graph to range over")


def _static_reason(plan: QueryPlan, graph: StaticGraph, loaded: LoadedGraphs | None, notation: Notation) -> str | None:
    match graph:
        case StaticGraph("GRAPH", NamedNode() as name):
            if plan.named_graphs is not None:
                return (
                    f"{notation.iri(name)} is no stream of the query, and its FROM clauses leave that graph out; "
                    "add FROM NAMED"
                )
            if loaded is not None and name not in loaded.named:
                return f"{notation.iri(name)} is neither a stream of the query nor a loaded graph"
        case StaticGraph("default graph"):
            if loaded is not None and not loaded.has_default:
                merged = "no FROM STREAM puts a window there" if plan.windows else "there is no stream"
                return f"the default graph is empty, because {merged} and all loaded data has the name of a graph"
        case StaticGraph("named graphs"):
            if loaded is not None and not loaded.named:
                return "no named graph is loaded"
    return None
