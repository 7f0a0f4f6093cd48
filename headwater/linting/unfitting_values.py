"""Computations and comparisons that no value in the data fits: they are errors or false, and rows go in silence.

    AVG(?v), ?v > 20         and the values of ?v are texts, as by a template that says no type: "21"
    FILTER (?v > "20")       and they are numbers
    FILTER (?s = :s7)        and :s7 is not among them
    VALUES ?s { :s7 }

A variable is judged only where samples of streams have all its values: subjects or objects of predicates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields

from headwater.algebra.active_graphs import default_active_graph
from headwater.algebra.nodes import Bgp, Values
from headwater.algebra.scope import expressions_of, visible_variables
from headwater.explain.notation import Notation
from headwater.language.expressions import (
    Aggregate,
    Constant,
    Expression,
    FunctionCall,
    Operation,
    VariableReference,
)
from headwater.linting.ill_typed_literals import NUMERIC_TYPES
from headwater.linting.lint_subject import LintSubject
from headwater.linting.pattern_sources import PatternSources
from headwater.optimizer.dependencies import patterns_with_graphs
from headwater.terms.model import XSD, Literal, NamedNode, Term, Variable

_NUMBER, _TEXT, _IRI = "a number", "a text", "an IRI"
_NUMBERS = "numbers on both sides"
_DIGITS = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_COMPUTING = frozenset({"+", "-", "*", "/", "unary -", "unary +"})
_COMPARING = frozenset({"=", "<", ">", "<=", ">="})


@dataclass(frozen=True)
class _Use:
    """An expression for which a variable has to be of a kind, or one of some constants."""

    variable: Variable
    text: str
    kind: str
    constants: tuple[Term, ...] = ()
    sorts: bool = False
    """Whether any kind will do, but texts of digits, of which "9" is larger than "10"."""

    def fits(self, value: Term) -> bool:
        """Whether the expression may have a value, or be true, for a value of the variable."""
        if self.sorts:
            return not _is_text_of_digits(value)
        if self.kind == _NUMBERS:
            return _kind_of(value) == _TEXT and not _is_text_of_digits(value)
        if self.kind == _IRI:
            return value in self.constants
        return _kind_of(value) == self.kind


def find_unfitting_values(subject: LintSubject) -> Iterator[str]:
    """Uses of variables of which samples have values, and none that fits."""
    if not subject.observed.samples:
        return
    are_whole = all(sample.is_whole for sample in subject.observed.samples.values())
    bound = _bound_values(subject)
    told: set[Variable] = set()
    for use in _uses(subject):
        predicates, values = bound.get(use.variable) or ((), frozenset())
        is_unknown = not values or (use.kind == _IRI and not are_whole)
        if is_unknown or use.variable in told or any(map(use.fits, values)):
            continue
        told.add(use.variable)
        yield _sentence(use, " and ".join(predicates), min(values, key=str), subject.notation)


def _sentence(use: _Use, predicates: str, example: Term, notation: Notation) -> str:
    bound = f"?{use.variable.value}, which {predicates} binds,"
    there = f"there is {notation.term(example)}, {_kind_of(example)}{_remedy(use, example)}"
    if use.kind == _NUMBERS or use.sorts:
        return f'{use.text} compares texts, of which "9" is more than "10", and not numbers: of {bound} {there}'
    wanted = " or ".join(map(notation.term, use.constants)) if use.kind == _IRI else use.kind
    return f"{use.text} needs {wanted}, but no value of {bound} is that: {there}"


def _is_text_of_digits(term: Term) -> bool:
    return isinstance(term, Literal) and _kind_of(term) == _TEXT and _DIGITS.fullmatch(term.value.strip()) is not None


def _kind_of(term: Term) -> str:
    """What a term is to those who compute and compare: only terms of one kind can be equal, or less."""
    if not isinstance(term, Literal):
        return _IRI if isinstance(term, NamedNode) else "a node without a name"
    if term.language:
        return "a text with a language"
    datatype = term.datatype.value
    if datatype in NUMERIC_TYPES:
        return _NUMBER
    return _TEXT if datatype == XSD + "string" else f"a value of {datatype.rpartition('#')[2]}"


def _remedy(use: _Use, example: Term) -> str:
    if use.kind in (_NUMBER, _NUMBERS) and _kind_of(example) == _TEXT:
        name = use.variable.value
        return (
            f': say the type in the template, as in "{{column}}"^^xsd:decimal, or cast it, as in xsd:decimal(?{name})'
        )
    if use.kind in (_TEXT, _NUMBERS) and _kind_of(example) == _NUMBER:
        return ": write numbers without quotes"
    if use.kind == _TEXT and _kind_of(example) == _IRI:
        return ": write IRIs in angle brackets, or with a prefix"
    return ""


def _bound_values(subject: LintSubject) -> dict[Variable, tuple[tuple[str, ...], frozenset[Term]] | None]:
    """For each variable the predicates that bind it and the values they have; None where others may be there."""
    found: dict[Variable, tuple[tuple[str, ...], frozenset[Term]] | None] = {}
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


def _uses(subject: LintSubject) -> Iterator[_Use]:
    for node in subject.nodes:
        if isinstance(node, Values):
            for place, variable in enumerate(node.variables):
                constants = tuple(one for row in node.rows if isinstance(one := row[place], NamedNode))
                if constants and len(constants) == len(node.rows):
                    yield _Use(variable, f"VALUES ?{variable.value}", _IRI, constants)
        for expression in expressions_of(node):
            yield from _uses_in(expression, subject)


def _uses_in(expression: Expression, subject: LintSubject) -> Iterator[_Use]:
    """The uses in an expression, but where an error or false is what is wanted."""
    text = subject.notation.expression(expression)
    match expression:
        case Aggregate("SUM" | "AVG", VariableReference(variable)):
            yield _Use(variable, text, _NUMBER)
        case Aggregate("MIN" | "MAX", VariableReference(variable)):
            yield _Use(variable, text, _NUMBER, sorts=True)
        case Operation(operator, operands) if operator in _COMPUTING:
            for one in operands:
                if isinstance(one, VariableReference):
                    yield _Use(one.variable, text, _NUMBER)
        case Operation(operator, (VariableReference(variable), Constant(value))) if operator in _COMPARING:
            yield _compared(variable, text, operator, value)
        case Operation(operator, (Constant(value), VariableReference(variable))) if operator in _COMPARING:
            yield _compared(variable, text, operator, value)
        case Operation("!") | FunctionCall("COALESCE"):
            return
    for part in _parts_of(expression):
        yield from _uses_in(part, subject)


def _compared(variable: Variable, text: str, operator: str, value: Term) -> _Use:
    # Texts of digits are compared as texts: where the values are such texts, too, both should be numbers.
    if operator != "=" and _is_text_of_digits(value):
        return _Use(variable, text, _NUMBERS, (value,))
    return _Use(variable, text, _kind_of(value), (value,))


def _parts_of(expression: Expression) -> Iterator[Expression]:
    for field in fields(expression):
        value = getattr(expression, field.name)
        yield from (one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, Expression))
