"""What the three dialects add to SPARQL: windows over streams, registration, streaming operators, AGGREGATE."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from headwater.language.expressions import Expression
from headwater.terms.model import NamedNode, Variable


class Dialect(Enum):
    """The language a query is written in; it decides the defaults, not the grammar."""

    CSPARQL = "csparql"
    CQELS = "cqels"
    RSPQL = "rspql"


class StreamOperator(Enum):
    """Which part of the sequence of results an answer carries (CQL's relation-to-stream operators)."""

    RSTREAM = "rstream"
    ISTREAM = "istream"
    DSTREAM = "dstream"


class RegistrationKind(Enum):
    """`REGISTER QUERY` answers its reader, `REGISTER STREAM` feeds other queries."""

    QUERY = "query"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """A window as written, before the defaults of the dialect are filled in. Durations are microseconds."""


@dataclass(frozen=True, slots=True)
class RangeSpec(WindowSpec):
    """`RANGE d [STEP|SLIDE d | TUMBLING] [@predicate]`.

    `slide` is None where the text gives none; `TUMBLING`, and `STEP` with no duration, give `slide == width`.
    `timestamp_predicate` names the property of the element's graph that holds its time (OA11). `has_bare_number` says
    that a duration was written as a number without a unit, which is milliseconds.
    """

    width: int
    slide: int | None = None
    timestamp_predicate: NamedNode | None = None
    has_bare_number: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CountSpec(WindowSpec):
    """`TRIPLES n`, `COUNT n`, `ELEMENTS n`, each with an optional `STEP m` or `TUMBLING`.

    `unit` is `triples` (TRIPLES) or `elements` (COUNT, ELEMENTS).
    """

    size: int
    step: int | None = None
    unit: str = "triples"
    timestamp_predicate: NamedNode | None = None


@dataclass(frozen=True, slots=True)
class IntervalSpec(WindowSpec):
    """`FROM NOW-d TO NOW-d [STEP d]`: both offsets count back from the evaluation time (`NOW` alone is 0)."""

    start_offset: int
    end_offset: int
    slide: int | None = None
    timestamp_predicate: NamedNode | None = None


@dataclass(frozen=True, slots=True)
class LandmarkSpec(WindowSpec):
    """`FROM "instant"^^xsd:dateTime [TO NOW] [STEP d]`: everything since a fixed instant."""

    start: int
    slide: int | None = None
    timestamp_predicate: NamedNode | None = None


@dataclass(frozen=True, slots=True)
class NowSpec(WindowSpec):
    """`NOW`: only what carries the evaluation time itself."""


@dataclass(frozen=True, slots=True)
class AllSpec(WindowSpec):
    """`ALL`: everything so far."""


@dataclass(frozen=True, slots=True)
class FromGraph:
    """`FROM <iri>` or `FROM NAMED <iri>`."""

    graph: NamedNode
    named: bool = False
    at: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FromStream:
    """C-SPARQL `FROM [NAMED] STREAM <iri> [window]` (CS3)."""

    stream: NamedNode
    window: WindowSpec
    named: bool = False
    at: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FromWindow:
    """RSP-QL `FROM NAMED WINDOW name ON [STREAM] <iri> [window]` (OA11)."""

    name: NamedNode
    stream: NamedNode
    window: WindowSpec
    at: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Registration:
    """`REGISTER QUERY|STREAM|RSTREAM|ISTREAM|DSTREAM name [COMPUTED EVERY d] AS`.

    `name` is the text of an identifier or the string of an IRI (prefixed names resolved).
    """

    kind: RegistrationKind
    name: str
    every: int | None = None
    at: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AggregateClause:
    """C-SPARQL `AGGREGATE { (?v, FUNC(?arg), {?group …}) FILTER(…) }` (CS2).

    Adds `variable` to every row of its group. `argument` is None for a bare COUNT.
    """

    variable: Variable
    function: str
    argument: Variable | None
    group: tuple[Variable, ...]
    condition: Expression | None = None
    distinct: bool = False
    at: int = field(default=0, compare=False, repr=False)
