"""The kernel's expressions equal the reference's for every kind of term, and need no pyoxigraph where ids suffice."""

from __future__ import annotations

import math
import random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Extend, Filter, Project
from headwater.algebra.scope import expression_variables
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions import pyoxigraph_evaluation
from headwater.kernel.expressions.arithmetic import ROUNDING
from headwater.kernel.expressions.compiled_expressions import CompiledExpression, can_evaluate
from headwater.kernel.expressions.pyoxigraph_evaluation import PyoxigraphExpression
from headwater.language.builtins import ARGUMENT_COUNTS
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.language.parser import parse
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Row, Term, Triple, Variable
from tests.kernel.expression_pool import BASE, BLANKS, IRIS, LITERALS, TERMS, reference_holds, reference_values, words

NAMES = ("a", "b", "c")
A, B, C = (VariableReference(Variable(name)) for name in NAMES)
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
BINARY = (*COMPARISONS, "+", "-", "*", "/")
CONSTANTS: list[Literal | NamedNode] = [*LITERALS, *IRIS]
UNSTEADY = {"NOW", "RAND", "UUID", "STRUUID", "BNODE"}


def number(text: str, datatype: str = "integer") -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


def call(name: str | NamedNode, *arguments: Expression) -> FunctionCall:
    return FunctionCall(name, arguments)


def op(operator: str, *operands: Expression) -> Operation:
    return Operation(operator, operands)


def text(value: str) -> Constant:
    return Constant(Literal(value))


def expression_of(written: str) -> Expression:
    """An expression as the planner sees it."""
    prefixes = f"PREFIX xsd: <{XSD}> PREFIX : <http://example/>"
    plan = plan_query(parse(f"{prefixes} SELECT (({written}) AS ?result) {{ ?a ?b ?c }}", base=BASE))
    node = plan.root
    while isinstance(node, Project):
        node = node.inner
    assert isinstance(node, Extend)
    return node.expression


def check(expression: Expression, rows: list[Row], names: tuple[str, ...] = NAMES) -> None:
    """Values and truth of all rows together, and of each alone, are the reference's."""
    vocabulary = Vocabulary()
    compiled = CompiledExpression(expression, names, vocabulary, base=BASE)
    ids = vocabulary.ids_of_rows(rows, len(names))
    values = [value for (value,) in reference_values([expression], names, rows)]
    holds = reference_holds(expression, names, rows)
    assert [vocabulary.term_of(value) for value in compiled.compute_values(ids).tolist()] == values
    assert compiled.test_rows(ids).tolist() == holds
    alone = CompiledExpression(expression, names, vocabulary, base=BASE)
    for i in range(min(len(rows), 12)):
        assert vocabulary.term_of(int(alone.compute_values(ids[i : i + 1])[0])) == values[i]
        assert bool(alone.test_rows(ids[i : i + 1])[0]) == holds[i]


