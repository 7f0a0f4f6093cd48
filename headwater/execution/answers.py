"""The answer of a query at a tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from headwater.algebra.plan import QueryKind
from headwater.execution.answer_quality import AnswerQuality
from headwater.execution.typed_cells import ColumnTypes, choose_types, plain_text, typed_series
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.model import RDF, XSD, BlankNode, Literal, NamedNode, Row, Term, Triple
from headwater.terms.timestamps import time_to_datetime

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_RESULT_SET = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_WHOLE_NUMBERS = frozenset(XSD + name for name in ("integer", "int", "long", "short", "byte", "nonNegativeInteger"))
_NUMBERS = frozenset(XSD + name for name in ("decimal", "double", "float"))


@dataclass(frozen=True, slots=True)
class WindowView:
    """What one window held when an answer was made: its name, the timestamps it covered and how many items."""

    label: str
    low: int
    high: int
    items: int


class RowSource(Protocol):
    """Holds the rows of answers until somebody looks at them (`answer_columns`)."""

    offsets: Any

    def decode_rows(self, place: int) -> tuple[Row, ...]:
        """The rows of one of the answers, in order."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one query at one tick, as its streaming operator lets it through.

    SELECT fills `rows` (in the order of `variables`), CONSTRUCT and DESCRIBE fill `triples`, ASK fills `boolean`.
    `part` numbers answers of one instant where a count window closed more than once in it. `inputs` and `watermark`
    say what the answer was made from, `data_version` which version of each data set it saw, `quality` how good it is
    where it rests on SERVICE; `complete` is false where the query came so late that its windows did not hold everything
    yet; `skipped` is how many ticks before this one were not evaluated because the run fell behind. These take no part
    in comparisons. With `suspended` it is no answer: it says, without rows, why its query has no more of
    them. An answer that has a `source` makes its rows when they are first asked for. `types` are those of the columns,
    as far as the query says them.
    """

    query: str
    time: int
    kind: QueryKind
    operator: StreamOperator = StreamOperator.RSTREAM
    variables: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    triples: tuple[Triple, ...] = ()
    boolean: bool | None = None
    part: int = 0
    inputs: tuple[WindowView, ...] = field(default=(), compare=False)
    watermark: int | None = field(default=None, compare=False)
    quality: AnswerQuality | None = field(default=None, compare=False)
    complete: bool = field(default=True, compare=False)
    data_version: tuple[int, ...] | None = field(default=None, compare=False)
    skipped: int = field(default=0, compare=False)
    suspended: str | None = field(default=None, compare=False)
    source: tuple[RowSource, int] | None = field(default=None, repr=False, compare=False)
    types: ColumnTypes | None = field(default=None, repr=False, compare=False)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Called for a field that was not set: the rows, which the source has."""
            if name != "rows" or self.source is None:
                raise AttributeError(f"an Answer has no {name!r}")
            source, place = self.source
            rows = source.decode_rows(place)
            object.__setattr__(self, "rows", rows)
            object.__setattr__(self, "source", None)
            return rows

    @property
    def row_count(self) -> int:
        """How many rows or triples there are; no terms are made to count them."""
        if self.source is not None:
            source, place = self.source
            return int(source.offsets[place + 1] - source.offsets[place])
        return len(self.rows) + len(self.triples)

    @property
    def is_empty(self) -> bool:
        """Whether there is no row, no triple and no boolean."""
        return not self.row_count and self.boolean is None

    @property
    def datetime(self) -> datetime:
        """The time of the answer as Python's datetime, in UTC."""
        return time_to_datetime(self.time)

    def to_pandas(self, *, terms: bool = False, schema: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """The rows as a pandas DataFrame: a column per variable, or subject, predicate and object, or boolean.

        A column whose type the query says, such as a count or a cast, has it, also where there is no row; `schema` says
        it of others, as in `{"speed": "double"}` (integer, double, boolean, timestamp, string). Elsewhere numbers and
        booleans become Python's, other literals and IRIs their text, unbound variables None. With `terms` the cells are
        the RDF terms themselves.
        """
        import pandas as pd

        columns, rows = self.table()
        if terms:
            return pd.DataFrame(rows, columns=list(columns), dtype=object)
        types = choose_types(columns, self.types, schema)
        cells = [[plain_value(cell) for cell in row] for row in rows]
        frame = pd.DataFrame(cells, columns=list(columns))
        for place, wanted in enumerate(types):
            if wanted is not None:
                terms_of_column = [row[place] for row in rows]
                frame[columns[place]] = typed_series(terms_of_column, wanted, columns[place])
        return frame

    def to_arrow(self, *, terms: bool = False, schema: Mapping[str, Any] | None = None) -> pa.Table:
        """The rows as an Arrow table, behind the columns `time` and `part`; polars takes it with `polars.from_arrow`.

        Columns are typed as those of `to_pandas`; with `terms` every term is in N-Triples syntax.
        """
        from headwater.execution.answer_batch import AnswerBatch

        return AnswerBatch([[self]]).to_arrow(terms=terms, schema=schema)

    def table(self) -> tuple[tuple[str, ...], tuple[Row, ...]]:
        """Columns and rows, whatever the form of the query: triples have three columns, a verdict has one."""
        if self.kind is QueryKind.SELECT:
            return self.variables, self.rows
        if self.kind is QueryKind.ASK:
            verdict = [] if self.boolean is None else [(Literal(self.boolean),)]
            return self.table_columns(), tuple(verdict)
        return self.table_columns(), tuple((t.subject, t.predicate, t.object) for t in self.triples)

    def table_columns(self) -> tuple[str, ...]:
        """The columns of `table`."""
        if self.kind is QueryKind.SELECT:
            return self.variables
        return ("boolean",) if self.kind is QueryKind.ASK else ("subject", "predicate", "object")

    def to_rdf(self) -> tuple[Triple, ...]:
        """The answer as triples: its own, or rows and verdicts in the W3C vocabulary for result sets."""
        if self.kind in (QueryKind.CONSTRUCT, QueryKind.DESCRIBE):
            return self.triples
        scope = f"a{self.time}p{self.part}".replace("-", "m")
        result = BlankNode(scope)
        found = [Triple(result, NamedNode(RDF + "type"), NamedNode(_RESULT_SET + "ResultSet"))]
        if self.boolean is not None:
            found.append(Triple(result, NamedNode(_RESULT_SET + "boolean"), Literal(self.boolean)))
        for variable in self.variables:
            found.append(Triple(result, NamedNode(_RESULT_SET + "resultVariable"), Literal(variable)))
        for number, row in enumerate(self.rows):
            solution = BlankNode(f"{scope}r{number}")
            found.append(Triple(result, NamedNode(_RESULT_SET + "solution"), solution))
            for place, (variable, term) in enumerate(zip(self.variables, row, strict=True)):
                if term is not None:
                    binding = BlankNode(f"{scope}r{number}v{place}")
                    found.append(Triple(solution, NamedNode(_RESULT_SET + "binding"), binding))
                    found.append(Triple(binding, NamedNode(_RESULT_SET + "variable"), Literal(variable)))
                    found.append(Triple(binding, NamedNode(_RESULT_SET + "value"), term))
        return tuple(found)


def plain_value(term: Term | None) -> Any:
    """A term as Python's number or boolean where it is one, else as text; None stays None."""
    if isinstance(term, Literal):
        datatype = term.datatype.value
        try:
            if datatype in _WHOLE_NUMBERS:
                return int(term.value)
            if datatype in _NUMBERS:
                return float(term.value)
        except ValueError:
            return term.value
        if datatype == XSD + "boolean" and term.value in ("true", "1", "false", "0"):
            return term.value in ("true", "1")
    return plain_text(term)
