"""A registered query as its owner sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.algebra.plan import QueryPlan
from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answers import Answer
from headwater.language.query import ParsedQuery as ParsedQuery
from headwater.language.service_options import ServiceOptions
from headwater.running.delivery import Answers
from headwater.running.progress import QueryProgress
from headwater.windows.settings import Options, QuerySettings, resolve_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headwater.engine.engine import Engine


class Query:
    """A continuous query of an engine: its plan, its settings, its answers."""

    def __init__(
        self,
        engine: Engine,
        parsed: ParsedQuery,
        plan: QueryPlan,
        options: Options,
        service: ServiceOptions | None = None,
    ) -> None:
        self._engine = engine
        self.parsed = parsed
        self.plan = plan
        self.options = options
        self.service = service

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

    def answers(self) -> Answers[Answer]:
        """The answers one after the other, until everything is read.

        If the engine is not running, taking the first answer runs it in the background. To take the answers of
        several queries from one run, ask each for its answers before taking the first.
        """
        return self._engine.subscribe(self.name)

    def batches(self) -> Answers[AnswerBatch]:
        """The answers of one batch after the other, each an `AnswerBatch`, until everything is read.

        Where a batch has many answers this is the fast way: `to_arrow` makes a table without an `Answer` for each.
        """
        return self._engine.subscribe_to_batches(self.name)

    def to_dataframe(self, *, terms: bool = False, follow: bool = False) -> DataFrame:
        """The answers as a streaming DataFrame of Spark: `time`, and a string column per variable.

        A literal is its text, an IRI itself; with `terms` both are in N-Triples syntax. CONSTRUCT and DESCRIBE give
        the columns subject, predicate and object, ASK the column boolean. Write it with `writeStream`: a query with
        `trigger(availableNow=True)` reads what there is and answers all windows, others follow the sources.
        """
        return self._engine.dataframe(self.name, terms=terms, follow=follow)

    def __repr__(self) -> str:
        return f"<Query {self.name!r}>"