def sampled(width: int, size: int, seed: int = 0) -> list[Row]:
    """Rows over all terms: each term in each column, in shuffled company."""
    shuffle = random.Random(seed)
    columns: list[list[Term | None]] = []
    for _ in range(width):
        column = TERMS * (size // len(TERMS) + 1)
        shuffle.shuffle(column)
        columns.append(column[:size])
    return list(zip(*columns, strict=True))


CASTS = words("boolean double float decimal integer string date time dateTime duration dayTimeDuration gYear")
WRITTEN = [
    *(f"{name}(?a)" for name in words("STR LANG DATATYPE IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE")),
    *(f"{name}(?a)" for name in words("ENCODE_FOR_URI YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ")),
    *(f"{name}(?a)" for name in words("MD5 SHA1 SHA256 SHA384 SHA512 isIRI isURI isBLANK isLITERAL isNUMERIC BOUND")),
    *(f"{name}(?a, ?b)" for name in words("LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG")),
    *(f"{name}(?a, ?b)" for name in words("STRDT sameTerm REGEX SUBSTR CONCAT COALESCE")),
    'LANGMATCHES(LANG(?a), "en")',
    "LANGMATCHES(LANG(?a), '*')",
    "STRLANG(STR(?a), 'en')",
    "STRDT(STR(?a), xsd:integer)",
    "STRDT(STR(?a), xsd:decimal) = ?b",
    "IRI(STR(?a))",
    "SUBSTR(STR(?a), 2)",
    "SUBSTR(STR(?a), 1, 2)",
    "REGEX(STR(?a), '^A', 'i')",
    "REPLACE(STR(?a), '[0-9]', 'n')",
    "REPLACE(STR(?a), 'B', '', 'i')",
    "STRBEFORE(STR(?a), 'b')",
    "STRAFTER(?a, 'b')",
    "CONCAT()",
    "CONCAT(?a, STR(?b), 'x')",
    "IF(?a, ?b, ?c)",
    "IF(BOUND(?a), ?a, ?b)",
    "IF(?a = ?b, ?c, 01)",
    "COALESCE(?a, ?b, 01)",
    "COALESCE(?a + 1, ?b / 2, 'none')",
    "COALESCE(?a / 0, -?b)",
    "STR(COALESCE(?a, ?b))",
    "DATATYPE(IF(BOUND(?a), ?a, ?b))",
    "isNUMERIC(?a) && ?a > 5",
    "?a",
    "!?a",
    "?a && ?b",
    "?a || ?b",
    "!(?a && !?b) || ?c",
    "?a IN (1, 'a', :a, ?b)",
    "?a NOT IN (1, 'a', :a, ?b)",
    "?a IN ()",
    "?a NOT IN ()",
    "?a IN (:a, :b)",
    "?a IN ('2020-02-29'^^xsd:date, '2020'^^xsd:gYear, 1)",
    "?a NOT IN ('12:00:00'^^xsd:time, ?b)",
    "IF(?a = ?b, ?a, ?c) != ?b",
    "IF(?a = ?b, ?a, ?c) NOT IN ('2020-02-29Z'^^xsd:date, ?b + 1, ?b)",
    "(?a / ?b) / (?c / 2)",
    "?missing",
    "BOUND(?missing)",
    "?missing > 5 || ?a = ?a",
    "?a + 1",
    "?a - 0.5",
    "?a * 1.8e0 + 32",
    "?a * 0.1",
    "1 / ?a",
    "?a / 3",
    "?a / 2e0",
    "-?a",
    "+?a",
    "- - ?a",
    "?a + ?b",
    "?a - ?b",
    "?a * ?b",
    "?a / ?b",
    "(?a + ?b) * 2 > ?c",
    "(?a * 3) + 0",
    "STRLEN(STR(?a)) + 1 > 4",
    "YEAR(?a) = 2020",
    "sameTerm(?a, 01)",
    "sameTerm(?a, ?b + 0)",
    "sameTerm(?a, :a)",
    "01",
    "'x'",
    "1 = 1.0",
    "2 > 'a'",
    "1 + 1",
    *(f"xsd:{cast}(?a)" for cast in CASTS),
]


@pytest.mark.parametrize("written", WRITTEN)
def test_each_function_and_form(written: str) -> None:
    expression = expression_of(written)
    assert can_evaluate(expression)
    alone = len(expression_variables(expression)) < 2
    check(expression, sampled(3, len(TERMS) if alone else 2 * len(TERMS), seed=len(written)))


def test_every_built_in_is_listed() -> None:
    everything = " ".join(WRITTEN).upper()
    missing = {name for name in ARGUMENT_COUNTS if f"{name}(" not in everything}
    assert missing == UNSTEADY


@pytest.fixture(scope="module")
def all_pairs() -> dict[str, dict[Row, Term | None]]:
    """What the reference makes of every operator on every pair of terms."""
    rows: list[Row] = [(left, right) for left in TERMS for right in TERMS]
    found = reference_values([op(operator, A, B) for operator in BINARY], ("a", "b"), rows)
    return {operator: {row: one[i] for row, one in zip(rows, found, strict=True)} for i, operator in enumerate(BINARY)}


@pytest.mark.parametrize("operator", BINARY)
def test_every_pair_of_terms(operator: str, all_pairs: dict[str, dict[Row, Term | None]]) -> None:
    expected = all_pairs[operator]
    vocabulary = Vocabulary()
    compiled = CompiledExpression(op(operator, A, B), ("a", "b"), vocabulary)
    found = vocabulary.terms_of_rows(compiled.compute_values(vocabulary.ids_of_rows(expected, 2)).reshape(-1, 1))
    assert not [
        (pair, one, other) for (pair, other), (one,) in zip(expected.items(), found, strict=True) if one != other
    ]


@pytest.mark.parametrize("operator", BINARY)
def test_every_term_against_every_constant(operator: str, all_pairs: dict[str, dict[Row, Term | None]]) -> None:
    expected = all_pairs[operator]
    vocabulary = Vocabulary()
    ids = vocabulary.ids_of_rows([(term,) for term in TERMS], 1)
    wrong = []
    for constant in CONSTANTS:
        compiled = CompiledExpression(op(operator, A, Constant(constant)), ("a",), vocabulary)
        mirrored = CompiledExpression(op(operator, Constant(constant), A), ("a",), vocabulary)
        found = vocabulary.terms_of_rows(np.stack([compiled.compute_values(ids), mirrored.compute_values(ids)], axis=1))
        for term, (one, other) in zip(TERMS, found, strict=True):
            if (one, other) != (expected[term, constant], expected[constant, term]):
                wrong.append((term, constant, one, other))
    assert not wrong


digits = (
    st.integers(-(2**57), 2**57)
    | st.integers(-1000, 1000)
    | st.integers(2**31 - 9, 2**34)
    | st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**24 + 1])
)
numerals = st.one_of(
    digits.map(lambda n: number(str(n))),
    st.tuples(digits, st.integers(0, 15)).map(lambda p: number(_scaled(*p), "decimal")),
    st.tuples(digits, st.integers(0, 15)).map(lambda p: number(_scaled(*p), "double")),
    st.tuples(st.integers(-1000, 1000), st.integers(0, 3)).map(lambda p: number(_scaled(*p), "decimal")),
    st.tuples(st.integers(-(10**6), 10**6), st.integers(1, 10**5)).map(lambda p: number(_quotient(*p), "decimal")),
    st.tuples(st.integers(-(2**30), 2**30), st.integers(0, 12)).map(lambda p: number(_scaled(*p), "float")),
    st.tuples(st.integers(-(10**4), 10**4), st.integers(0, 2)).map(lambda p: number(_scaled(*p), "float")),
    st.floats(-(2**20), 2**20, width=32).map(lambda x: number(_shortest(x), "float")),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: number(repr(x), "double")),
    st.floats(2**-11, 2**21).map(lambda x: number(repr(x), "double")),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda x: number(repr(x), "float")),
)


