"""A registered query as its owner sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headwater.algebra.plan import QueryPlan
from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answers import Answer
from headwater.language.query import ParsedQuery as ParsedQuery
from headwater.language.service_options import ServiceOptions
from headwater.running.progress import QueryProgress
from headwater.running.subscriptions import Answers, AsyncAnswers, Subscription, WhenFull
from headwater.running.tick_explaining import Explanation, RowChoice
from headwater.terms.arguments import check_time
from headwater.values.query_limits import QueryLimits
from headwater.windows.settings import Options, QuerySettings, resolve_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headwater.engine.engine import Engine
    from headwater.explain.drawing_model import PlanFormat, PlanGraph, PlanStage


class Query:
    """A continuous query of an engine: its plan, its settings, its answers."""

    def __init__(
        self,
        engine: Engine,
        parsed: ParsedQuery,
        plan: QueryPlan,
        options: Options,
        service: ServiceOptions | None = None,
        limits: QueryLimits | None = None,
    ) -> None:
        self._engine = engine
        self.parsed = parsed
        self.plan = plan
        self.options = options
        self.service = service
        self.limits = QueryLimits() if limits is None else limits

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def text(self) -> str:
        return self.plan.text

    @property
    def settings(self) -> QuerySettings:
        """When and how it is evaluated, with the defaults of its dialect filled in."""
        return resolve_settings(self.plan, self.options)

    @property
    def progress(self) -> QueryProgress:
        """The counts of this query in the run at work, or in the last one."""
        return self._engine.progress.queries.get(self.name, QueryProgress())

    def resume(self) -> None:
        """Go on after a suspension, as a query that is registered now (`progress.suspended` says why it was)."""
        self._engine.resume(self)

    def answers(self, *, buffer: int | None = None, when_full: WhenFull | None = None) -> Answers[Answer]:
        """The answers one after the other, until everything is read.

        If the engine is not running, taking the first answer runs it in the background. To take the answers of
        several queries from one run, ask each for its answers before taking the first.

        At most `buffer` answers wait to be taken. What happens when there are more is `when_full`: `end` ends the
        iterator with a `SlowConsumerError`, `drop` loses the oldest, `block` has the run wait. It is `end`, but a run
        that was begun by its only iterator waits for it. Where the query is suspended, `QuerySuspended` is raised.
        """
        return self._engine.subscribe(Subscription[Answer](self.name, buffer=buffer, when_full=when_full))

    def answers_async(self, *, buffer: int | None = None, when_full: WhenFull | None = None) -> AsyncAnswers[Answer]:
        """The answers for `async for`; the event loop goes on while the next one is not there.

        The rest is as with `answers`.
        """
        return self._engine.subscribe_async(Subscription[Answer](self.name, buffer=buffer, when_full=when_full))

    def batches(self, *, buffer: int | None = None, when_full: WhenFull | None = None) -> Answers[AnswerBatch]:
        """The answers of one batch after the other, each an `AnswerBatch`, until everything is read.

        Where a batch has many answers this is the fast way: `to_arrow` makes a table without an `Answer` for each.
        `buffer`, in batches, and `when_full` are those of `answers`.
        """
        return self._engine.subscribe(
            Subscription[AnswerBatch](self.name, takes_batches=True, buffer=buffer, when_full=when_full)
        )

    def to_dataframe(
        self, *, terms: bool = False, schema: Mapping[str, Any] | None = None, follow: bool = False
    ) -> DataFrame:
        """The answers as a streaming DataFrame of Spark: `time`, and a column per variable.

        A column whose type the query says, such as a count or a cast, has it, and `schema` says it of others, as in
        `{"speed": "double"}` (integer, double, boolean, timestamp, string); a value that does not fit is null. Other
        columns are text: a literal's own, an IRI itself. With `terms` all are in N-Triples syntax. CONSTRUCT and
        DESCRIBE give the columns subject, predicate and object, ASK the column boolean. Write it with `writeStream`: a
        query with `trigger(availableNow=True)` reads what there is and answers all windows, others follow the sources.
        Its checkpoint is the `checkpointLocation` of `writeStream`; an engine with a checkpoint refuses.

        This sets in the session what stateful queries of Spark take when they start: RocksDB as their state store, and
        one partition of state. A stateful query of your own in the same session would take them, too: start it in
        `spark.newSession()`.
        """
        return self._engine.dataframe(self.name, terms=terms, schema=schema, follow=follow)

    def explain(
        self, *, graph: PlanGraph | None = None, format: PlanFormat = "text", stage: PlanStage = "evaluated"
    ) -> str:
        """How the query is understood and evaluated over the data that the engine has now.

        `format` is `text`, `mermaid`, `dot` or `svg`; `graph` chooses a drawing, `operators` or `denotational`. `stage`
        is which plan: as `written`, after the rules of the C-SPARQL paper alone (`paper`), or as `evaluated`.
        """
        return self._engine.explain(self.name, graph=graph, format=format, stage=stage)

    def why(self, time: int | str, row: RowChoice = None) -> Explanation:
        """What led to the result at a tick: the elements and static triples behind it, and the counts of each step.

        `time` is the tick, as `answer.time` or a text such as an xsd:dateTime. `row` is the number of a row, from 1 on,
        or values of some of its variables, such as `{"sensor": "http://x/s1"}`; without it all rows are explained. For
        an empty result, `steps` and `end` say where the solutions end. The sources are read again, up to the tick: they
        must be files or in memory. The static data is taken as it is now.
        """
        return self._engine.why(self.name, check_time("time", time), row)

    def __repr__(self) -> str:
        return f"<Query {self.name!r}>"
