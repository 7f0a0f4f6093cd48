"""Predicates, classes and other constants of a query that occur in none of the sources that a pattern reads.

    ?gate t:registres ?car          no triple of the stream's sample and of the static data has this predicate

A pattern is judged only where all its sources are known: samples of its streams, and the static data. Patterns whose
absence is asked for (NOT EXISTS, MINUS) are not judged, and neither is what an endpoint answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from difflib import get_close_matches

from headwater.algebra.active_graphs import default_active_graph
from headwater.algebra.nodes import Bgp, ExistsPlan, Minus, Node, PathMatch
from headwater.algebra.scope import map_expression, map_expressions, map_plan
from headwater.language.expressions import Constant, Expression
from headwater.language.patterns import NegatedSet, Path, TriplePattern
from headwater.linting.lint_subject import LintSubject
from headwater.linting.observed_data import StreamSample
from headwater.linting.pattern_sources import PatternSources, Place
from headwater.optimizer.dependencies import patterns_with_graphs
from headwater.terms.model import RDF, XSD, BlankNode, Literal, NamedNode, Term, Variable

_TYPE = NamedNode(RDF + "type")
_TRUE = Constant(Literal("true", datatype=NamedNode(XSD + "boolean")))


def find_unseen_terms(subject: LintSubject) -> Iterator[str]:
    """Constants of patterns that no source of the pattern has."""
    told: set[str] = set()
    root = map_plan(subject.plan.root, _without_absence)
    for node, graph in patterns_with_graphs(subject.plan, root, default_active_graph(subject.plan)):
        sources = PatternSources(subject, graph)
        if not sources.are_known:
            continue
        for place, text in _places_of(node, subject):
            if not sources.have(place):
                sentence = f"{text} {sources.absence}; {sources.place_elsewhere(place) or _suggestion(sources, place)}"
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


def _places_of(node: Node, subject: LintSubject) -> Iterator[tuple[Place, str]]:
    """The constants of a pattern, each as what a triple must have, and what it is called; the predicate comes first."""
    notation = subject.notation
    if isinstance(node, PathMatch):
        for predicate in dict.fromkeys(_named_predicates(node.path)):
            yield (None, predicate, None), f"the predicate {notation.iri(predicate)}"
        return
    for triple in node.triples if isinstance(node, Bgp) else ():
        yield from _places_of_triple(triple, subject)


def _places_of_triple(triple: TriplePattern, subject: LintSubject) -> Iterator[tuple[Place, str]]:
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


def _named_predicates(path: object) -> Iterator[NamedNode]:
    """The predicates of a path, but those that it must not have."""
    match path:
        case NamedNode():
            yield path
        case Path() if not isinstance(path, NegatedSet):
            for part in fields(path):
                yield from _named_predicates(getattr(path, part.name))


def _suggestion(sources: PatternSources, place: Place) -> str:
    """The term of the samples that is most like the one that is missing, in words; empty where none is."""
    wanted = next(term for term in (place[2], place[0], place[1]) if term is not None)
    if not isinstance(wanted, NamedNode):
        return _literal_suggestion(wanted, place, sources.samples)
    known: set[str] = set()
    for sample in sources.samples.values():
        terms = {} if sample is None else sample.predicates
        if place == (None, wanted, None):
            known.update(term.value for term in terms if isinstance(term, NamedNode))
        elif place[1] is not None and place[1] in terms:
            there = terms[place[1]].objects if place[2] is not None else terms[place[1]].subjects
            known.update(term.value for term in there if isinstance(term, NamedNode))
    near = _most_alike(wanted.value, known)
    return f"did you mean <{near}>?" if near else "check how it is written, and its prefix"


def _most_alike(wanted: str, known: Iterable[str]) -> str | None:
    """The IRI that is most like another one: the names behind the last / or # are compared first."""
    namespace, name = _split(wanted)
    names = {_split(one)[1]: one for one in known if _split(one)[0] == namespace}
    if near := get_close_matches(name, names, 1):
        return names[near[0]]
    return next(iter(get_close_matches(wanted, [one for one in known if _split(one)[0] != namespace], 1, 0.8)), None)


def _split(iri: str) -> tuple[str, str]:
    """The namespace of an IRI, and the name in it."""
    place = max(iri.rfind("/"), iri.rfind("#")) + 1
    return iri[:place], iri[place:]


def _literal_suggestion(wanted: Term, place: Place, samples: dict[NamedNode, StreamSample | None]) -> str:
    """A literal of the samples with the same text and another type or language."""
    for sample in samples.values():
        terms = None if sample is None or place[1] is None else sample.predicates.get(place[1])
        for literal in () if terms is None else terms.objects:
            if isinstance(literal, Literal) and isinstance(wanted, Literal) and literal.value == wanted.value:
                return f"there is {literal}, which has another type or language"
    return "patterns match the very same term: compare values with FILTER"
