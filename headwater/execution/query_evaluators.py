"""The evaluators of a program: who answers which query, under which limits, and which queries are suspended."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from pyoxigraph import DefaultGraph

from headwater.algebra.plan import QueryPlan
from headwater.errors import HeadwaterError
from headwater.execution.answers import Answer
from headwater.execution.collapsed_triples import find_counting_readers
from headwater.execution.evaluator import Evaluator, EvaluatorState
from headwater.execution.id_owners import IdOwners
from headwater.execution.late_queries import LateStart
from headwater.execution.registered import RegisteredQuery, order_producers_first
from headwater.execution.static_data import IdentifiedData, StaticData
from headwater.execution.suspension import SuspendedEvaluator, Suspension, is_caused_by_query, suspension_notice
from headwater.execution.window_log import StreamKey
from headwater.terms.ids.hash_collisions import HashCollision
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import Quad
from headwater.values.query_guard import Interruption, QueryDropped, QueryGuard, RunStopped
from headwater.values.query_limits import QueryLimits
from headwater.windows.element_sequences import Elements
from headwater.windows.settings import QuerySettings

logger = logging.getLogger(__name__)

_ETERNITY = 1 << 62

MakeEvaluator: TypeAlias = Callable[[QueryPlan, QuerySettings, StaticData], Evaluator]
"""Makes the evaluator of a plan under its settings, over static data."""

FindFamilies: TypeAlias = Callable[[Sequence[RegisteredQuery], StaticData], Sequence[Evaluator]]
"""Makes evaluators that answer several of the queries each; the other queries get one of their own."""


def no_families(queries: Sequence[RegisteredQuery], static: StaticData) -> Sequence[Evaluator]:
    """Every query is evaluated by itself."""
    return ()


class FamilyFailed(HeadwaterError, RuntimeError):
    """Queries that are evaluated as one failed, and what they would need to go on one by one is kept elsewhere."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__(f"the queries {', '.join(names)} must be evaluated one by one")
        self.names = frozenset(names)