def _scaled(mantissa: int, scale: int) -> str:
    if not scale:
        return str(mantissa)
    shown = str(abs(mantissa)).rjust(scale + 1, "0")
    return f"{'-' if mantissa < 0 else ''}{shown[:-scale]}.{shown[-scale:]}"


def _quotient(numerator: int, denominator: int) -> str:
    """Cut after 18 digits."""
    return _scaled((-1 if numerator < 0 else 1) * (abs(numerator) * 10**18 // denominator), 18)


def _shortest(value: float) -> str:
    return np.format_float_positional(np.float32(value), trim="-")


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(BINARY),
    st.lists(st.tuples(numerals, numerals), min_size=1, max_size=30),
    numerals,
)
@example("-", [(number("0"), number("1.00048828125", "double"))], number("-900719"))
@example("/", [(number(str(3 << 33)), number(str(1 << 35)))], number("7"))
def test_numbers_at_the_edges(operator: str, rows: list[Row], constant: Literal) -> None:
    near: list[Row] = [*rows, *((a, a) for a, _ in rows), *((constant, b) for _, b in rows)]
    forms: list[Expression] = [
        op(operator, A, B),
        op(operator, A, Constant(constant)),
        op(operator, Constant(constant), A),
    ]
    forms += [op(operator, op("-", A, B), Constant(constant)), op(operator, op("/", A, B), A)]
    forms += [call(name, A) for name in ROUNDING]
    vocabulary = Vocabulary()
    ids = vocabulary.ids_of_rows(near, 2)
    assert vocabulary.terms_of_rows(ids) == near
    found = np.stack([CompiledExpression(form, ("a", "b"), vocabulary).compute_values(ids) for form in forms], axis=1)
    assert vocabulary.terms_of_rows(found) == reference_values(forms, ("a", "b"), near)


leaves = st.sampled_from([A, B, C, A, B, C, VariableReference(Variable("missing"))]) | st.sampled_from(
    [Constant(term) for term in CONSTANTS]
)
ONE = [name for name, (fewest, _) in ARGUMENT_COUNTS.items() if fewest == 1 and name not in UNSTEADY | {"BOUND"}]
TWO = [name for name, (fewest, most) in ARGUMENT_COUNTS.items() if (fewest, most) in ((2, 2), (2, 3))]


def _grown(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    pairs = st.tuples(inner, inner)
    triples = st.tuples(inner, inner, inner)
    return st.one_of(
        st.builds(Operation, st.sampled_from([*BINARY, "&&", "||"]), pairs),
        st.builds(Operation, st.sampled_from(["&&", "||"]), pairs),
        st.builds(Operation, st.sampled_from(["!", "unary -", "unary +"]), st.tuples(inner)),
        st.builds(Operation, st.sampled_from(["IN", "NOT IN"]), triples),
        st.builds(FunctionCall, st.sampled_from(ONE), st.tuples(inner)),
        st.builds(FunctionCall, st.sampled_from(TWO), pairs),
        st.builds(FunctionCall, st.just("BOUND"), st.tuples(st.sampled_from([A, B, C]))),
        st.builds(FunctionCall, st.sampled_from(["IF", "COALESCE", "CONCAT"]), triples),
        st.builds(FunctionCall, st.sampled_from([NamedNode(XSD + cast) for cast in CASTS]), st.tuples(inner)),
    )


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(leaves, _grown, max_leaves=8),
    st.lists(st.tuples(*[st.sampled_from(TERMS)] * 3), min_size=1, max_size=12),
)
@example(op("!", Constant(number("abc"))), [(None, None, None)])
def test_random_expressions(expression: Expression, rows: list[Row]) -> None:
    check(expression, rows)


@pytest.mark.parametrize(
    "written", ["NOW()", "RAND() > 0", "IF(?a, UUID(), ?b)", "STRUUID()", "BNODE()", "BNODE(?a)", "<urn:own>(?a)"]
)
def test_what_depends_on_more_than_the_row_is_left_to_the_reference(written: str) -> None:
    assert not can_evaluate(expression_of(written))


def test_patterns_aggregates_and_timestamps_are_left_to_the_reference() -> None:
    plan = plan_query(parse("SELECT ?a { ?a ?b ?c FILTER(!EXISTS { ?c ?b ?a } || ?c > 5) }"))
    assert isinstance(plan.root, Project)
    assert isinstance(plan.root.inner, Filter)
    assert not can_evaluate(plan.root.inner.condition)


def test_triple_terms_and_their_blank_nodes() -> None:
    vocabulary = Vocabulary()
    inside = Triple(BlankNode("n"), NamedNode("http://example/p"), number("01"))
    other = Triple(BlankNode("m"), NamedNode("http://example/p"), number("01"))
    ids = vocabulary.ids_of_rows([(inside, inside), (inside, other), (inside, None)], 2)
    assert CompiledExpression(call("SAMETERM", A, B), ("a", "b"), vocabulary).test_rows(ids).tolist() == [
        True,
        False,
        False,
    ]
    chosen = CompiledExpression(call("COALESCE", B, A), ("a", "b"), vocabulary).compute_values(ids)
    assert vocabulary.terms_of_rows(chosen.reshape(-1, 1)) == [(inside,), (other,), (inside,)]
    fallback = PyoxigraphExpression(call("COALESCE", B, A), [A.variable, B.variable], vocabulary, None)
    assert fallback.compute_ids([ids[:, 0], ids[:, 1]], 3).tolist() == chosen.tolist()


def test_columns_in_any_layout() -> None:
    vocabulary = Vocabulary()
    ids = vocabulary.ids_of_rows([(number(str(i)), number(str(5 - i))) for i in range(6)], 2)
    compiled = CompiledExpression(op("<", A, B), ("a", "b"), vocabulary)
    assert compiled.test_rows(np.asfortranarray(ids)).tolist() == [True, True, True, False, False, False]
    assert compiled.test_rows(ids[::2]).tolist() == [True, True, False]


def test_inline_values_are_never_left_to_pyoxigraph() -> None:
    vocabulary = Vocabulary()
    rows = vocabulary.ids_of_rows(
        [(number("79"),), (number("80.5", "decimal"),), (number("81", "double"),), (None,)], 1
    )
    conditions = [
        (op(">", A, Constant(number("80"))), [False, True, True, False]),
        (op(">", op("+", A, Constant(number("1"))), Constant(number("8.1e1", "double"))), [False, True, True, False]),
        (op("=", A, Constant(NamedNode("http://example/a"))), [False] * 4),
        (op("&&", call("BOUND", A), op("!", op("<", A, A))), [True, True, True, False]),
    ]
    with patch.object(PyoxigraphExpression, "_query_pyoxigraph", side_effect=AssertionError("left to pyoxigraph")):
        for condition, expected in conditions:
            assert CompiledExpression(condition, ("a",), vocabulary).test_rows(rows).tolist() == expected


def test_computed_numbers_are_never_left_to_pyoxigraph() -> None:
    vocabulary = Vocabulary()
    pairs = {
        "float": [("20.3", "19.7"), ("7.25", "7.25"), ("-3.5", "1000000")],
        "double": [("20.3", "19.7"), ("7.25", "7.25"), ("-3.5", "1000000")],
        "decimal": [("20.3", "19.7"), ("0", "25.4"), ("-1", "0.3")],
        "integer": [("20", "3"), ("0", "7"), ("-22", "7")],
    }
    rows: list[Row] = [(number(a, kind), number(b, kind)) for kind, listed in pairs.items() for a, b in listed]
    ids = vocabulary.ids_of_rows(rows, 2)
    tested = ("?a - ?b > 2.5", "ABS(?a - ?b) < 1", "?a / ?b >= 0.5", "ROUND(?a * 3) = 61", "?a * 2 + ?b != CEIL(?b)")
    conditions = [*map(expression_of, tested)]
    with patch.object(PyoxigraphExpression, "_query_pyoxigraph", side_effect=AssertionError("left to pyoxigraph")):
        found = [CompiledExpression(one, ("a", "b"), vocabulary).test_rows(ids).tolist() for one in conditions]
    assert found == [reference_holds(condition, ("a", "b"), rows) for condition in conditions]


def test_powers_of_two_and_their_neighbours_as_floats() -> None:
    powers = [float(np.float32(2.0**power)) for power in range(-20, 27)]
    beside = [float(np.nextafter(np.float32(one), np.float32(way))) for one in powers for way in (0.0, math.inf)]
    check(
        op("-", A, Constant(number("0", "float"))),
        [(number(_shortest(one), "float"),) for one in powers + beside],
        ("a",),
    )
    check(op("*", A, Constant(number("0.5", "float"))), [(number(_shortest(one), "float"),) for one in powers], ("a",))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(-(10**6), 10**6), st.integers(1, 10**5)), min_size=1, max_size=10))
