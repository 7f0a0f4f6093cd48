"""Terms of every kind for tests of expressions, and the values that the reference computes from them."""

from __future__ import annotations

from collections.abc import Sequence

from pyoxigraph import Quad, Store

from headwater.algebra.build import plan_query
from headwater.algebra.scope import expression_variables
from headwater.algebra.to_sparql import expression_to_sparql
from headwater.language.expressions import Expression
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import RDF, XSD, BlankNode, Literal, NamedNode, Row, Term, Variable
from headwater.terms.stored_forms import to_stored_quad
from headwater.windows.settings import Options, resolve_settings


def words(text: str) -> list[str]:
    return text.split()


_HERE = "http://example/test/"
_NUMBERS = {
    "integer": words("0 1 -1 2 7 80 81 01 +5 -0 9007199254740993 144115188075855872 9223372036854775807 seven"),
    "int": words("1 80 -3 0080"),
    "long": words("1 81 99999999999"),
    "byte": words("2 300"),
    "nonNegativeInteger": ["7"],
    "decimal": words("0 0.0 1 1.0 1.5 -2.25 80.5 80.50 0.1 0.3 123456789.123456 0.000000000000001 -0.0 +1.5 .5 x"),
    "double": words("0 1 80 0.1 0.3 80.5 21.3 1.0E0 8.0E1 1e2 -0.0 NaN INF -INF 0.30000000000000004 1e30 1e-7 1.50"),
    "float": words("0 1 80 0.1 80.5 1.0E0 16777216 3.4E38 NaN 1.50"),
    "boolean": words("true false 1 0 TRUE"),
}
_TIMES = {
    "dateTime": words(
        "2020-02-29T12:00:00Z 2020-02-29T12:00:00 2020-02-29T14:00:00+02:00 2020-02-29T12:00:00.500Z "
        "2020-02-29T12:00:00.5Z 1900-01-01T00:00:00Z 2020-02-30T00:00:00Z 0001-01-01T00:00:00Z"
    ),
    "dateTimeStamp": ["2020-02-29T12:00:00Z"],
    "date": words("2020-02-29 2020-02-29Z 2020-03-01Z 2020-02-29+02:00 2020-02-30"),
    "time": ["12:00:00Z", "12:00:00"],
    "gYear": ["2020", "2020Z", "2022Z"],
    "gMonthDay": ["--02-29", "--02-29Z"],
    "dayTimeDuration": ["PT36H", "P1D"],
    "duration": ["P1Y"],
}
_TEXTS = [
    "",
    "a",
    "b",
    "abc",
    "Abc",
    "http://example/a",
    "a longer text than fits",
    "Straße",
    "été",
    'q"\\\n',
    "01",
    "2",
]
LITERALS: list[Literal] = [
    *(
        Literal(text, datatype=NamedNode(XSD + kind))
        for kind, texts in {**_NUMBERS, **_TIMES}.items()
        for text in texts
    ),
    *map(Literal, _TEXTS),
    *(Literal("abc", language=tag) for tag in ("en", "en-GB", "fr")),
    Literal("a", language="en"),
    Literal("x", datatype=NamedNode("http://example/type")),
    Literal("y", datatype=NamedNode("http://example/type")),
]
IRIS = [NamedNode("http://example/a"), NamedNode("http://example/b"), NamedNode(XSD + "integer")]
BLANKS = [BlankNode("b0"), BlankNode("some"), BlankNode("a1b2")]
TERMS: list[Term | None] = [None, *LITERALS, *IRIS, *BLANKS]


def reference_values(expressions: Sequence[Expression], variables: tuple[str, ...], rows: list[Row]) -> list[Row]:
    """`SELECT (expression AS ?result)` for each row, by the reference evaluator over a store that holds the rows."""
    wanted = " ".join(f"(({expression_to_sparql(e)}) AS ?result{i})" for i, e in enumerate(expressions))
    found = _evaluate(f"SELECT ?row {wanted}", "", _read(expressions, variables), variables, rows)
    return [found[i][1:] for i in range(len(rows))]


def reference_holds(expression: Expression, variables: tuple[str, ...], rows: list[Row]) -> list[bool]:
    """Which rows pass `FILTER(expression)`."""
    test = f"FILTER({expression_to_sparql(expression)})"
    found = _evaluate("SELECT ?row", test, _read([expression], variables), variables, rows)
    return [i in found for i in range(len(rows))]


def _read(expressions: Sequence[Expression], variables: tuple[str, ...]) -> list[str]:
    return [name for name in variables if any(Variable(name) in expression_variables(e) for e in expressions)]


def _evaluate(select: str, tail: str, read: list[str], variables: tuple[str, ...], rows: list[Row]) -> dict[int, Row]:
    optional = " ".join(f"OPTIONAL {{ ?row <{_HERE}{name}> ?{name} }}" for name in read)
    plan = plan_query(parse(f"{select} WHERE {{ ?row a <{_HERE}Row> {optional} {tail} }}", base=_HERE))
    quads: list[Quad] = []
    for i, row in enumerate(rows):
        subject = NamedNode(f"{_HERE}{i}")
        quads.append(Quad(subject, NamedNode(RDF + "type"), NamedNode(_HERE + "Row")))
        cells = ((name, term) for name, term in zip(variables, row, strict=True) if name in read and term is not None)
        quads.extend(to_stored_quad(Quad(subject, NamedNode(_HERE + name), term)) for name, term in cells)
    store = Store()
    store.extend(quads)
    (answer,) = ReferenceEvaluator(plan, resolve_settings(plan, Options()), store).advance({}, None, ended=True)
    return {int(row[0].value.removeprefix(_HERE)): row for row in answer.rows if isinstance(row[0], NamedNode)}


BASE = _HERE
