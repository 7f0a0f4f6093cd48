"""Graph patterns of SPARQL 1.1 and the stream clauses that may stand among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from headwater.language.expressions import Expression
from headwater.language.service_options import ServiceOptions
from headwater.language.stream_clauses import WindowSpec
from headwater.terms.model import BlankNode, Literal, NamedNode, Variable

if TYPE_CHECKING:
    from headwater.language.query import SelectQuery

PatternTerm: TypeAlias = NamedNode | Literal | BlankNode | Variable
"""What may stand in a triple pattern. A blank node is a variable without a name."""


@dataclass(frozen=True, slots=True)
class Path:
    """A property path (SPARQL 1.1, section 9)."""


@dataclass(frozen=True, slots=True)
class Link(Path):
    """A single IRI inside a path."""

    predicate: NamedNode


@dataclass(frozen=True, slots=True)
class Inverse(Path):
    """`^path`."""

    path: Path


@dataclass(frozen=True, slots=True)
class Sequence(Path):
    """`path / path`."""

    left: Path
    right: Path


@dataclass(frozen=True, slots=True)
class Alternative(Path):
    """`path | path`."""

    left: Path
    right: Path


@dataclass(frozen=True, slots=True)
class ZeroOrMore(Path):
    """`path*`."""

    path: Path


@dataclass(frozen=True, slots=True)
class OneOrMore(Path):
    """`path+`."""

    path: Path


@dataclass(frozen=True, slots=True)
class ZeroOrOne(Path):
    """`path?`."""

    path: Path


@dataclass(frozen=True, slots=True)
class NegatedSet(Path):
    """`!(iri | ^iri …)`: one step along none of these."""

    forward: tuple[NamedNode, ...]
    inverse: tuple[NamedNode, ...]


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """Subject, predicate (a term, a variable or a property path) and object.

    A path that is a single IRI is written as that IRI, never as a `Link`.
    """

    subject: PatternTerm
    predicate: NamedNode | Variable | Path
    object: PatternTerm


@dataclass(frozen=True, slots=True)
class GroupItem:
    """Anything that may stand between the braces of a group graph pattern."""


@dataclass(frozen=True, slots=True)
class GroupPattern(GroupItem):
    """`{ … }`: its items in the order of the text."""

    items: tuple[GroupItem, ...]


@dataclass(frozen=True, slots=True)
class TriplesBlock(GroupItem):
    """Adjacent triple patterns; two blocks separated only by FILTERs belong to one basic graph pattern."""

    triples: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class OptionalPattern(GroupItem):
    """`OPTIONAL {…}`."""

    pattern: GroupPattern


@dataclass(frozen=True, slots=True)
class UnionPattern(GroupItem):
    """`{…} UNION {…} …` with at least two branches."""

    branches: tuple[GroupPattern, ...]


@dataclass(frozen=True, slots=True)
class MinusPattern(GroupItem):
    """`MINUS {…}`."""

    pattern: GroupPattern


@dataclass(frozen=True, slots=True)
class GraphPattern(GroupItem):
    """`GRAPH name {…}`; in C-SPARQL the name may be a stream's."""

    name: NamedNode | Variable
    pattern: GroupPattern
    at: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ServicePattern(GroupItem):
    """`SERVICE [SILENT] endpoint {…} OPTION (…)`."""

    endpoint: NamedNode | Variable
    pattern: GroupPattern
    silent: bool = False
    at: int = field(default=0, compare=False, repr=False)
    options: ServiceOptions | None = None


@dataclass(frozen=True, slots=True)
class FilterItem(GroupItem):
    """`FILTER expression`: applies to the whole group it stands in."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class BindItem(GroupItem):
    """`BIND(expression AS ?variable)`: ends the basic graph pattern before it."""

    expression: Expression
    variable: Variable
    at: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InlineData(GroupItem):
    """`VALUES`: rows of terms, None for UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[NamedNode | Literal | None, ...], ...]


@dataclass(frozen=True, slots=True)
class SubSelect(GroupItem):
    """`{ SELECT … }`: always the only item of its group."""

    query: SelectQuery


@dataclass(frozen=True, slots=True)
class StreamPattern(GroupItem):
    """CQELS-QL `STREAM <iri>|?var [window] {…}` (CQ2)."""

    stream: NamedNode | Variable
    window: WindowSpec
    pattern: GroupPattern
    at: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class WindowPattern(GroupItem):
    """RSP-QL `WINDOW name|?var {…}` (OA11); the name was declared by FROM NAMED WINDOW."""

    name: NamedNode | Variable
    pattern: GroupPattern
    at: int = field(default=0, compare=False, repr=False)
