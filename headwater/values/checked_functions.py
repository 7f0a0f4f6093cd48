"""CONCAT and REPLACE with a limit on the length of what they compute, for texts that pyoxigraph evaluates.

A few of them in a row make a literal that no memory holds: forty times `CONCAT(?x, ?x)`. Where that can happen they are
written as functions of ours, which compare the lengths first and then ask pyoxigraph for the value:

    CONCAT(?x, ?x)    →    <urn:headwater:checked:CONCAT>(?x, ?x)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headwater.algebra.pyoxigraph_expressions import argument_texts, compute_over_terms
from headwater.algebra.scope import map_expression
from headwater.algebra.text_lengths import GROWING_FUNCTIONS, longest_text, text_length
from headwater.language.expressions import Expression, FunctionCall, VariableReference
from headwater.terms.model import Literal, NamedNode, Term, Variable
from headwater.values.query_guard import QueryGuard
from headwater.values.query_limits import LimitError

_NAMES = {name: NamedNode(f"urn:headwater:checked:{name}") for name in sorted(GROWING_FUNCTIONS)}


def with_checked_functions(expression: Expression) -> Expression:
    """The expression with checked functions in place of those whose chains grow without bound."""

    def change(part: Expression) -> Expression | None:
        if isinstance(part, FunctionCall) and isinstance(part.name, str) and part.name in _NAMES:
            return FunctionCall(_NAMES[part.name], tuple(map(with_checked_functions, part.arguments)))
        return None

    return map_expression(expression, change)


class CheckedFunctions:
    """The checked functions of one evaluation. pyoxigraph takes what they raise for an error of the expression, so
    `check` must be called behind it."""

    def __init__(self, guard: QueryGuard) -> None:
        self._guard = guard
        self._failure: LimitError | None = None

    @property
    def functions(self) -> Mapping[NamedNode, Callable[..., Term | None]]:
        """What pyoxigraph is given."""
        return {iri: self._checked(name) for name, iri in _NAMES.items()}

    def _checked(self, name: str) -> Callable[..., Term | None]:
        def call(*arguments: Term) -> Term | None:
            variables = [Variable(f"a{place}") for place in range(len(arguments))]
            lengths = dict(zip(variables, map(text_length, arguments), strict=True))
            asked = FunctionCall(name, tuple(map(VariableReference, variables)))
            try:
                self._guard.check_literal(longest_text(asked, lengths))
            except LimitError as failure:
                self._failure = self._failure or failure
                return None
            if not all(isinstance(one, Literal) for one in arguments):
                return None
            values = ", ".join(argument_texts(len(arguments)))
            return compute_over_terms(f"BIND({name}({values}) AS ?value)", arguments)

        return call

    def check(self) -> None:
        """Raise the `LimitError` of a call, if there was one."""
        if self._failure is not None:
            raise self._failure
