"""The linked data of an engine: data sets on disk, and what it was given otherwise, held in data sets of its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from headwater.datasets.dataset import DataSet
from headwater.datasets.linked_data import LinkedData
from headwater.datasets.loading.temporary_dataset import TemporaryFolder
from headwater.engine.static_files import Given, in_graph, load, statements
from headwater.engine.watched_data import Refreshed, is_web_address, refreshing, source_of
from headwater.errors import SettingError
from headwater.execution.registered import RegisteredQuery
from headwater.optimizer.statistics import Statistics
from headwater.running.shipping import DataFolder
from headwater.sources.source import SourceError
from headwater.terms.durations import parse_duration
from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.model import Quad

_LARGEST_LOG = 16 << 20
"""From so many bytes of changes on, a data set is put in order before it is used."""


class EngineData:
    """All data sets that the queries of an engine see as one."""

    def __init__(self) -> None:
        self._scratch = TemporaryFolder()
        self._folders: list[DataFolder] = []
        self._refreshed: list[tuple[TemporaryFolder, Refreshed]] = []

    @property
    def folders(self) -> tuple[DataFolder, ...]:
        return tuple(self._folders)

    def add(self, data: Given, graph: str | None, refresh: float | str | None) -> DataSet:
        """What `Engine.dataset` does."""
        if isinstance(data, str | Path) and Path(data).is_dir():
            if graph is not None or refresh is not None:
                raise SourceError(
                    f"{data} is the folder of a data set: headwater load --graph chooses the graph, and changes are "
                    "seen without a refresh"
                )
            found = DataSet.open(data)
            if found.log_bytes > _LARGEST_LOG:
                found.compact()
            self._folders.append(DataFolder(str(found.folder)))
            return found
        seconds = parse_duration(refresh) / 1_000_000 if isinstance(refresh, str) else refresh
        if seconds is None and not is_web_address(data):
            return self._held(self._scratch, statements(data), graph)
        if not isinstance(data, str | Path):
            raise SettingError("only files and addresses can be refreshed: change other data with insert and remove")
        source = source_of(data)
        quads = source.read() or []
        if seconds is None:
            return self._held(self._scratch, quads, graph)
        scratch = TemporaryFolder()
        watched = Refreshed(source, self._held(scratch, quads, graph), graph, seconds)
        watched.begin(in_graph(quads, graph))
        self._refreshed.append((scratch, watched))
        return watched.data

    def _held(self, scratch: TemporaryFolder, quads: Sequence[Quad], graph: str | None) -> DataSet:
        """A data set of the engine's own with some statements more."""
        load(scratch.folder, quads, graph)
        place = DataFolder(str(scratch.folder), is_temporary=True)
        if place not in self._folders:
            self._folders.append(place)
        return DataSet.open(scratch.folder)

    def as_one(self) -> LinkedData:
        """All data sets as they are now."""
        return LinkedData([DataSet.open(one.path) for one in self._folders])

    @property
    def has_default_graph(self) -> bool:
        """Whether some statement stands in no named graph."""
        return any(graph == NO_TERM for graph, _ in self.as_one().group_keys())

    def statistics(self, queries: Sequence[RegisteredQuery]) -> Statistics:
        """What was counted of the predicates that some queries name."""
        counted = [DataSet.open(one.path).predicate_counts() for one in self._folders]
        return Statistics.of_counts(counted, [query.plan for query in queries])

    def refreshing(self) -> AbstractContextManager[None]:
        """While it lasts, what is to be refreshed is looked at."""
        return refreshing([one for _, one in self._refreshed])
