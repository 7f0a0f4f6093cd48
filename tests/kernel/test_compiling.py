"""What plans become: which operators, and small operators that only the compiler uses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import ExistsPlan, Node
from headwater.algebra.presentation import Presentation
from headwater.algebra.scope import all_variables, expressions_of, nodes_of, sub_expressions
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.compiler import Compiler
from headwater.kernel.compiling.existence import is_closed
from headwater.kernel.compiling.join_inputs import JoinInput, join_all
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.operators.compatible_join import CompatibleJoinOperator
from headwater.kernel.operators.left_join import LeftJoinOperator
from headwater.kernel.operators.mark_existence import ExistenceOperator
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator
from headwater.kernel.operators.now import NetChangeOperator, NowOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.presenter import Presenter
from headwater.kernel.operators.semi_join import SemiJoinOperator
from headwater.kernel.operators.triple_patterns import PatternOperator, SharedOperator, TickClock
from headwater.kernel.operators.triple_times import NewestTimeOperator, TimeTermsOperator
from headwater.language.parser import parse
from headwater.optimizer.optimise import optimise
from headwater.terms.model import XSD, Literal, NamedNode, Variable
from headwater.windows.settings import resolve_settings
from tests.kernel.manual_input import ManualInput, ResultBag

EX = "http://example.org/"
FROM = "FROM STREAM :s [RANGE 10s STEP 1s]"


def operators(pattern: str, select: str = "*", tail: str = "") -> list[Operator]:
    """All operators of a C-SPARQL query, each once."""
    plan = plan_query(parse(f"PREFIX : <{EX}> SELECT {select} {FROM} WHERE {{ {pattern} }} {tail}"))
    root, _ = Compiler(optimise(plan).plan, resolve_settings(plan), Store(), Vocabulary()).compile()
    found: dict[int, Operator] = {}

    def walk(one: Operator) -> None:
        if id(one) not in found:
            found[id(one)] = one
            for below in one.inputs:
                walk(below)

    walk(root)
    return list(found.values())


def kinds(pattern: str, select: str = "*", tail: str = "") -> list[type[Operator]]:
    return [type(one) for one in operators(pattern, select, tail)]


def exists_plans(node: Node) -> Iterator[ExistsPlan]:
    for inner in nodes_of(node):
        for expression in expressions_of(inner):
            yield from (part for part in sub_expressions(expression) if isinstance(part, ExistsPlan))


def test_joins_are_one_multiway_join_where_everything_is_bound() -> None:
    found = operators("{ ?x :p ?v . ?x :q ?w } { ?x :r ?z FILTER(?z > 1) } GRAPH :s { ?x :t ?u }")
    (join,) = [one for one in found if isinstance(one, MultiwayJoinOperator)]
    assert len(join.inputs) == 4


def test_what_may_be_unbound_joins_by_compatibility() -> None:
    assert CompatibleJoinOperator not in kinds("?x :p ?v OPTIONAL { ?x :q ?w } ?x :r ?z")
    assert CompatibleJoinOperator in kinds("?x :p ?v OPTIONAL { ?x :q ?w } { ?y :r ?w }")


def test_an_input_that_connects_others_keeps_them_from_multiplying() -> None:
    one, other, between = ManualInput("a"), ManualInput("b"), ManualInput("a", "b")
    found = join_all(
        [JoinInput(one, frozenset("a")), JoinInput(other, frozenset("b")), JoinInput(between, frozenset("a"))]
    ).operator
    assert isinstance(found, CompatibleJoinOperator)
    assert not any(isinstance(below, MultiwayJoinOperator) for below in found.inputs)
    results = ResultBag(found)
    one.feed([(1,)])
    other.feed([(2,), (3,)])
    between.feed([(1, UNBOUND), (1, 3), (2, 2)])
    assert results.advance() == {(1, 2): 1, (1, 3): 2}


def test_equal_patterns_share_one_operator() -> None:
    found = operators("?x :p ?v . ?y :p ?w . ?z :q ?v")
    assert len([one for one in found if isinstance(one, PatternOperator)]) == 2


def test_exists_is_a_semi_join_or_a_mark() -> None:
    assert SemiJoinOperator in kinds("?x :p ?v FILTER NOT EXISTS { ?x :q ?w }")
    assert ExistenceOperator in kinds("?x :p ?v FILTER(?v > 1 || EXISTS { ?x :q ?w })")
    assert LeftJoinOperator in kinds("?x :p ?v OPTIONAL { ?x :q ?w FILTER EXISTS { ?w :r ?z } }")


@pytest.mark.parametrize(
    ("pattern", "closed"),
    [
        ("?x :q ?w", True),
        ("?x :q ?w FILTER(?w > 1)", True),
        ("?x :q ?w FILTER(?w > ?v)", False),
        ("?x :q ?w FILTER(?x != ?w)", True),
        ("?y :q ?w OPTIONAL { ?y :r ?x } FILTER(BOUND(?x))", False),
        ("{ ?y :q ?w OPTIONAL { ?y :r ?x } } { ?y :q ?z }", False),
        ("{ ?x :q ?w OPTIONAL { ?x :r ?y } } { ?y :q ?z }", True),
        ("{ SELECT ?x { ?x :q ?v } } ?x :q ?y", True),
        ("{ SELECT ?x (COUNT(?v) AS ?n) { ?x :q ?v } GROUP BY ?x } ?x :q ?y", True),
        ("{ SELECT (MAX(?x) AS ?n) { ?x :q ?v } } ?x :q ?y", True),
        ("{ SELECT ?x { ?x :q ?v } LIMIT 1 } ?x :q ?y", False),
        ("?x :q ?y MINUS { ?x :r ?z }", False),
        ("?y :q ?w MINUS { ?y :r ?z }", True),
        ("?x :q* ?y", False),
        ("?x :q ?w FILTER NOT EXISTS { ?w :r ?v }", False),
        ("?x :q ?w FILTER(timestamp(?x) > 1)", False),
        ("?y :q ?w FILTER(timestamp(?y) > 1)", True),
    ],
)
def test_a_pattern_is_closed_while_nothing_in_it_looks_outside(pattern: str, closed: bool) -> None:
    text = f"PREFIX : <{EX}> SELECT * {FROM} WHERE {{ ?x :p ?v FILTER EXISTS {{ {pattern} }} }}"
    exists = next(exists_plans(plan_query(parse(text)).root))
    around = frozenset(v for v in all_variables(exists.plan) if v.value in ("x", "v"))
    assert is_closed(exists.plan, around) == closed


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("?x :p+ ?v", "a property path of any length over a stream"),
        ("?x :p ?v SERVICE :e { ?x :q ?w }", "SERVICE"),
        ("?x :p ?v FILTER(RAND() > 0.5)", "RAND(), which is no function of its row"),
        ("?x :p ?v FILTER(:distance(?v) > 1)", f"<{EX}distance>, a function that is not known"),
        ("?x :p ?v FILTER EXISTS { ?y :q ?w MINUS { ?y :r ?x } }", "EXISTS that looks outside from within Minus"),
    ],
)
def test_what_stays_with_the_reference_says_why(pattern: str, reason: str) -> None:
    with pytest.raises(UnsupportedByKernel) as caught:
        kinds(pattern)
    assert str(caught.value) == reason


def test_the_newest_time_of_a_row_is_shown_whatever_comes_and_goes() -> None:
    source = ManualInput("v", "t", "t2")
    results = ResultBag(NewestTimeOperator(source, 1))
    source.feed([(1, 10, UNBOUND), (1, 30, 30), (2, UNBOUND, UNBOUND)])
    assert results.advance() == {(1, 30, 30): 1, (2, UNBOUND, UNBOUND): 1}
    source.feed([(1, 20, 20), (2, 5, UNBOUND)], [(1, 30, 30)])
    assert results.advance() == {(1, 20, 20): 1, (2, 5, UNBOUND): 1}
    source.feed([], [(1, 10, UNBOUND), (2, 5, UNBOUND)])
    assert results.advance() == {(1, 20, 20): 1, (2, UNBOUND, UNBOUND): 1}
    source.feed([(3, 1, 1)], [(1, 20, 20), (2, UNBOUND, UNBOUND), (3, 1, 1)])
    assert results.advance() == {}


def test_times_are_milliseconds_as_terms() -> None:
    vocabulary = Vocabulary()
    source = ManualInput("v", "t")
    operator = TimeTermsOperator(source, 1, vocabulary)
    source.feed([(1, 2_000_000), (1, 1_500), (1, UNBOUND)])
    times = [vocabulary.term_of(number) for number in operator.advance().added[:, 1].tolist()]
    assert [None if term is None else str(term).partition("#")[2].rstrip(">") for term in times] == [
        "integer",
        "decimal",
        None,
    ]
    assert [getattr(term, "value", None) for term in times] == ["2000", "1.5", None]


def test_now_is_another_row_at_another_tick_only() -> None:
    vocabulary, clock = Vocabulary(), TickClock()
    now = NowOperator("now", clock, vocabulary)
    results = ResultBag(now)
    clock.now = 1_000_000
    (first,) = results.advance()
    assert now.advance().is_empty
    clock.now = 2_000_000
    (second,) = results.advance()
    assert [getattr(vocabulary.term_of(row[0]), "value", None) for row in (first, second)] == [
        "1970-01-01T00:00:01Z",
        "1970-01-01T00:00:02Z",
    ]


def test_rows_that_come_and_go_at_once_are_netted() -> None:
    source = ManualInput("v")
    operator = NetChangeOperator(source)
    source.feed([(1,), (1,), (2,)], [(1,), (3,)])
    delta = operator.advance()
    assert (sorted(delta.added.tolist()), delta.removed.tolist()) == ([[1], [2]], [[3]])


@pytest.mark.parametrize("turned", [False, True])
def test_equal_values_stand_in_the_order_of_their_texts(turned: bool) -> None:
    vocabulary = Vocabulary()
    kinds = [("2.0", "decimal"), ("2", "integer"), ("1", "integer"), ("02", "integer"), ("2.0", "double")]
    terms = [(Literal(text, datatype=NamedNode(XSD + kind)),) for text, kind in (kinds[::-1] if turned else kinds)]
    presentation = Presentation((), (Variable("v"),), is_distinct=False, offset=1, limit=4)
    rows = Presenter(presentation, [], [0], vocabulary).order_and_slice(vocabulary.ids_of_rows(terms, 1))
    found = [str(row[0]).replace(f"^^<{XSD}", " ").rstrip(">") for row in vocabulary.terms_of_rows(rows)]
    assert found == ['"02" integer', '"2" integer', '"2.0" decimal', '"2.0" double']


def test_a_shared_operator_is_asked_once_per_tick() -> None:
    clock = TickClock()
    source = ManualInput("v")
    shared = SharedOperator(source, clock)
    clock.tick = 1
    source.feed([(1,)])
    assert shared.advance().added.tolist() == shared.advance().added.tolist() == [[1]]
    clock.tick = 2
    assert shared.advance().is_empty