@example([(1, 3), (2, 3), (-22, 7)])
def test_quotients_beside_what_is_nearly_the_same(fractions: list[tuple[int, int]]) -> None:
    rows: list[Row] = []
    for numerator, denominator in fractions:
        cut, near = number(_quotient(numerator, denominator), "decimal"), numerator / denominator
        others = [number(repr(math.nextafter(near, way)), "double") for way in (-math.inf, near, math.inf)]
        others += [number(_shortest(near), "float"), number(f"{near:.14f}", "decimal")]
        others += [cut, number(_quotient(numerator + 1, denominator), "decimal"), number(f"{near:.4f}", "float")]
        rows += [(cut, other) for other in others]
    forms = [op(operator, *pair) for operator in COMPARISONS for pair in ((A, B), (B, A))]
    vocabulary = Vocabulary()
    ids = vocabulary.ids_of_rows(rows, 2)
    found = np.stack([CompiledExpression(form, ("a", "b"), vocabulary).compute_values(ids) for form in forms], axis=1)
    assert vocabulary.terms_of_rows(found) == reference_values(forms, ("a", "b"), rows)


def test_zero_can_be_divided_by_any_other_number() -> None:
    rows: list[Row] = [(number(a, kind), number("25.4", "decimal")) for kind in ("integer", "decimal") for a in "05"]
    values = reference_values([expression_of("?a / ?b")], ("a", "b"), rows)
    five = number("0.19685039370078740157"[:20], "decimal")
    assert values == [(number("0", "decimal"),), (five,)] * 2
    check(expression_of("?a / ?b"), rows, ("a", "b"))
    check(expression_of("?a / 0.0"), rows, ("a", "b"))
    check(expression_of("(?a + ?a) / (0.5 / ?b) / 1.5"), rows, ("a", "b"))


