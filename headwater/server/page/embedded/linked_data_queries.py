"""SPARQL queries over the linked data, for the page: on a copy in memory, with bounded results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyoxigraph import NamedNode, Store

from headwater.algebra.plan import QueryKind
from headwater.datasets.dataset import DataSet
from headwater.errors import HeadwaterError, SettingError
from headwater.execution.remote_solutions import has_services, refuse_services
from headwater.server.page.embedded.page_values import MOST_ROWS, cell_of
from headwater.server.page.page_access import PageTable
from headwater.server.protocol.data_service import GraphChoice
from headwater.server.protocol.plain_queries import PlainQueries, PlainResult, plan_plain_query
from headwater.server.protocol.store_mirror import MirroredVersion
from headwater.terms.stored_forms import to_stored_quad
from headwater.values.query_guard import QueryGuard
from headwater.values.query_limits import QueryLimits

_LARGEST_COPY = 500_000
"""How many statements may be copied for a query."""
_LIMITS = QueryLimits(10.0, rows=1_000_000, bytes=64 << 20)
_BASE = "http://localhost/"


def answer_sparql(text: str, folders: Sequence[Path]) -> PageTable:
    """The result of a query over data sets, at most so many rows of it; a `SettingError` where there is none."""
    try:
        plan = plan_plain_query(text, _BASE, GraphChoice())
        if has_services(plan.root):
            raise SettingError("SERVICE is not asked from here: register the query, or use the SPARQL endpoint")
        version = _copy_data(folders)
        guard = QueryGuard(_LIMITS)
        with guard:
            guard.begin_tick()
            return _to_table(PlainQueries(refuse_services).evaluate(plan, version, guard))
    except SettingError:
        raise
    except HeadwaterError as error:
        raise SettingError(str(error)) from None


def _copy_data(folders: Sequence[Path]) -> MirroredVersion:
    """Data sets in one store."""
    datasets = [DataSet.open(folder) for folder in folders]
    size = sum(one.statements for one in datasets)
    if size > _LARGEST_COPY:
        raise SettingError(f"{size:,} statements are too many to look through from here: use the SPARQL endpoint")
    store = Store()
    for data in datasets:
        store.bulk_extend(to_stored_quad(quad) for quad in data.quads())
    named = tuple(one for one in store.named_graphs() if isinstance(one, NamedNode))
    return MirroredVersion(store, 0, True, named)


def _to_table(result: PlainResult) -> PageTable:
    if result.kind is QueryKind.ASK:
        return PageTable(("result",), ((result.boolean,),))
    if result.kind is QueryKind.SELECT:
        found = tuple(tuple(cell_of(term) for term in row) for row in result.rows[:MOST_ROWS])
        return PageTable(result.variables, found, len(result.rows) - len(found))
    triples = result.triples
    rows = tuple((cell_of(t.subject), cell_of(t.predicate), cell_of(t.object)) for t in triples[:MOST_ROWS])
    return PageTable(("subject", "predicate", "object"), rows, len(triples) - len(rows))