class QueryEvaluators:
    """The evaluator of each query (`by_name`), and each of them once, producers first (`order`).

    Queries in `alone` are members of no family.
    """

    def __init__(
        self,
        queries: Sequence[RegisteredQuery],
        static: StaticData,
        make: MakeEvaluator,
        families: FindFamilies = no_families,
        alone: Collection[str] = (),
        interruption: Interruption | None = None,
    ) -> None:
        self._queries = {query.plan.name: query for query in queries}
        self._static = static
        self._make_evaluator = make
        self._interruption = interruption
        self._counting_readers = find_counting_readers(queries)
        self.owners = IdOwners()
        if isinstance(static, IdentifiedData):
            self.owners.watch_static_data(static.hashed_ids(), static.texts_of_ids)
        self.suspensions: dict[str, Suspension] = {}
        self.notices: list[Answer] = []
        """What the takers of answers must still be told."""
        shared = self._find_families(families, alone)
        self.by_name = {
            query.plan.name: shared.get(query.plan.name) or self.make(query) for query in order_producers_first(queries)
        }
        # Members of a family read the same streams, so producers that come before one member come before all.
        self.order = tuple(dict.fromkeys(self.by_name.values()))

    def _connect(self, evaluator: Evaluator) -> None:
        """Have the terms of an evaluator, and of the views that it reads, own their ids; say who counts its triples."""
        for name in evaluator.names:
            own = evaluator.evaluator_of(name)
            own.counting_readers = {**own.counting_readers, **self._counting_readers.get(name, {})}
        evaluator.own_ids(self.owners)
        if isinstance(self._static, IdentifiedData):
            self.owners.add_static_ids(self._static.computed_ids())

    def follow_static_data(self, changed: Collection[Quad] | None) -> HashCollision | None:
        """Have the static data own the ids of its changed statements; gives the error where a term of a stream does.

        `changed` is None where any statement may be another one.
        """
        if not isinstance(self._static, IdentifiedData):
            return None
        try:
            if changed is None:
                self.owners.watch_static_data(self._static.hashed_ids(), self._static.texts_of_ids)
            else:
                terms = {term for quad in changed for term in quad if not isinstance(term, DefaultGraph)}
                self.owners.add_static_ids(np.array([encode(term) for term in terms], dtype=np.int64))
            self.owners.add_static_ids(self._static.computed_ids())
        except HashCollision as collision:
            return collision
        return None

    def needed_times(self) -> dict[StreamKey, int]:
        """For each stream the time from which some window can still show elements."""
        needed: dict[StreamKey, int] = {}
        for evaluator in self.order:
            for number, key in enumerate(evaluator.keys):
                oldest = evaluator.needed_from(number)
                needed[key] = min(needed.get(key, _ETERNITY), -_ETERNITY if oldest is None else oldest)
        return needed

    def _find_families(self, families: FindFamilies, alone: Collection[str]) -> dict[str, Evaluator]:
        """The evaluators of several queries, which have the same limits."""
        by_limits: dict[QueryLimits, list[RegisteredQuery]] = {}
        for name, query in self._queries.items():
            if name not in alone:
                by_limits.setdefault(query.limits, []).append(query)
        shared: dict[str, Evaluator] = {}
        for limits, alike in by_limits.items():
            guard = QueryGuard(limits, [query.plan.name for query in alike], self._interruption)
            try:
                with guard:
                    found = families(alike, self._static)
                    for evaluator in found:
                        self._connect(evaluator)
            except Exception as error:
                if not is_caused_by_query(error):
                    raise
                # Whose fault it is shows when each is made alone.
                continue
            for evaluator in found:
                evaluator.set_limits(limits, self._interruption)
                shared |= dict.fromkeys(evaluator.names, evaluator)
        return shared

    def make(self, query: RegisteredQuery) -> Evaluator:
        """The evaluator of one query alone; a query is suspended whose evaluator cannot be made within its limits."""
        guard = QueryGuard(query.limits, (query.plan.name,), self._interruption)
        try:
            with guard:
                evaluator = self._make_evaluator(query.plan, query.settings, self._static)
                self._connect(evaluator)
        except Exception as error:
            if not is_caused_by_query(error):
                raise
            return self._suspend(query, Suspension.because_of(error, query.settings.t0 or 0))
        evaluator.guard = guard
        return evaluator

    def _suspend(self, query: RegisteredQuery, suspension: Suspension) -> Evaluator:
        name = query.plan.name
        self.suspensions[name] = suspension
        if not isinstance(suspension.error, QueryDropped):
            self.notices.append(suspension_notice(query, suspension))
            is_known = suspension.error is None or isinstance(suspension.error, HeadwaterError | OSError)
            trace = None if is_known else suspension.error
            logger.warning("the query %s is suspended: %s", name, suspension.reason, exc_info=trace)
        return SuspendedEvaluator(query.plan, query.settings)

    def suspend(self, evaluator: Evaluator, error: Exception, time: int) -> tuple[Evaluator, ...]:
        """Suspend the queries of an evaluator because of an error; gives what stands in their places."""
        places = []
        for name in evaluator.names:
            place = self._suspend(self._queries[name], Suspension.because_of(error, time))
            self.by_name[name] = place
            places.append(place)
        self._put(evaluator, places)
        return tuple(places)

    def suspend_one(self, evaluator: Evaluator, name: str, error: Exception, time: int) -> Evaluator:
        """Suspend one query of an evaluator, whose others go on; gives what stands in its place."""
        place = self._suspend(self._queries[name], Suspension.because_of(error, time))
        self._put_aside(evaluator, name, place)
        return place

    def _put_aside(self, evaluator: Evaluator, name: str, place: Evaluator) -> None:
        """Have a query answered by another evaluator, and by this one no more."""
        self.by_name[name] = place
        if len(evaluator.names) > 1:
            evaluator.remove(name)
            self.order = (*self.order, place)
        else:
            self._put(evaluator, [place])

    def keep_suspended(self, name: str, suspension: Suspension) -> None:
        """A query was suspended before a restart, and is still."""
        if name in self.suspensions:
            return
        evaluator = self.by_name[name]
        query = self._queries[name]
        self.suspensions[name] = suspension
        self._put_aside(evaluator, name, SuspendedEvaluator(query.plan, query.settings))

    def _put(self, evaluator: Evaluator, places: Iterable[Evaluator]) -> None:
        at = self.order.index(evaluator)
        self.order = (*self.order[:at], *places, *self.order[at + 1 :])

    def split(
        self,
        family: Evaluator,
        state: EvaluatorState,
        retained: Mapping[StreamKey, Elements],
        late_starts: Mapping[str, LateStart],
    ) -> tuple[Evaluator, ...]:
        """Evaluate the members of a family one by one, from the state before the step in which it failed."""
        unanswered, _, pending = state.memory
        singles: list[Evaluator] = []
        for name in family.names:
            single = self.make(self._queries[name])
            if not isinstance(single, SuspendedEvaluator):
                begun = late_starts.get(name)
                own = replace(state, memory=pending.get(name), kind="KernelEvaluator")
                known = retained if begun is None else begun.select_known(retained)
                try:
                    with single.guard:
                        single.restore(own, known, [name] if name in unanswered else [])
                except RunStopped:
                    raise
                except Exception as error:
                    last = family.ticker.last_tick or 0
                    single = self._suspend(self._queries[name], Suspension.because_of(error, last))
            single.data_version = family.data_version
            self.by_name[name] = single
            singles.append(single)
        self._put(family, singles)
        return tuple(singles)
