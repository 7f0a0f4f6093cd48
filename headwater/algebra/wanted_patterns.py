"""Which triples of its streams a plan reads, and which of their terms it needs as text (CS8, CQ4).

A basic graph pattern reads only triples that match one of its patterns, so a source may leave out the others. A term
whose id is only compared needs no text; one that can reach an answer or an expression does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from headwater.algebra.named_graphs import reads_empty_matches
from headwater.algebra.nodes import Bgp, Graph, Group, Node, PathMatch, Service, Window
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import expression_variables, expressions_of, nodes_of
from headwater.language.patterns import Link, NegatedSet, Path, ZeroOrMore, ZeroOrOne
from headwater.terms.model import Literal, NamedNode, Term, Variable
from headwater.terms.timed_graphs import GENERATED_AT_TIME


@dataclass(frozen=True, slots=True)
class WantedPattern:
    """A triple pattern (None matches any term); `texts` are the places (of `spo`) whose text is needed.

    With a `g` in `texts`, the names of the graphs of elements are needed, too.
    """

    subject: Term | None
    predicate: Term | None
    object: Term | None
    texts: str = "spo"


def wanted_patterns_of(plan: QueryPlan, *, all_texts: bool = False) -> frozenset[WantedPattern] | None:
    """Patterns that cover every triple that a plan reads; None: it may read any triple."""
    if plan.kind is QueryKind.DESCRIBE or reads_empty_matches(plan.root):
        return None
    has_times = plan.reads_graph_times
    graphs = "g" if has_times or plan.reads_window_graphs else ""
    variables = _variables_with_text(plan)
    patterns: set[WantedPattern] = set()
    for node in nodes_of(plan.root):
        match node:
            case Graph(Variable(), inner) | Window(_, Variable(), inner) if not _has_patterns(inner):
                return None
            case Bgp(triples):
                parts = [(t.subject, t.predicate, t.object) for t in triples]
            case PathMatch(subject, path, object_):
                parts = [(subject, path, object_)]
            case _:
                continue
        for subject, predicate, object_ in parts:
            if isinstance(predicate, Path):
                predicates = _predicates(predicate)
                if predicates is None:
                    return None
                patterns.update(WantedPattern(None, one, None) for one in predicates)
            else:
                patterns.add(_pattern((subject, predicate, object_), None if all_texts else variables))
    if has_times:
        # Whether a graph says its time itself decides whether that is added.
        patterns.add(WantedPattern(None, GENERATED_AT_TIME, None))
    return frozenset(replace(one, texts=one.texts + graphs) for one in patterns) if graphs else frozenset(patterns)


def _variables_with_text(plan: QueryPlan) -> frozenset[Variable]:
    """The variables whose terms can reach an answer or an expression.

    They include the keys of groups: where groups of shards are merged, their keys are in the answers of the shards.
    """
    keys = (key for node in nodes_of(plan.root) if isinstance(node, Group) for key, _ in node.keys)
    expressions = (
        expression_variables(expression) for node in nodes_of(plan.root) for expression in expressions_of(node)
    )
    remote = (variable for node in nodes_of(plan.root) if isinstance(node, Service) for variable in _variables(node))
    return frozenset(plan.variables).union(*expressions, remote, keys)


def _variables(node: Node) -> Iterator[Variable]:
    for inner in nodes_of(node):
        if isinstance(inner, Bgp):
            for triple in inner.triples:
                yield from (t for t in (triple.subject, triple.predicate, triple.object) if isinstance(t, Variable))


def _has_patterns(node: Node) -> bool:
    return any(isinstance(inner, PathMatch) or (isinstance(inner, Bgp) and inner.triples) for inner in nodes_of(node))


def _pattern(parts: tuple[object, ...], with_text: frozenset[Variable] | None) -> WantedPattern:
    terms = [part if isinstance(part, NamedNode | Literal) else None for part in parts]
    texts = "".join(
        place
        for place, part in zip("spo", parts, strict=True)
        if with_text is None or not isinstance(part, Variable) or part in with_text
    )
    return WantedPattern(terms[0], terms[1], terms[2], texts)


def _predicates(path: Path) -> frozenset[NamedNode] | None:
    """The predicates of a path; None if it can have length zero or match any predicate."""
    match path:
        case Link(predicate):
            return frozenset({predicate})
        case ZeroOrMore() | ZeroOrOne() | NegatedSet():
            return None
    predicates: frozenset[NamedNode] = frozenset()
    for field in fields(path):
        inner = _predicates(getattr(path, field.name))
        if inner is None:
            return None
        predicates |= inner
    return predicates
