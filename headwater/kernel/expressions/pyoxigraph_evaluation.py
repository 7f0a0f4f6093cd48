"""The general way to evaluate an expression: ask pyoxigraph, once per batch, and remember what it said.

Values that were not seen before become the rows of a query; what comes back is kept by the ids of the values, so that a
value that comes again costs a look-up. The meaning is that of `headwater.reference`, because the text is made in the
same way (terms that a store would change are read through `headwater.values.stored_form_queries`):

    SELECT ?k ?r { VALUES (?k ?v0 ?v1) { (0 <a> 7) (1 <b> UNDEF) } BIND(… AS ?r) }

VALUES cannot hold blank nodes: a column that has one is given by a function of the row's number:

    SELECT ?k ?r { VALUES (?k ?v1) { (0 7) (1 8) } BIND(<urn:headwater:cell:0>(?k) AS ?v0) BIND(… AS ?r) }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, cast

import numpy as np
from pyoxigraph import QuerySolutions, Store

from headwater.algebra.nodes import Extend, Unit
from headwater.algebra.pyoxigraph_expressions import in_engine_words
from headwater.algebra.scope import map_expression, sub_expressions
from headwater.algebra.to_sparql import expression_text, term_text
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.comparison import ERROR, FALSE, FALSE_ID, TRUE, TRUE_ID, Truths
from headwater.language.expressions import Constant, Expression, FunctionCall, VariableReference
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Row, Term, Triple, Variable
from headwater.terms.stored_forms import is_kept, original, stored
from headwater.values import stored_form_queries as exact

Key: TypeAlias = int | tuple[int, ...]

CACHE_SIZE = 65_536
"""So many results are kept at most."""

_ASKED_AT_ONCE = 4_096
_CELL = "urn:headwater:cell:"
_RESOLVING = frozenset({"IRI", "URI"})
_RESULT = Variable("r")
_NOWHERE = Store()


class PyoxigraphExpression:
    """An expression over some columns, evaluated by pyoxigraph. Variables that have no column are unbound."""

    def __init__(
        self, expression: Expression, variables: Sequence[Variable], vocabulary: Vocabulary, base: str | None
    ) -> None:
        self._vocabulary = vocabulary
        self._width = len(variables)
        parts = list(sub_expressions(expression))
        others = (part.variable for part in parts if isinstance(part, VariableReference))
        names = {variable: Variable(f"v{i}") for i, variable in enumerate(dict.fromkeys([*variables, *others]))}

        def renamed(part: Expression) -> Expression | None:
            return VariableReference(names[part.variable]) if isinstance(part, VariableReference) else None

        plain = in_engine_words(map_expression(expression, renamed))
        as_written = exact.over_stored_terms(Extend(Unit(), _RESULT, plain))
        self._texts = expression_text(plain), expression_text(cast(Extend, as_written).expression)
        self._writes_inexact = any(_is_changed(part.value) for part in parts if isinstance(part, Constant))
        resolves = any(isinstance(part, FunctionCall) and part.name in _RESOLVING for part in parts)
        self._base = base if resolves else None
        self._known: dict[Key, int] = {}
        self._results: dict[int, Term] = {}

    def compute_ids(self, columns: Sequence[Ints], size: int) -> Ints:
        """The value of each row, `UNBOUND` for an error."""
        if not size:
            return np.empty(0, dtype=np.int64)
        keys: list[Key] = (
            columns[0].tolist() if len(columns) == 1 else list(zip(*(c.tolist() for c in columns), strict=True))
        ) or [()] * size
        found = list(map(self._known.get, keys))
        if self._results:
            self._keep_alive(set(found))
        if None in found:
            new = self._learn(list(dict.fromkeys(key for key, one in zip(keys, found, strict=True) if one is None)))
            found = [new[key] if one is None else one for key, one in zip(keys, found, strict=True)]
        return np.array(found, dtype=np.int64)

    def compute_truths(self, columns: Sequence[Ints], size: int) -> Truths:
        """The values as truth, for an expression that gives booleans."""
        values = self.compute_ids(columns, size)
        truths = np.full(size, ERROR, dtype=np.uint8)
        truths[values == TRUE_ID] = TRUE
        truths[values == FALSE_ID] = FALSE
        return truths

    def _keep_alive(self, numbers: set[int | None]) -> None:
        """Results that are no longer in the vocabulary, because it was swept, enter it again."""
        for number in numbers:
            term = None if number is None else self._results.get(number)
            if term is not None:
                self._vocabulary.id_of(term)

    def _learn(self, keys: list[Key]) -> dict[Key, int]:
        if len(self._known) + len(keys) > CACHE_SIZE:
            self._known.clear()
            self._results.clear()
        learned: dict[Key, int] = {}
        for start in range(0, len(keys), _ASKED_AT_ONCE):
            part = keys[start : start + _ASKED_AT_ONCE]
            terms = self._ask(part)
            numbers = list(map(self._vocabulary.id_of, terms))
            learned.update(zip(part, numbers, strict=True))
            if len(keys) <= CACHE_SIZE:
                hashed = ((number, term) for number, term in zip(numbers, terms, strict=True) if number >= 0)
                self._results.update((number, term) for number, term in hashed if term is not None)
        if len(keys) <= CACHE_SIZE:
            self._known.update(learned)
        return learned

    def _ask(self, keys: list[Key]) -> list[Term | None]:
        term_of = self._vocabulary.term_of
        rows: list[Row] = [
            (term_of(key),) if isinstance(key, int) else tuple(term_of(number) for number in key) for key in keys
        ]
        as_written = self._writes_inexact or any(_is_changed(term) for row in rows for term in row)
        if as_written:
            rows = [tuple(None if term is None else stored(term) for term in row) for row in rows]
        given = self._given(rows)
        cells: dict[NamedNode, Callable[..., Term | None]] = {
            NamedNode(f"{_CELL}{i}"): partial(_cell, rows, i) for i in given
        }
        answered = _NOWHERE.query(
            self._query(rows, given, self._texts[as_written]),
            base_iri=self._base,
            custom_functions={**exact.FUNCTIONS, **cells},
        )
        found: list[Term | None] = [None] * len(rows)
        for number, term in cast(QuerySolutions, answered):
            found[int(number.value)] = original(term) if as_written and term is not None else term
        return found

    def _query(self, rows: list[Row], given: list[int], text: str) -> str:
        written = [i for i in range(self._width) if i not in given]
        head = " ".join(f"?v{i}" for i in written)
        cells = " ".join(f"({k} {' '.join(term_text(row[i]) for i in written)})" for k, row in enumerate(rows))
        binds = " ".join(f"BIND(<{_CELL}{i}>(?k) AS ?v{i})" for i in given)
        return f"SELECT ?k ?r {{ VALUES (?k {head}) {{ {cells} }} {binds} BIND({text} AS ?r) }}"

    def _given(self, rows: list[Row]) -> list[int]:
        """The columns that cannot be written down. With a base, the text of an IRI might be read as another one."""
        if self._base is not None:
            return list(range(self._width))
        return [i for i in range(self._width) if any(isinstance(row[i], BlankNode | Triple) for row in rows)]


def _cell(rows: list[Row], column: int, number: Literal) -> Term | None:
    return rows[int(number.value)][column]


def _is_changed(term: object) -> bool:
    """Whether a store would give the term back in another form."""
    if isinstance(term, Triple):
        return _is_changed(term.object)
    return isinstance(term, Literal) and not is_kept(term)


def boolean_value_of(expression: Expression) -> Expression:
    """The effective boolean value of an expression, an error where it has none."""
    return FunctionCall("IF", (expression, _TRUE, _FALSE))


_TRUE = Constant(Literal("true", datatype=NamedNode(XSD + "boolean")))
_FALSE = Constant(Literal("false", datatype=NamedNode(XSD + "boolean")))
