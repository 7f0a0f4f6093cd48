"""Evaluation of an expression by pyoxigraph, once for each batch, with a cache of the results.

Values that were not seen before become the rows of a query. The results are cached by the ids of the values, so that a
value that occurs again costs a look-up. The meaning is that of `headwater.reference`, because the query text is made in
the same way (terms that a store would change are read through `headwater.values.stored_form_queries`):

    SELECT ?k ?r { VALUES (?k ?v0 ?v1) { (0 <a> 7) (1 <b> UNDEF) } BIND(… AS ?r) }

VALUES cannot hold blank nodes. A column that has one is read by a function of the row number:

    SELECT ?k ?r { VALUES (?k ?v1) { (0 7) (1 8) } BIND(<urn:headwater:cell:0>(?k) AS ?v0) BIND(… AS ?r) }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, cast

import numpy as np
from pyoxigraph import QuerySolutions, Store

from headwater.algebra.nodes import Extend, Unit
from headwater.algebra.plan_depth import check_text_of_plan
from headwater.algebra.pyoxigraph_expressions import rewrite_for_pyoxigraph
from headwater.algebra.scope import map_expression, sub_expressions
from headwater.algebra.text_lengths import can_grow, longest_text, text_length
from headwater.algebra.to_sparql import expression_to_sparql, term_to_sparql
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.comparison import ERROR, FALSE, FALSE_ID, TRUE, TRUE_ID, Truths
from headwater.language.expressions import Constant, Expression, FunctionCall, VariableReference
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Row, Term, Triple, Variable
from headwater.terms.stored_forms import is_kept, restore_term, to_stored_term
from headwater.values import stored_form_queries as exact
from headwater.values.checked_functions import CheckedFunctions, with_checked_functions
from headwater.values.own_function_calls import scalar_functions
from headwater.values.query_guard import current_guard

Key: TypeAlias = int | tuple[int, ...]

CACHE_SIZE = 65_536
"""At most so many results are cached."""

_ROWS_PER_QUERY = 4_096
_CELL = "urn:headwater:cell:"
_RESOLVING_FUNCTIONS = frozenset({"IRI", "URI"})
_RESULT = Variable("r")
_EMPTY_STORE = Store()


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

        def rename(part: Expression) -> Expression | None:
            return VariableReference(names[part.variable]) if isinstance(part, VariableReference) else None

        renamed_expression = rewrite_for_pyoxigraph(map_expression(expression, rename))
        as_stored = exact.read_originals(Extend(Unit(), _RESULT, renamed_expression))
        # The rest of the query is written here, and the terms in it were checked when they were read.
        written = (renamed_expression, cast(Extend, as_stored).expression)
        self._texts = tuple(check_text_of_plan(expression_to_sparql(one)) for one in written)
        self._growing = renamed_expression if can_grow(expression) else None
        """The expression, if its value can be much longer than what it is computed from."""
        self._checked_texts = (
            tuple(check_text_of_plan(expression_to_sparql(with_checked_functions(one))) for one in written)
            if self._growing is not None
            else ()
        )
        self._has_changed_constants = any(
            _is_changed_by_store(part.value) for part in parts if isinstance(part, Constant)
        )
        resolves = any(isinstance(part, FunctionCall) and part.name in _RESOLVING_FUNCTIONS for part in parts)
        self._base = base if resolves else None
        self._result_ids: dict[Key, int] = {}
        self._result_terms: dict[int, Term] = {}

    def compute_ids(self, columns: Sequence[Ints], size: int) -> Ints:
        """Evaluate each row, to `UNBOUND` for an error."""
        if not size:
            return np.empty(0, dtype=np.int64)
        keys: list[Key] = (
            columns[0].tolist() if len(columns) == 1 else list(zip(*(c.tolist() for c in columns), strict=True))
        ) or [()] * size
        ids = list(map(self._result_ids.get, keys))
        if self._result_terms:
            self._restore_terms(set(ids))
        if None in ids:
            new = self._evaluate_new(
                list(dict.fromkeys(key for key, one in zip(keys, ids, strict=True) if one is None))
            )
            ids = [new[key] if one is None else one for key, one in zip(keys, ids, strict=True)]
        return np.array(ids, dtype=np.int64)

    def compute_truths(self, columns: Sequence[Ints], size: int) -> Truths:
        """Evaluate each row of an expression that gives booleans, to truths."""
        values = self.compute_ids(columns, size)
        truths = np.full(size, ERROR, dtype=np.uint8)
        truths[values == TRUE_ID] = TRUE
        truths[values == FALSE_ID] = FALSE
        return truths

    def _restore_terms(self, term_ids: set[int | None]) -> None:
        """Add results to the vocabulary that a sweep has removed from it."""
        for term_id in term_ids:
            term = None if term_id is None else self._result_terms.get(term_id)
            if term is not None:
                self._vocabulary.id_of(term)

    def _evaluate_new(self, keys: list[Key]) -> dict[Key, int]:
        """Evaluate rows that are not in the cache, and put them there if they fit."""
        if len(self._result_ids) + len(keys) > CACHE_SIZE:
            self._result_ids.clear()
            self._result_terms.clear()
        new_ids: dict[Key, int] = {}
        for start in range(0, len(keys), _ROWS_PER_QUERY):
            if start:
                current_guard().check_time()
            part = keys[start : start + _ROWS_PER_QUERY]
            terms = self._query_pyoxigraph(part)
            term_ids = list(map(self._vocabulary.id_of, terms))
            new_ids.update(zip(part, term_ids, strict=True))
            if len(keys) <= CACHE_SIZE:
                hashed = ((term_id, term) for term_id, term in zip(term_ids, terms, strict=True) if term_id >= 0)
                self._result_terms.update((term_id, term) for term_id, term in hashed if term is not None)
        if len(keys) <= CACHE_SIZE:
            self._result_ids.update(new_ids)
        return new_ids

    def _query_pyoxigraph(self, keys: list[Key]) -> list[Term | None]:
        """The value of the expression for each row, by one query; None: an error or unbound."""
        term_of = self._vocabulary.term_of
        rows: list[Row] = [
            (term_of(key),) if isinstance(key, int) else tuple(term_of(term_id) for term_id in key) for key in keys
        ]
        as_stored = self._has_changed_constants or any(_is_changed_by_store(term) for row in rows for term in row)
        if as_stored:
            rows = [tuple(None if term is None else to_stored_term(term) for term in row) for row in rows]
        by_function = self._columns_by_function(rows)
        cells: dict[NamedNode, Callable[..., Term | None]] = {
            NamedNode(f"{_CELL}{i}"): partial(_cell, rows, i) for i in by_function
        }
        text, checked = self._texts[as_stored], None
        if self._growing is not None and self._can_be_too_long(self._growing, rows):
            text, checked = self._checked_texts[as_stored], CheckedFunctions(current_guard())
        solutions = _EMPTY_STORE.query(
            self._query_text(rows, by_function, text),
            base_iri=self._base,
            custom_functions={
                **exact.FUNCTIONS,
                **scalar_functions(),
                **cells,
                **(checked.functions if checked else {}),
            },
        )
        results: list[Term | None] = [None] * len(rows)
        for row_number, term in cast(QuerySolutions, solutions):
            results[int(row_number.value)] = restore_term(term) if as_stored and term is not None else term
        if checked is not None:
            checked.check()
        return results

    def _can_be_too_long(self, expression: Expression, rows: list[Row]) -> bool:
        """Whether the value for some row may be longer than a literal of the query may be."""
        lengths = {Variable(f"v{i}"): max(text_length(row[i]) for row in rows) for i in range(self._width)}
        return longest_text(expression, lengths) > current_guard().limits.literal

    def _query_text(self, rows: list[Row], by_function: list[int], text: str) -> str:
        by_values = [i for i in range(self._width) if i not in by_function]
        head = " ".join(f"?v{i}" for i in by_values)
        cells = " ".join(f"({k} {' '.join(term_to_sparql(row[i]) for i in by_values)})" for k, row in enumerate(rows))
        binds = " ".join(f"BIND(<{_CELL}{i}>(?k) AS ?v{i})" for i in by_function)
        return f"SELECT ?k ?r {{ VALUES (?k {head}) {{ {cells} }} {binds} BIND({text} AS ?r) }}"

    def _columns_by_function(self, rows: list[Row]) -> list[int]:
        """The columns that VALUES cannot hold. With a base, an IRI in the text might be resolved to another one."""
        if self._base is not None:
            return list(range(self._width))
        return [i for i in range(self._width) if any(isinstance(row[i], BlankNode | Triple) for row in rows)]


def _cell(rows: list[Row], column: int, row_number: Literal) -> Term | None:
    return rows[int(row_number.value)][column]


def _is_changed_by_store(term: object) -> bool:
    """Whether a store would give the term back in another form."""
    if isinstance(term, Triple):
        return _is_changed_by_store(term.object)
    return isinstance(term, Literal) and not is_kept(term)


def boolean_value_of(expression: Expression) -> Expression:
    """The effective boolean value of an expression; an error if it has none."""
    return FunctionCall("IF", (expression, _TRUE, _FALSE))


_TRUE = Constant(Literal("true", datatype=NamedNode(XSD + "boolean")))
_FALSE = Constant(Literal("false", datatype=NamedNode(XSD + "boolean")))
