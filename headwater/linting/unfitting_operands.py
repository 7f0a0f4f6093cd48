"""Operands of two kinds, which are never equal or less, and constants with which nothing can be computed.

?v > ?limit              and of ?v the values are numbers, of ?limit texts
STR(?s) = :s7            a text and an IRI, whatever ?s is
?v + "1"                 needs numbers
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headwater.algebra.scope import expressions_of
from headwater.explain.notation import Notation
from headwater.language.expressions import Constant, Expression, Operation, VariableReference
from headwater.linting.bound_values import find_bound_values, judged_parts
from headwater.linting.lint_subject import LintSubject
from headwater.linting.value_kinds import (
    COMPARING,
    COMPUTING,
    IRI,
    NUMBER,
    TAGGED_TEXT,
    TEXT,
    kind_of,
    kinds_of_expression,
)
from headwater.terms.model import Term, Variable


def find_unfitting_operands(subject: LintSubject) -> Iterator[str]:
    """Operands that cannot be compared with each other, and constants with which nothing can be computed."""
    bound = find_bound_values(subject) if subject.observed.samples else {}
    values = {variable: found[1] for variable, found in bound.items() if found is not None}
    for expression in (part for node in subject.nodes for one in expressions_of(node) for part in judged_parts(one)):
        text = subject.notation.expression(expression)
        match expression:
            case Operation(operator, operands) if operator in COMPUTING:
                for one in operands:
                    if isinstance(one, Constant) and kind_of(one.value) in (TEXT, TAGGED_TEXT, IRI):
                        remedy = ": write numbers without quotes" if kind_of(one.value) == TEXT else ""
                        shown = subject.notation.term(one.value)
                        yield f"{text} has no value: it needs numbers, and {shown} is {kind_of(one.value)}{remedy}"
            case Operation(operator, (left, right)) if operator in COMPARING:
                # Of a variable and a constant `unfitting_values` says more.
                if {type(left), type(right)} != {Constant, VariableReference}:
                    yield from _incomparable(text, left, right, subject.notation, values)


def _incomparable(
    text: str, left: Expression, right: Expression, notation: Notation, values: Mapping[Variable, frozenset[Term]]
) -> Iterator[str]:
    sides = [(one, *kinds_of_expression(one, values)) for one in (left, right)]
    if not all(kinds for _, kinds, _ in sides) or sides[0][1] & sides[1][1]:
        return
    described = [
        f"{notation.expression(one)} is {' or '.join(sorted(kinds))}"
        + ("" if example is None else f", such as {notation.term(example)}")
        for one, kinds, example in sides
    ]
    remedy = ""
    all_kinds = sides[0][1] | sides[1][1]
    if IRI in all_kinds and TEXT in all_kinds:
        remedy = "; compare the IRIs themselves, or the texts of both, as in STR(…)"
    elif NUMBER in all_kinds and TEXT in all_kinds:
        remedy = "; give both the type of a number in data and template, or cast one, as in xsd:decimal(…)"
    yield f"{text} is never true: {described[0]}, and {described[1]}{remedy}"
