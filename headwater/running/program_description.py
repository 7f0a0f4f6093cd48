"""What a run evaluates, as one frozen value: the engine makes it, checks it, and sends it to the workers.

`ProgramDescription.outline` checks that the queries can run together and says who evaluates each of them. It compiles
plans over no data, so that nothing of the linked data is read for it. `ProgramDescription.program` builds the
evaluators; only the process that evaluates calls it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from headwater.datasets.dataset import DataSet
from headwater.datasets.linked_data import LinkedData
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator, no_families
from headwater.execution.registered import RegisteredQuery, find_produced_streams, order_producers_first
from headwater.execution.stream_reads import union_patterns
from headwater.federation.service_settings import ServiceSettings
from headwater.optimizer.statistics import Statistics
from headwater.running.named_evaluators import (
    EvaluatorName,
    QueryOutline,
    evaluator_by_name,
    families_by_name,
    outline_queries,
)
from headwater.running.shipping import DataFolder
from headwater.sharding.answer_merging import query_of_shard
from headwater.sharding.shard_plan import ShardPlan
from headwater.sources.stream_patterns import WantedPatterns
from headwater.terms.ids.term_key import ProcessKey
from headwater.terms.own_functions import ProcessFunctions
from headwater.values.query_guard import Interruption


@dataclass(frozen=True, slots=True)
class ProgramOutline:
    """What is known of a program before anything is evaluated.

    `inputs` are the streams that must come from outside, `wanted_patterns` has the triples that the sources must give.
    """

    queries: Mapping[str, QueryOutline]
    inputs: tuple[str, ...]
    wanted_patterns: WantedPatterns


@dataclass(frozen=True, slots=True)
class ProgramDescription:
    """All that determines the answers besides the streams; it can be sent to a worker.

    `datasets` are the folders of the linked data, which every worker must see. `delay` is how late an element may be,
    in microseconds. `sharding` says how the work is cut, if it is. `idle` is after how much silence a followed stream
    is not waited for, in microseconds; `skews` how far apart, in event time, the partitions of a stream may be;
    `max_ahead` how far an element may be ahead of those before it, None: as far as it likes.
    `services` has the settings of endpoints and given change rates, `statistics` what the optimizer may know of the
    linked data, so that every worker makes the same plans. `resumed` has a token for each query that was resumed.
    `key` is that of the ids, which workers adopt, `functions` are those of users, which they take over.
    """

    queries: tuple[RegisteredQuery, ...]
    datasets: tuple[DataFolder, ...] = ()
    delay: int = 0
    evaluator: EvaluatorName = "auto"
    sharding: ShardPlan | None = None
    idle: tuple[tuple[str, int], ...] = ()
    skews: tuple[tuple[str, int], ...] = ()
    services: ServiceSettings | None = None
    statistics: Statistics | None = None
    resumed: tuple[tuple[str, str], ...] = ()
    max_ahead: int | None = None
    key: ProcessKey = field(default_factory=ProcessKey, compare=False)
    functions: ProcessFunctions = field(default_factory=ProcessFunctions, compare=False)

    @property
    def watched(self) -> tuple[str, ...]:
        """The folders whose versions the batches carry: all, or none where workers have copies of some."""
        return tuple(one.path for one in self.datasets) if all(one.archive is None for one in self.datasets) else ()

    def _static_data(self) -> LinkedData:
        return LinkedData([DataSet.open(one.local_path()) for one in self.datasets])

    def outline(self) -> ProgramOutline:
        """Check the queries, and say who evaluates each; a `RegistrationError` where they cannot run together."""
        produced = find_produced_streams(self.queries, self._static_data())
        order_producers_first(self.queries)
        outlines = outline_queries(self.evaluator, self.queries, self.statistics, self.services)
        read = {source.stream.value for query in self.queries for source in query.plan.windows}
        wanted = WantedPatterns.of_patterns(union_patterns(outline.patterns for outline in outlines.values()))
        return ProgramOutline(outlines, tuple(sorted(read - produced.keys())), wanted)

    def program(
        self,
        interruption: Interruption | None = None,
        alone: Collection[str] = (),
        evaluator: MakeEvaluator | None = None,
    ) -> Program:
        """The queries with nothing read yet; a `RegistrationError` where they cannot run together.

        `interruption` is how other threads end an evaluation; the queries in `alone` are evaluated one by one. With an
        `evaluator`, all are, by those that it makes.
        """
        cut = self.sharding
        return Program(
            self.queries if cut is None else tuple(query_of_shard(one, cut) for one in self.queries),
            self._static_data(),
            self.delay,
            evaluator or evaluator_by_name(self.evaluator, self.services, self.statistics),
            families=families_by_name(self.evaluator) if evaluator is None else no_families,
            is_filtered=True,
            idle=dict(self.idle),
            skews=dict(self.skews),
            max_ahead=self.max_ahead,
            resumed=dict(self.resumed),
            alone=alone,
            interruption=interruption,
        )
