"""Computations and comparisons that no value in the data fits: they are errors or false, and rows go in silence.

    AVG(?v), ?v > 20         and the values of ?v are texts, as by a template that says no type: "21"
    FILTER (?v > "20")       and they are numbers
    FILTER (?s = :s7)        and :s7 is not among them
    VALUES ?s { :s7 }
    REGEX(?s, "7")           and they are IRIs

A variable is judged only where samples of streams and static data have all its values: subjects or objects of
predicates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headwater.algebra.nodes import Values
from headwater.algebra.scope import expressions_of
from headwater.explain.notation import Notation
from headwater.language.expressions import (
    Aggregate,
    Constant,
    Expression,
    FunctionCall,
    Operation,
    VariableReference,
)
from headwater.linting.bound_values import find_bound_values, judged_parts
from headwater.linting.lint_subject import LintSubject
from headwater.linting.value_kinds import (
    COMPARING,
    COMPUTING,
    IRI,
    NEEDED_KINDS,
    NUMBER,
    TAGGED_TEXT,
    TEXT,
    can_be_argument,
    kind_of,
)
from headwater.terms.model import Literal, NamedNode, Term, Variable

_NUMBERS = "numbers on both sides"
_DIGITS = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class _Use:
    """An expression for which a variable has to be of a kind, or one of some constants."""

    variable: Variable
    text: str
    kind: str
    constants: tuple[Term, ...] = ()
    sorts: bool = False
    """Whether any kind will do, but texts of digits, of which "9" is larger than "10"."""
    is_argument: bool = False
    """Whether a function needs it, which can do with kinds that are akin."""

    def fits(self, value: Term) -> bool:
        """Whether the expression may have a value, or be true, for a value of the variable."""
        if self.sorts:
            return not _is_text_of_digits(value)
        if self.kind == _NUMBERS:
            return kind_of(value) == TEXT and not _is_text_of_digits(value)
        if self.is_argument:
            return can_be_argument(value, self.kind)
        if self.kind == IRI:
            return value in self.constants
        if self.kind == TAGGED_TEXT:
            tags = [one.language for one in self.constants if isinstance(one, Literal)]
            return isinstance(value, Literal) and value.language in tags
        return kind_of(value) == self.kind


def find_unfitting_values(subject: LintSubject) -> Iterator[str]:
    """Uses of variables of which samples have values, and none that fits."""
    if not subject.observed.samples:
        return
    bound = find_bound_values(subject)
    are_whole = all(sample.is_whole for sample in subject.observed.samples.values())
    told: set[Variable] = set()
    for use in _uses(subject):
        predicates, values = bound.get(use.variable) or ((), frozenset())
        is_unknown = not values or (use.kind == IRI and not are_whole)
        if is_unknown or use.variable in told or any(map(use.fits, values)):
            continue
        told.add(use.variable)
        yield _sentence(use, " and ".join(predicates), min(values, key=str), subject.notation)


def _sentence(use: _Use, predicates: str, example: Term, notation: Notation) -> str:
    bound = f"?{use.variable.value}, which {predicates} binds,"
    there = f"there is {notation.term(example)}, {kind_of(example)}{_remedy(use, example)}"
    if use.kind == _NUMBERS or use.sorts:
        return f'{use.text} compares texts, of which "9" is more than "10", and not numbers: of {bound} {there}'
    wanted = " or ".join(map(notation.term, use.constants)) if use.kind in (IRI, TAGGED_TEXT) else use.kind
    return f"{use.text} needs {wanted}, but no value of {bound} is that: {there}"


def _is_text_of_digits(term: Term) -> bool:
    return isinstance(term, Literal) and kind_of(term) == TEXT and _DIGITS.fullmatch(term.value.strip()) is not None


def _remedy(use: _Use, example: Term) -> str:
    if use.kind in (NUMBER, _NUMBERS) and kind_of(example) == TEXT:
        name = use.variable.value
        return (
            f': say the type in the template, as in "{{column}}"^^xsd:decimal, or cast it, as in xsd:decimal(?{name})'
        )
    if use.kind in (TEXT, _NUMBERS) and kind_of(example) == NUMBER:
        return ": write numbers without quotes"
    if use.is_argument and use.kind == TEXT:
        return f": write STR(?{use.variable.value})"
    if use.kind in (TEXT, TAGGED_TEXT) and isinstance(example, Literal) and (example.language or use.constants):
        tag = f"@{example.language}" if example.language else ""
        wanted = f'"…"{tag}' if tag else "the text without a language"
        return f": compare with {wanted}, or the text alone, as in STR(?{use.variable.value})"
    if use.kind == TEXT and kind_of(example) == IRI:
        return ": write IRIs in angle brackets, or with a prefix"
    return ""


def _uses(subject: LintSubject) -> Iterator[_Use]:
    for node in subject.nodes:
        if isinstance(node, Values):
            for place, variable in enumerate(node.variables):
                constants = tuple(one for row in node.rows if isinstance(one := row[place], NamedNode))
                if constants and len(constants) == len(node.rows):
                    yield _Use(variable, f"VALUES ?{variable.value}", IRI, constants)
        for expression in expressions_of(node):
            yield from _uses_in(expression, subject)


def _uses_in(expression: Expression, subject: LintSubject) -> Iterator[_Use]:
    """The uses in an expression, but where an error or false is what is wanted."""
    for part in judged_parts(expression):
        yield from _uses_at(part, subject.notation.expression(part))


def _uses_at(expression: Expression, text: str) -> Iterator[_Use]:
    match expression:
        case Aggregate("SUM" | "AVG", VariableReference(variable)):
            yield _Use(variable, text, NUMBER)
        case Aggregate("MIN" | "MAX", VariableReference(variable)):
            yield _Use(variable, text, NUMBER, sorts=True)
        case Operation(operator, operands) if operator in COMPUTING:
            for one in operands:
                if isinstance(one, VariableReference):
                    yield _Use(one.variable, text, NUMBER)
        case Operation(operator, (VariableReference(variable), Constant(value))) if operator in COMPARING:
            yield _compared(variable, text, operator, value)
        case Operation(operator, (Constant(value), VariableReference(variable))) if operator in COMPARING:
            yield _compared(variable, text, operator, value)
        case FunctionCall(str() as name, arguments) if name in NEEDED_KINDS:
            for one in arguments if name == "CONCAT" else arguments[:1]:
                if isinstance(one, VariableReference):
                    yield _Use(one.variable, text, NEEDED_KINDS[name], is_argument=True)


def _compared(variable: Variable, text: str, operator: str, value: Term) -> _Use:
    # Texts of digits are compared as texts: where the values are such texts, too, both should be numbers.
    if operator != "=" and _is_text_of_digits(value):
        return _Use(variable, text, _NUMBERS, (value,))
    return _Use(variable, text, kind_of(value), (value,))
