"""Terms, paths, expressions and windows as people write them, for explanations and drawings.

`to_sparql` writes text for machines: whole IRIs, parentheses around everything, generated variables as they are. Here
the prefixes of the query shorten IRIs, parentheses stand only where they change the meaning, and a variable that the
translation generated is shown as the blank node or aggregate that it stands for.

    FILTER((?a >= "10"^^<http://www.w3.org/2001/XMLSchema#integer>) && (?b = ?c))   in SPARQL
    ?a >= 10 && ?b = ?c                                                             here
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from headwater.algebra.nodes import ExistsPlan, Extend, Group, Node
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import expressions_of, nodes_of, sub_expressions
from headwater.language.expressions import (
    Aggregate,
    Constant,
    Expression,
    FunctionCall,
    Operation,
    Timestamp,
    VariableReference,
)
from headwater.language.patterns import (
    Alternative,
    Inverse,
    Link,
    NegatedSet,
    OneOrMore,
    Path,
    Sequence,
    TriplePattern,
    ZeroOrMore,
    ZeroOrOne,
)
from headwater.language.stream_clauses import (
    AllSpec,
    CountSpec,
    IntervalSpec,
    LandmarkSpec,
    NowSpec,
    RangeSpec,
    WindowSpec,
)
from headwater.terms.model import RDF, XSD, Literal, NamedNode, Term, Variable
from headwater.terms.names import iri_to_name

_LOCAL_NAME = re.compile(r"[\w](?:[\w.-]*[\w-])?|", re.ASCII)
_BARE_LITERALS = {
    XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD + "double": re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+"),
    XSD + "boolean": re.compile(r"true|false"),
}
_STRENGTH = {"||": 1, "&&": 2, "+": 4, "-": 4, "*": 5, "/": 5, "!": 6, "unary -": 6, "unary +": 6}
_COMPARISON = 3
_UNITS = (
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
)
_LONGEST_STRING = 48


@dataclass(frozen=True)
class Notation:
    """How one query is written.

    `invented_prefix` begins the names of generated variables. `aggregates` says what those of them
    that hold an aggregate stand for, `aliases` the name that SELECT gives to such a variable, `exists` the short
    names of the patterns of EXISTS. With `is_brief`, IRIs without a prefix are cut down to their last part.
    """

    prefixes: tuple[tuple[str, str], ...] = ()
    invented_prefix: str = "hw_"
    aggregates: dict[Variable, Aggregate] = field(default_factory=dict)
    aliases: dict[Variable, Variable] = field(default_factory=dict)
    exists: dict[ExistsPlan, str] = field(default_factory=dict)
    is_brief: bool = False

    @classmethod
    def of(cls, plan: QueryPlan, *, brief: bool = False) -> Notation:
        """The notation of a plan."""
        invented = "hw_"
        while invented in plan.text:
            invented += "_"
        everything = list(nodes_of(plan.root))
        aggregates = {v: a for node in everything if isinstance(node, Group) for v, a in node.aggregates}
        aliases: dict[Variable, Variable] = {}
        for node in everything:
            if isinstance(node, Extend) and isinstance(node.expression, VariableReference):
                held = node.expression.variable
                if held in aggregates and held.value.startswith(invented):
                    aliases.setdefault(held, node.variable)
        return cls(plan.prefixes, invented, aggregates, aliases, _exists_names(everything), brief)

    def iri(self, iri: NamedNode) -> str:
        """An IRI, shortened by the longest prefix that fits."""
        fitting = [
            (name, space)
            for name, space in self.prefixes
            if space and iri.value.startswith(space) and _LOCAL_NAME.fullmatch(iri.value[len(space) :])
        ]
        if fitting:
            prefix, space = max(fitting, key=lambda known: len(known[1]))
            return f"{prefix}:{iri.value[len(space) :]}"
        name = iri_to_name(iri.value)
        if self.is_brief and name == iri.value:
            head, slash, last = iri.value.rstrip("/").rpartition("/")
            if slash and last and len(head) > 8:
                return f"<…/{last}>"
        return f"<{name}>"

    def is_invented(self, variable: Variable) -> bool:
        """Whether the translation generated this variable."""
        return variable.value.startswith(self.invented_prefix)

    def variable(self, variable: Variable) -> str:
        """A variable; an invented one as a blank node, or as the aggregate that it holds."""
        if self.is_invented(variable):
            if variable in self.aggregates:
                return self.expression(self.aggregates[variable])
            return "_:" + variable.value.removeprefix(self.invented_prefix).removeprefix("b_")
        return f"?{variable.value}"

    def variables(self, variables: Iterable[Variable]) -> str:
        """Variables side by side."""
        return " ".join(self.variable(variable) for variable in variables)

    def literal(self, literal: Literal) -> str:
        """A literal; numbers and booleans without quotes."""
        bare = _BARE_LITERALS.get(literal.datatype.value)
        if bare is not None and bare.fullmatch(literal.value):
            return literal.value
        text = literal.value
        if self.is_brief and len(text) > _LONGEST_STRING:
            text = text[: _LONGEST_STRING - 1] + "…"
        quoted = str(Literal(text))
        if literal.language:
            return f"{quoted}@{literal.language}"
        if literal.datatype.value == XSD + "string":
            return quoted
        if literal.datatype.value.startswith(XSD):
            return f"{quoted}^^xsd:{literal.datatype.value.removeprefix(XSD)}"
        return f"{quoted}^^{self.iri(literal.datatype)}"

    def term(self, term: Term | Variable | None) -> str:
        """Anything that can stand in a pattern or a row."""
        match term:
            case None:
                return "UNDEF"
            case NamedNode():
                return self.iri(term)
            case Variable():
                return self.variable(term)
            case Literal():
                return self.literal(term)
        return str(term)

    def predicate(self, predicate: NamedNode | Variable | Path) -> str:
        """The middle of a triple pattern."""
        if isinstance(predicate, Path):
            return self.path(predicate)
        if isinstance(predicate, NamedNode) and predicate.value == RDF + "type":
            return "a"
        return self.term(predicate)

    def triple(self, triple: TriplePattern) -> str:
        """A triple pattern."""
        return f"{self.term(triple.subject)} {self.predicate(triple.predicate)} {self.term(triple.object)}"

    def path(self, path: Path, strength: int = 0) -> str:
        """A property path; `strength` is that of the operator around it."""
        match path:
            case Link(iri):
                return self.predicate(iri)
            case Alternative(left, right):
                text, own = f"{self.path(left, 1)} | {self.path(right, 1)}", 1
            case Sequence(left, right):
                text, own = f"{self.path(left, 2)} / {self.path(right, 2)}", 2
            case Inverse(inner):
                text, own = f"^{self.path(inner, 4)}", 3
            case ZeroOrMore(inner):
                text, own = f"{self.path(inner, 5)}*", 4
            case OneOrMore(inner):
                text, own = f"{self.path(inner, 5)}+", 4
            case ZeroOrOne(inner):
                text, own = f"{self.path(inner, 5)}?", 4
            case NegatedSet(forward, inverse):
                steps = [*map(self.predicate, forward), *(f"^{self.predicate(iri)}" for iri in inverse)]
                return f"!({' | '.join(steps)})"
            case _:
                raise TypeError(f"no notation for {type(path).__name__}")
        return f"({text})" if own < strength else text

    def expression(self, expression: Expression, strength: int = 0) -> str:
        """An expression; `strength` is that of the operator around it."""
        match expression:
            case Constant(value):
                return self.term(value)
            case VariableReference(variable):
                return self.variable(variable)
            case Operation(operator, operands):
                own = _STRENGTH.get(operator, _COMPARISON)
                text = self._operation(operator, operands, own)
                return f"({text})" if own < strength else text
            case FunctionCall(name, arguments, distinct):
                called = self.iri(name) if isinstance(name, NamedNode) else name
                return f"{called}({'DISTINCT ' if distinct else ''}{self._list(arguments)})"
            case ExistsPlan(_, negated):
                return f"{'NOT ' if negated else ''}EXISTS {self.exists.get(expression, '{…}')}"
            case Aggregate(function, argument, distinct, separator):
                inside = "*" if argument is None else self.expression(argument)
                tail = "" if separator is None else f"; SEPARATOR = {Literal(separator)}"
                return f"{function}({'DISTINCT ' if distinct else ''}{inside}{tail})"
            case Timestamp(variable, stream):
                of_stream = "" if stream is None else f", {self.term(stream)}"
                return f"timestamp({self.variable(variable)}{of_stream})"
        raise TypeError(f"no notation for {type(expression).__name__}")

    def _operation(self, operator: str, operands: tuple[Expression, ...], own: int) -> str:
        if operator in ("IN", "NOT IN"):
            return f"{self.expression(operands[0], own + 1)} {operator} ({self._list(operands[1:])})"
        if len(operands) == 1:
            return f"{operator.removeprefix('unary ')}{self.expression(operands[0], own)}"
        # a - (b - c) and (a < b) = c need their parentheses, a && (b && c) does not.
        right = own if operator in ("&&", "||") else own + 1
        left = own + 1 if own == _COMPARISON else own
        return f" {operator} ".join(
            self.expression(operand, left if place == 0 else right) for place, operand in enumerate(operands)
        )

    def _list(self, expressions: Iterable[Expression]) -> str:
        return ", ".join(self.expression(expression) for expression in expressions)

    def window(self, spec: WindowSpec) -> str:
        """A window as a query writes it, without the brackets."""
        match spec:
            case RangeSpec(width, slide):
                text = f"RANGE {duration_text(width)}{_step(slide, width)}"
            case CountSpec(size, step, unit):
                word = "TRIPLES" if unit == "triples" else "ELEMENTS"
                tail = "" if step is None else " TUMBLING" if step == size else f" STEP {step}"
                text = f"{word} {size}{tail}"
            case IntervalSpec(start, end, slide):
                text = f"FROM {_before_now(start)} TO {_before_now(end)}{_step(slide, None)}"
            case LandmarkSpec(start, slide):
                text = f"FROM {instant_text(start)} TO NOW{_step(slide, None)}"
            case NowSpec():
                text = "NOW"
            case AllSpec():
                text = "ALL"
            case _:
                raise TypeError(f"no notation for {type(spec).__name__}")
        predicate = getattr(spec, "timestamp_predicate", None)
        return f"{text} @{self.iri(predicate)}" if isinstance(predicate, NamedNode) else text


def duration_text(microseconds: int) -> str:
    """A duration in the units of the dialects: `1h30m`."""
    if microseconds == 0:
        return "0s"
    sign, rest, text = ("-" if microseconds < 0 else ""), abs(microseconds), ""
    for unit, length in _UNITS:
        count, rest = divmod(rest, length)
        text += f"{count}{unit}" if count else ""
    return sign + text


def instant_text(microseconds: int) -> str:
    """An instant as ISO 8601 in UTC; one that no calendar reaches as its number."""
    try:
        instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:
        return f"{microseconds}us"
    return instant.isoformat().replace("+00:00", "Z")


def _step(slide: int | None, width: int | None) -> str:
    if slide is None:
        return ""
    return " TUMBLING" if slide == width else f" STEP {duration_text(slide)}"


def _before_now(offset: int) -> str:
    return f"NOW-{duration_text(offset)}" if offset else "NOW"


def _exists_names(everything: Iterable[Node]) -> dict[ExistsPlan, str]:
    names: dict[ExistsPlan, str] = {}
    for node in everything:
        for expression in expressions_of(node):
            for part in sub_expressions(expression):
                if isinstance(part, ExistsPlan):
                    names.setdefault(part, f"P{len(names) + 1}")
    return names