def test_results_are_cached() -> None:
    vocabulary = Vocabulary()
    ids = vocabulary.ids_of_rows([(Literal(f"text number {i % 10}"),) for i in range(100)], 1)
    compiled = CompiledExpression(call("CONCAT", A, text("!")), ("a",), vocabulary)
    before = compiled.compute_values(ids)
    with patch.object(PyoxigraphExpression, "_query_pyoxigraph", side_effect=AssertionError("left to pyoxigraph")):
        assert compiled.compute_values(ids[::-1]).tolist() == before[::-1].tolist()


def test_resources_are_compared_by_their_ids() -> None:
    vocabulary = Vocabulary()
    terms: list[Term] = [*(NamedNode(f"http://example/{i}") for i in range(300)), *BLANKS, Literal("a text of its own")]
    ids = vocabulary.ids_of_rows([(a, b) for a in terms[::3] for b in terms], 2)
    equal, other = (CompiledExpression(op(operator, A, B), ("a", "b"), vocabulary) for operator in ("=", "!="))
    with patch.object(PyoxigraphExpression, "_query_pyoxigraph", side_effect=AssertionError("left to pyoxigraph")):
        known = ids[:, 0] != vocabulary.id_of(terms[-1])
        for start in (0, 1000, 0):
            part = ids[known][start:]
            assert (equal.test_rows(part) == (part[:, 0] == part[:, 1])).all()
            assert (other.test_rows(part) == (part[:, 0] != part[:, 1])).all()


