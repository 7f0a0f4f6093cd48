"""The linked data of an engine: data sets on disk, and other data copied into data sets of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import islice
from pathlib import Path

from pyoxigraph import DefaultGraph

from headwater.datasets.dataset import DataSet
from headwater.datasets.linked_data import LinkedData
from headwater.datasets.loading.temporary_dataset import TemporaryFolder
from headwater.datasets.remote_updates import RemoteAccess
from headwater.engine.static_files import Given, load_statements, put_in_graph, read_statements
from headwater.engine.watched_data import RefreshedDataSet, is_web_address, open_watched, refresh_in_background
from headwater.errors import SettingError
from headwater.execution.registered import RegisteredQuery
from headwater.federation.rate_reading import rate_sources_of, read_rates_graph
from headwater.federation.view.given_rates import GivenRates
from headwater.language.service_options import RatesSource
from headwater.linting.observed_data import LoadedGraphs, ObservedData, StreamSample
from headwater.optimizer.statistics import Statistics
from headwater.running.shipping import DataFolder
from headwater.terms.arguments import check_number
from headwater.terms.durations import parse_duration
from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.model import NamedNode, Quad, Term
from headwater.terms.stored_forms import restore_term, to_stored_term

_MANY_STATEMENTS = 5_000
"""Of a predicate with more statements the values are not looked at, when a query is checked."""

_LARGEST_LOG = 16 << 20
"""A data set with a longer log of changes is compacted before it is used."""


class EngineData:
    """The data sets that the queries of an engine read, as one; `remote` is how they reach what is elsewhere."""

    def __init__(self, remote: RemoteAccess | None = None) -> None:
        self._remote = remote or RemoteAccess()
        self._scratch = TemporaryFolder()
        self._folders: list[DataFolder] = []
        self._refreshed: list[tuple[TemporaryFolder, RefreshedDataSet]] = []

    @property
    def folders(self) -> tuple[DataFolder, ...]:
        return tuple(self._folders)

    def add(self, data: Given, graph: str | None, refresh: float | str | None) -> DataSet:
        """Add linked data (`Engine.dataset`)."""
        found = self._add(data, graph, refresh)
        found.remote = self._remote
        return found

    def _add(self, data: Given, graph: str | None, refresh: float | str | None) -> DataSet:
        if isinstance(data, str | Path) and Path(data).is_dir():
            if graph is not None or refresh is not None:
                raise SettingError(
                    f"{data} is the folder of a data set: headwater load --graph chooses the graph, and changes are "
                    "seen without a refresh"
                )
            found = DataSet.open(data)
            if found.log_bytes > _LARGEST_LOG:
                found.compact()
            self._folders.append(DataFolder(str(found.folder)))
            return found
        seconds = parse_duration(refresh) / 1_000_000 if isinstance(refresh, str) else refresh
        if seconds is not None:
            check_number("refresh", seconds, can_be_zero=False)
        if seconds is None and not is_web_address(data):
            return self._store(self._scratch, read_statements(data), graph)
        if not isinstance(data, str | Path):
            raise SettingError("only files and addresses can be refreshed: change other data with insert and remove")
        source = open_watched(data, self._remote.egress)
        quads = source.read() or []
        if seconds is None:
            return self._store(self._scratch, quads, graph)
        scratch = TemporaryFolder()
        watched = RefreshedDataSet(source, self._store(scratch, quads, graph), graph, seconds)
        watched.begin(put_in_graph(quads, graph))
        self._refreshed.append((scratch, watched))
        return watched.data

    def _store(self, scratch: TemporaryFolder, quads: Sequence[Quad], graph: str | None) -> DataSet:
        """Put statements into a data set of the engine's own."""
        load_statements(scratch.folder, quads, graph)
        place = DataFolder(str(scratch.folder), is_temporary=True)
        if place not in self._folders:
            self._folders.append(place)
        return DataSet.open(scratch.folder)

    def open_all(self) -> LinkedData:
        """All data sets at their newest versions."""
        return LinkedData([DataSet.open(one.path) for one in self._folders])

    @property
    def has_default_graph(self) -> bool:
        """Whether some statement stands in no named graph."""
        return any(graph == NO_TERM for graph, _ in self.open_all().group_keys())

    def observe(self, samples: Mapping[NamedNode, StreamSample] | None = None) -> ObservedData:
        """What is known of the data for the lint: the statements that are loaded, and samples of streams."""
        data = self.open_all()

        def has_statement(
            subject: Term | None, predicate: Term | None, object_: Term | None, graph: NamedNode | DefaultGraph | None
        ) -> bool:
            value = None if object_ is None else to_stored_term(object_)
            return any(True for _ in data.quads_for_pattern(subject, predicate, value, graph))

        loaded = LoadedGraphs(frozenset(data.named_graphs()), self.has_default_graph)

        @cache
        def list_terms(
            predicate: Term, are_objects: bool, graph: NamedNode | DefaultGraph | None
        ) -> frozenset[Term] | None:
            quads = data.quads_for_pattern(None, predicate, None, graph)
            found = {quad.object if are_objects else quad.subject for quad in islice(quads, _MANY_STATEMENTS)}
            return None if next(quads, None) is not None else frozenset(map(restore_term, found))

        return ObservedData(loaded, has_statement, samples or {}, list_terms)

    def statistics(self, queries: Sequence[RegisteredQuery]) -> Statistics:
        """The statistics of the predicates that some queries name."""
        counted = [DataSet.open(one.path).predicate_counts() for one in self._folders]
        return Statistics.of_counts(counted, [query.plan for query in queries])

    def read_rates(self, queries: Sequence[RegisteredQuery]) -> dict[RatesSource, GivenRates]:
        """The change rates in the graphs that the SERVICE clauses of queries name."""
        graphs = [one for one in rate_sources_of(query.plan for query in queries) if isinstance(one, NamedNode)]
        data = self.open_all() if graphs else LinkedData([])
        return {graph: read_rates_graph(graph, data) for graph in graphs}

    def refresh_while_running(self) -> AbstractContextManager[None]:
        """A context in which the data with a refresh time is read again in the background."""
        return refresh_in_background([one for _, one in self._refreshed])
