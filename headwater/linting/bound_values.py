"""What is known of the values of variables, and the expressions over them that are meant to have a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from headwater.algebra.active_graphs import default_active_graph
from headwater.algebra.nodes import Bgp, Values
from headwater.algebra.scope import visible_variables
from headwater.language.expressions import Expression, FunctionCall, Operation
from headwater.linting.lint_subject import LintSubject
from headwater.linting.pattern_sources import PatternSources
from headwater.optimizer.dependencies import patterns_with_graphs
from headwater.terms.model import NamedNode, Term, Variable

BoundValues = dict[Variable, tuple[tuple[str, ...], frozenset[Term]] | None]


def find_bound_values(subject: LintSubject) -> BoundValues:
    """For each variable the predicates that bind it and the values they have; None where others may be there."""
    found: BoundValues = {}
    for node, graph in patterns_with_graphs(subject.plan, subject.plan.root, default_active_graph(subject.plan)):
        sources = PatternSources(subject, graph)
        for triple in node.triples if isinstance(node, Bgp) else ():
            for term, are_objects in ((triple.subject, False), (triple.object, True)):
                if not isinstance(term, Variable):
                    continue
                known = found.get(term, ((), frozenset()))
                values = None
                if isinstance(triple.predicate, NamedNode):
                    values = sources.terms_of(triple.predicate, are_objects=are_objects)
                if values is None or known is None:
                    found[term] = None
                else:
                    text = subject.notation.predicate(triple.predicate)
                    found[term] = tuple(dict.fromkeys((*known[0], text))), known[1] | values
    for node in subject.nodes:
        if not isinstance(node, Bgp | Values):
            below = frozenset[Variable]().union(*map(visible_variables, node.children))
            found |= dict.fromkeys(variable for variable in visible_variables(node) if variable not in below)
    return found


def judged_parts(expression: Expression) -> Iterator[Expression]:
    """An expression with its parts, but for those in which an error or false is what is wanted."""
    yield expression
    match expression:
        case Operation("!") | FunctionCall("COALESCE"):
            return
    for part in _parts_of(expression):
        yield from judged_parts(part)


def _parts_of(expression: Expression) -> Iterator[Expression]:
    for field in fields(expression):
        value = getattr(expression, field.name)
        yield from (one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, Expression))