def test_memory_is_bounded_and_results_stay_right() -> None:
    vocabulary = Vocabulary()
    with patch.object(pyoxigraph_evaluation, "CACHE_SIZE", 50):
        fallback = PyoxigraphExpression(call("CONCAT", A, text("!")), [A.variable], vocabulary, None)
        for size in (30, 45, 60, 10, 120):
            texts = [f"text number {i}" for i in range(size)]
            found = fallback.compute_ids([vocabulary.ids_of_rows([(Literal(t),) for t in texts], 1)[:, 0]], size)
            assert vocabulary.terms_of_rows(found.reshape(-1, 1)) == [(Literal(t + "!"),) for t in texts]
            assert len(fallback._result_ids) <= 50
            assert len(fallback._result_terms) <= 50


def test_results_outlive_a_sweep_of_the_vocabulary() -> None:
    vocabulary = Vocabulary()
    ids = vocabulary.ids_of_rows([(Literal("quite a long text"),), (BLANKS[0],)], 1)
    compiled = CompiledExpression(
        call("IF", call("ISBLANK", A), text("a constant text"), call("UCASE", A)), ("a",), vocabulary
    )
    before = compiled.compute_values(ids)
    vocabulary.sweep([ids])
    after = compiled.compute_values(ids)
    assert after.tolist() == before.tolist()
    assert vocabulary.terms_of_rows(after.reshape(-1, 1)) == [
        (Literal("QUITE A LONG TEXT"),),
        (Literal("a constant text"),),
    ]


def test_no_rows_and_no_columns() -> None:
    vocabulary = Vocabulary()
    three = CompiledExpression(op("+", Constant(number("1")), Constant(number("2"))), (), vocabulary)
    assert (
        vocabulary.terms_of_rows(three.compute_values(np.zeros((2, 0), dtype=np.int64)).reshape(-1, 1))
        == [(number("3"),)] * 2
    )
    assert three.test_rows(np.zeros((0, 0), dtype=np.int64)).tolist() == []
    nothing = CompiledExpression(op("<", A, Constant(number("1"))), (), vocabulary)
    assert nothing.compute_values(np.zeros((1, 0), dtype=np.int64)).tolist() == [UNBOUND]
