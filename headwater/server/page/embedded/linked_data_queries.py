"""SPARQL queries over the linked data, for the page: on a copy in memory, with bounded results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from pyoxigraph import QueryBoolean, QuerySolutions, QueryTriples, Store

from headwater.datasets.dataset import DataSet
from headwater.errors import SettingError
from headwater.language.lexer import tokenize
from headwater.server.page.embedded.page_values import MOST_ROWS, cell_of
from headwater.server.page.page_access import PageTable
from headwater.terms.stored_forms import to_stored_quad

_LARGEST_COPY = 500_000
"""How many statements may be copied for a query."""


def answer_sparql(text: str, folders: Sequence[Path]) -> PageTable:
    """The result of a query over data sets, at most so many rows of it; a `SettingError` where there is none."""
    if any(token.key == "SERVICE" for token in tokenize(text).tokens):
        raise SettingError("SERVICE is not asked from here: register the query, or use the SPARQL endpoint")
    datasets = [DataSet.open(folder) for folder in folders]
    size = sum(one.statements for one in datasets)
    if size > _LARGEST_COPY:
        raise SettingError(f"{size:,} statements are too many to look through from here: use the SPARQL endpoint")
    store = Store()
    for data in datasets:
        store.bulk_extend(to_stored_quad(quad) for quad in data.quads())
    try:
        result = store.query(text)
    except (SyntaxError, ValueError, OSError, RuntimeError) as error:
        raise SettingError(str(error)) from None
    if isinstance(result, QueryBoolean):
        return PageTable(("result",), ((bool(result),),))
    if isinstance(result, QueryTriples):
        triples = list(islice(result, MOST_ROWS + 1))
        rows = tuple((cell_of(t.subject), cell_of(t.predicate), cell_of(t.object)) for t in triples[:MOST_ROWS])
        return PageTable(("subject", "predicate", "object"), rows, len(triples) - len(rows))
    assert isinstance(result, QuerySolutions)
    solutions = list(islice(result, MOST_ROWS + 1))
    found = tuple(tuple(cell_of(term) for term in solution) for solution in solutions[:MOST_ROWS])
    return PageTable(tuple(one.value for one in result.variables), found, len(solutions) - len(found))
