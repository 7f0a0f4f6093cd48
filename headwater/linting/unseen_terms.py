"""Predicates, classes and other constants of a query that occur in none of the sources that a pattern reads.

    ?gate t:registres ?car          no triple of the stream's sample and of the static data has this predicate

A pattern is judged only where all its sources are known: samples of its streams, and the static data. Patterns whose
absence is asked for (NOT EXISTS, MINUS) are not judged, and neither is what an endpoint answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from pyoxigraph import DefaultGraph

from headwater.algebra.active_graphs import ActiveGraph, default_active_graph
from headwater.algebra.nodes import Bgp, ExistsPlan, Minus, Node, PathMatch
from headwater.algebra.scope import map_expression, map_expressions, map_plan
from headwater.language.expressions import Constant, Expression
from headwater.language.patterns import Inverse, Link, OneOrMore, Path, Sequence, TriplePattern
from headwater.linting.lint_subject import LintSubject
from headwater.linting.observed_data import StreamSample
from headwater.optimizer.dependencies import patterns_with_graphs
from headwater.terms.model import RDF, XSD, BlankNode, Literal, NamedNode, Term, Variable
from headwater.terms.names import iri_to_name

_TYPE = NamedNode(RDF + "type")
_TRUE = Constant(Literal("true", datatype=NamedNode(XSD + "boolean")))
_Place = tuple[Term | None, Term | None, Term | None]


def find_unseen_terms(subject: LintSubject) -> Iterator[str]:
    """Constants of patterns that no source of the pattern has."""
    told: set[str] = set()
    root = map_plan(subject.plan.root, _without_absence)
    for node, graph in patterns_with_graphs(subject.plan, root, default_active_graph(subject.plan)):
        sources = _Sources(subject, graph)
        if not sources.are_known:
            continue
        for place, text in _places_of(node, subject):
            if not sources.have(place):
                sentence = f"{text} occurs {sources.description}{sources.suggestion(place)}"
                if sentence not in told:
                    told.add(sentence)
                    yield sentence
                break


def _without_absence(node: Node) -> Node:
    """The node without patterns whose absence is asked for."""

    def drop(expression: Expression) -> Expression | None:
        return _TRUE if isinstance(expression, ExistsPlan) and expression.negated else None

    if isinstance(node, Minus):
        return node.left
    return map_expressions(node, lambda expression: map_expression(expression, drop))


def _places_of(node: Node, subject: LintSubject) -> Iterator[tuple[_Place, str]]:
    """The constants of a pattern, each as what a triple must have, and what it is called; the predicate comes first."""
    notation = subject.notation
    if isinstance(node, PathMatch):
        for predicate in dict.fromkeys(_required_predicates(node.path)):
            yield (None, predicate, None), f"the predicate {notation.iri(predicate)}"
        return
    for triple in node.triples if isinstance(node, Bgp) else ():
        yield from _places_of_triple(triple, subject)


def _places_of_triple(triple: TriplePattern, subject: LintSubject) -> Iterator[tuple[_Place, str]]:
    notation = subject.notation
    predicate = triple.predicate if isinstance(triple.predicate, NamedNode) else None
    if predicate is not None:
        yield (None, predicate, None), f"the predicate {notation.iri(predicate)}"
    with_predicate = "" if predicate is None else f" of {notation.iri(predicate)}"
    if not isinstance(triple.subject, Variable | BlankNode):
        yield (triple.subject, predicate, None), f"{notation.term(triple.subject)} as a subject{with_predicate}"
    if not isinstance(triple.object, Variable | BlankNode):
        text = notation.term(triple.object)
        called = f"the class {text}" if predicate == _TYPE else f"{text} as a value{with_predicate}"
        yield (None, predicate, triple.object), called


def _required_predicates(path: Path | NamedNode | Variable) -> Iterator[NamedNode]:
    """The predicates without which a path matches nothing."""
    match path:
        case NamedNode():
            yield path
        case Link(predicate):
            yield predicate
        case Inverse(inner) | OneOrMore(inner):
            yield from _required_predicates(inner)
        case Sequence(left, right):
            yield from _required_predicates(left)
            yield from _required_predicates(right)


class _Sources:
    """The windows and static graphs that a pattern reads."""

    def __init__(self, subject: LintSubject, graph: ActiveGraph) -> None:
        self._observed = subject.observed
        streams = dict.fromkeys(subject.plan.windows[number].stream for number in graph.windows)
        self._samples: dict[NamedNode, StreamSample | None] = {
            stream: subject.observed.samples.get(stream) for stream in streams
        }
        self._graphs: list[NamedNode | DefaultGraph | None] = []
        self._is_remote = graph.is_remote
        loaded = subject.observed.loaded
        self._has_loaded = loaded is None
        for one in graph.static_graphs:
            match one.name:
                case NamedNode() as name:
                    self._graphs.append(name)
                    self._has_loaded |= loaded is not None and name in loaded.named
                case None if one.clause == "default graph":
                    self._graphs.append(DefaultGraph())
                    self._has_loaded |= loaded is not None and loaded.has_default
                case _:
                    # Any named graph.
                    self._graphs.append(None)
                    self._has_loaded |= loaded is not None and bool(loaded.named)

    @property
    def are_known(self) -> bool:
        """Whether it is known what these sources have, and they have something (else see `unmatchable_patterns`)."""
        if not self._samples and not self._has_loaded:
            return False
        samples = [sample for sample in self._samples.values() if sample is not None and sample.elements]
        is_data_known = not self._graphs or self._observed.has_statement is not None
        return not self._is_remote and len(samples) == len(self._samples) and is_data_known

    def have(self, place: _Place) -> bool:
        """Whether some triple of a source has terms at their places."""
        if any(sample is not None and sample.has(*place) for sample in self._samples.values()):
            return True
        has_statement = self._observed.has_statement
        return has_statement is not None and any(has_statement(*place, graph) for graph in self._graphs)

    @property
    def description(self) -> str:
        """Where the term was looked for, in words."""
        texts = [_sample_text(stream, sample) for stream, sample in self._samples.items() if sample is not None]
        if self._graphs:
            texts.append("in the static data (--data)")
        return "neither " + " nor ".join(texts) if len(texts) > 1 else f"not {texts[0]}"

    def suggestion(self, place: _Place) -> str:
        """The term of the samples that is most like the one that is missing, in words; empty where none is."""
        wanted = next(term for term in (place[2], place[0], place[1]) if term is not None)
        if not isinstance(wanted, NamedNode):
            return _literal_suggestion(wanted, place, self._samples)
        known: set[str] = set()
        for sample in self._samples.values():
            terms = {} if sample is None else sample.predicates
            if place == (None, wanted, None):
                known.update(term.value for term in terms if isinstance(term, NamedNode))
            elif place[1] is not None and place[1] in terms:
                there = terms[place[1]].objects if place[2] is not None else terms[place[1]].subjects
                known.update(term.value for term in there if isinstance(term, NamedNode))
        near = get_close_matches(wanted.value, known, 1, 0.8)
        return f"; did you mean <{near[0]}>?" if near else "; check how it is written, and its prefix"


def _literal_suggestion(wanted: Term, place: _Place, samples: dict[NamedNode, StreamSample | None]) -> str:
    """A literal of the samples with the same text and another type or language."""
    for sample in samples.values():
        terms = None if sample is None or place[1] is None else sample.predicates.get(place[1])
        for literal in () if terms is None else terms.objects:
            if isinstance(literal, Literal) and isinstance(wanted, Literal) and literal.value == wanted.value:
                return f"; there is {literal}, which has another type or language"
    return "; patterns match the very same term: compare values with FILTER"


def _sample_text(stream: NamedNode, sample: StreamSample) -> str:
    name = iri_to_name(stream.value)
    if sample.is_whole:
        return f"in the stream {name}"
    return f"in the first {sample.elements:,} elements of the stream {name}"
