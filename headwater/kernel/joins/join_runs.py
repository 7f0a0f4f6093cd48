"""The multiway join over a run of ticks: the changes of its inputs in their order, and the ways through the join.

Each change goes through one compiled loop (`join_loop`). Results have the tick and the sign of the row that made them.
Static inputs reduce the others before: a row without a partner in one of them is not kept.

The order in which inputs are probed is chosen for a stretch of changes, from what the stretches before found (OA6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headwater.kernel.columns.delta_run import DeltaRun, Signs, merge_runs
from headwater.kernel.columns.relation import Key, Relation
from headwater.kernel.columns.ring_index import Ints, Links
from headwater.kernel.joins.join_loop import IS_PAUSED, MOST_RESULTS, MOST_WORK, join_changes
from headwater.kernel.joins.range_conditions import Place, RangeBounds
from headwater.kernel.joins.relation_tables import RelationTables
from headwater.values.query_guard import check_rows, current_guard

_MANY_RESULTS = 1 << 20
"""After so many results a call ends, so that they can be counted, and a condition tested, before there are more."""
_MUCH_WORK = 1 << 26
"""After so many partners a call ends, too, so that the time can be looked at."""


@dataclass(frozen=True, slots=True)
class JoinStep:
    """A probe: of which input, on which of its columns, and the leaf and column of each value of the key.

    With `bounds` it is a probe of an ordered index.
    """

    input_index: int
    key: Key
    key_sources: tuple[Place, ...]
    bounds: RangeBounds | None = None

    @property
    def index_key(self) -> Key:
        """The columns of the index."""
        return self.key if self.bounds is None else (*self.key, self.bounds.column)

    @property
    def probe_sources(self) -> tuple[Place, ...]:
        """The leaf and column of each value that the probe needs: the key, then the bounds."""
        return self.key_sources if self.bounds is None else self.key_sources + self.bounds.lower + self.bounds.upper

    @property
    def bound_counts(self) -> tuple[int, int]:
        """The number of lower and of upper bounds."""
        return (0, 0) if self.bounds is None else (len(self.bounds.lower), len(self.bounds.upper))


@dataclass(frozen=True, slots=True)
class JoinWay:
    """How a row of one input is joined with all the others.

    `twin` is an input that must have another row, or -1. In a symmetric join (`operators.self_joins`), `mirror` is the
    input with the same rows: where it has another row, the result with its leaves exchanged is a result, too.
    """

    leaf: int
    steps: tuple[JoinStep, ...]
    twin: int = -1
    mirror: int = -1


@dataclass(frozen=True, slots=True)
class JoinSource:
    """An input that changes: the ways of its rows, and the probes of static inputs that must find a partner."""

    input_index: int
    ways: tuple[JoinWay, ...]
    screens: tuple[JoinStep, ...]


@dataclass(frozen=True, slots=True)
class MergedChanges:
    """The changes of several inputs in the order of their ticks. `offsets` says where in `values` each row begins."""

    sources: Ints
    ticks: Ints
    signs: Signs
    offsets: Ints
    values: Ints

    @classmethod
    def of_runs(cls, runs: Sequence[DeltaRun]) -> MergedChanges:
        """The changes of runs, of which at least one is not empty."""
        sources, order = merge_runs(runs)
        ends = np.cumsum([run.rows.size for run in runs]).tolist()
        offsets = [
            end - run.rows.size + run.rows.shape[1] * np.arange(len(run)) for run, end in zip(runs, ends, strict=True)
        ]
        return cls(
            sources,
            np.concatenate([run.ticks for run in runs])[order],
            np.concatenate([run.signs for run in runs])[order],
            np.concatenate(offsets)[order],
            np.concatenate([run.rows.ravel() for run in runs]),
        )


def _steps_of(sources: Iterable[JoinSource]) -> Iterator[JoinStep]:
    """All probes of some inputs."""
    for source in sources:
        for way in source.ways:
            yield from way.steps
        yield from source.screens


class RunJoiner:
    """Joins changes of the inputs of a join.

    `outputs` has the leaf and column of each value of a result, and `mirrored` those of the values of the result with
    its leaves exchanged, where the join is symmetric.
    """

    def __init__(
        self,
        relations: Sequence[Relation],
        sources: Sequence[JoinSource],
        outputs: Sequence[Place],
        mirrored: Sequence[Place],
    ) -> None:
        self._relations = list({id(relation): relation for relation in relations}.values())
        numbers = {id(relation): number for number, relation in enumerate(self._relations)}
        self._leaf_relations: Ints = np.array([numbers[id(relation)] for relation in relations])
        self._sources = sources
        self.width = len(outputs)
        """The number of columns of results."""
        self._outputs = np.array([*outputs, *mirrored], np.int32).reshape(2 * len(outputs), 2)
        self.steps = [
            (depth, step) for source in sources for way in source.ways for depth, step in enumerate(way.steps, 1)
        ]
        self.measures: Ints = np.zeros((len(self.steps), 2), np.int64)
        """For each step, the number of probes and of partners that they found."""
        self._pause: Ints = np.zeros((5, max(6, len(self._leaf_relations) + 1)), np.int64)
        self._pause[0, MOST_RESULTS : MOST_WORK + 1] = _MANY_RESULTS, _MUCH_WORK

    def join(self, changes: MergedChanges, low: int, high: int) -> tuple[Ints, Ints, int]:
        """Apply changes from one place to another, or fewer if there are many results.

        Gives the results, for each the place of the change that made it, and how far it came.
        """
        given = changes.sources[:high], changes.signs[:high], changes.offsets[:high], changes.values
        sources, signs, *_ = given
        after = low
        while after == low:
            self._reserve(sources[low:], signs[low:])
            tables = RelationTables(self._relations)
            table_arrays = self._tables_of(tables)
            results, makers, after = join_changes(low, *given, *table_arrays)
            if self.is_paused:
                results, makers, after = self._go_on(given, table_arrays, results, makers, after)
            tables.store()
            if after == low:
                self.index_rows(int(sources[low]))
        return results, makers, after

    def _go_on(
        self, given: tuple[Any, ...], table_arrays: Sequence[npt.NDArray[Any]], results: Ints, makers: Ints, after: int
    ) -> tuple[Ints, Ints, int]:
        """Join a change with so many partners that one call was not enough, as far as the limits of the query allow."""
        all_results, all_makers = [results], [makers]
        while self.is_paused:
            self.check_pause(sum(map(len, all_results)))
            results, makers, after = join_changes(after, *given, *table_arrays)
            all_results.append(results)
            all_makers.append(makers)
        return np.concatenate(all_results), np.concatenate(all_makers), after

    @property
    def is_paused(self) -> bool:
        """Whether the last call of `join_changes` ended in the middle of a change."""
        return bool(self._pause[0, IS_PAUSED])

    def check_pause(self, count: int) -> None:
        """Hold the query to its limits in the middle of a change, when there are so many results."""
        current_guard().check_time()
        check_rows(count, self.width)

    def open_tables(self, room: int) -> tuple[RelationTables, Sequence[npt.NDArray[Any]]]:
        """Make room for so many changes of each input. Gives tables for them, and all that `join_changes` takes."""
        for step in _steps_of(self._sources):
            self._relations[int(self._leaf_relations[step.input_index])].index(step.key)
        for source in self._sources:
            self._relation_of(source).reserve(room, room)
        tables = RelationTables(self._relations)
        return tables, self._tables_of(tables)

    def needs_scan(self) -> bool:
        """Whether a step would need an index that was dropped."""
        return any(
            self._relations[int(self._leaf_relations[step.input_index])].is_scanned(step.key)
            for step in _steps_of(self._sources)
        )

    def relation_number(self, source: int) -> int:
        """The place of the relation of an input that changes among the relations."""
        return int(self._leaf_relations[self._sources[source].input_index])

    def index_rows(self, source: int) -> None:
        """Have an index of the whole rows of an input, because they leave in another order than they came."""
        self._relation_of(self._sources[source]).index_rows()

    def record_inserts(self, inserts: Sequence[int]) -> None:
        """Count the rows that were added to each input that changes, with tables of `open_tables`."""
        for source, count in zip(self._sources, inserts, strict=True):
            self._relation_of(source).record_inserts(count)

    def _tables_of(self, tables: RelationTables) -> tuple[npt.NDArray[Any], ...]:
        """The tables that `join_changes` takes."""
        ways = self._way_tables(tables)
        own = self._leaf_relations, self._outputs, self.measures, self._pause
        return tables.relations, tables.indexes, tables.keys, *ways, *own

    def _relation_of(self, source: JoinSource) -> Relation:
        return self._relations[int(self._leaf_relations[source.input_index])]

    def _reserve(self, sources: Ints, signs: Signs) -> None:
        """Make room for all changes, and the indexes that their steps need: inputs that do not change probe nothing."""
        changed = [self._sources[number] for number in np.unique(sources).tolist()]
        for step in _steps_of(changed):
            relation = self._relations[int(self._leaf_relations[step.input_index])]
            if step.bounds is None:
                relation.index(step.key)
            else:
                relation.ordered_index(step.index_key)
        for number, source in enumerate(self._sources):
            own = signs[sources == number]
            added = int((own > 0).sum())
            relation = self._relation_of(source)
            relation.reserve(added, own.shape[0] - added)
            relation.record_inserts(added)

    def _way_tables(self, tables: RelationTables) -> tuple[Ints, Ints, Ints, Links, Ints, Ints, Links]:
        """Sources, screens, ways and steps as tables of integers."""
        of_source: list[tuple[int, int, int]] = []
        screens: list[tuple[int, int]] = []
        screen_bounds = [0]
        screen_columns: list[int] = []
        ways: list[tuple[int, ...]] = []
        steps: list[tuple[int, ...]] = []
        key_sources: list[tuple[int, int]] = []
        for source in self._sources:
            relation = int(self._leaf_relations[source.input_index])
            of_source.append((relation, len(ways), len(ways) + len(source.ways)))
            for screen in source.screens:
                screens.append((self._index_number(tables, screen), len(screen_columns)))
                screen_columns.extend(column for _, column in screen.key_sources)
            screen_bounds.append(len(screens))
            for way in source.ways:
                ways.append((way.leaf, way.twin, way.mirror, len(steps), len(steps) + len(way.steps) - 1))
                for step in way.steps:
                    steps.append(
                        (step.input_index, self._index_number(tables, step), len(key_sources), *step.bound_counts)
                    )
                    key_sources.extend(step.probe_sources)
        return (
            np.array(of_source, np.int64),
            np.array(screens, np.int64).reshape(len(screens), 2),
            np.array(screen_bounds, np.int64),
            np.array(screen_columns, np.int32),
            np.array(ways, np.int64),
            np.array(steps, np.int64),
            np.array(key_sources, np.int32).reshape(len(key_sources), 2),
        )

    def _index_number(self, tables: RelationTables, step: JoinStep) -> int:
        # A step of an input that does not change may have no index.
        relation = int(self._leaf_relations[step.input_index])
        return tables.index_number(relation, step.index_key, is_ordered=step.bounds is not None)
