"""The kernel equals the reference on patterns inside patterns: EXISTS, MINUS, OPTIONAL, sub-queries, outer values.

Few names and little data, so that everything meets. 1,000 queries, in `make soak` 50,000.
"""

from __future__ import annotations

from random import Random

import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import Element, Literal, NamedNode, Row, Triple
from headwater.windows.settings import resolve_settings

STREAM = "http://example.org/s"
HERE = "http://example.org/"
VARIABLES = ("?x", "?y", "?v", "?w")
RESOURCES = (":a",)
NUMBERS = ("1",)


class Pattern:
    """Draws the text of a query and the triples that it is asked of."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names = 0

    def query(self) -> str:
        around = self._triples() if self._random.random() < 0.8 else self._group(1)
        return f"{around} FILTER({self._exists(2)})"

    def triples(self) -> tuple[Triple, ...]:
        nodes = [NamedNode(HERE + name) for name in "ab"]
        predicates = [NamedNode(HERE + name) for name in "pq"]
        pick = self._random.choice
        values: list[NamedNode | Literal] = [*nodes, Literal(1), Literal(2)]
        drawn = (Triple(pick(nodes), pick(predicates), pick(values)) for _ in range(self._random.randint(3, 12)))
        return tuple(dict.fromkeys(drawn))

    def _triples(self) -> str:
        pick = self._random.choice
        subjects, objects = (*VARIABLES, *RESOURCES), (*VARIABLES, *RESOURCES, *NUMBERS)
        return "".join(f"{pick(subjects)} :{pick('pq')} {pick(objects)} . " for _ in range(pick((1, 1, 1, 2))))

    def _value(self) -> str:
        return self._random.choice((*VARIABLES, *NUMBERS, ":a"))

    def _exists(self, depth: int) -> str:
        return f"{self._random.choice(('', 'NOT '))}EXISTS {{ {self._group(depth)} }}"

    def _comparison(self) -> str:
        return f"{self._value()} {self._random.choice(('=', '!=', '<', '>='))} {self._value()}"

    def _condition(self, depth: int) -> str:
        kind = self._random.choice(("compare", "compare", "compare", "bound", "not", "either", "exists"))
        match kind:
            case "bound":
                return f"BOUND({self._random.choice(VARIABLES)})"
            case "not":
                return f"!({self._condition(depth)})"
            case "either":
                return f"{self._comparison()} || {self._comparison()}"
            case "exists" if depth > 0:
                return self._exists(depth - 1)
        return self._comparison()

    def _group(self, depth: int) -> str:
        return self._triples() + " ".join(self._part(depth) for _ in range(self._random.randint(0, 2)))

    def _part(self, depth: int) -> str:
        kinds = ["filter", "filter", "filter", "triples"]
        if depth > 0:
            kinds += ["optional", "optional", "minus", "minus", "union", "select", "bind", "group"]
        match self._random.choice(kinds):
            case "filter":
                return f"FILTER({self._condition(depth)})"
            case "optional":
                return f"OPTIONAL {{ {self._group(depth - 1)} }}"
            case "minus":
                return f"MINUS {{ {self._group(depth - 1)} }}"
            case "union":
                return f"{{ {self._group(depth - 1)} }} UNION {{ {self._group(depth - 1)} }}"
            case "select":
                return f"{{ SELECT {' '.join(self._random.sample(VARIABLES, 2))} {{ {self._group(depth - 1)} }} }}"
            case "bind":
                self._names += 1
                return f"BIND({self._value()} AS ?b{self._names})"
            case "group":
                return f"{{ {self._group(depth - 1)} }}"
        return self._triples()


def rows(make: MakeEvaluator, text: str, triples: tuple[Triple, ...]) -> list[tuple[Row, ...]]:
    plan = plan_query(parse(text))
    program = Program([RegisteredQuery(plan, resolve_settings(plan))], Store(), 0, make)
    step = program.advance({STREAM: [Element(500_000, triples)]}, ended=[STREAM])
    return [answer.rows for answer in step.answers]


def check(first: int, queries: int) -> None:
    taken = found = 0
    for number in range(first, first + queries):
        pattern = Pattern(Random(number))
        text = (
            f"PREFIX : <{HERE}> SELECT * FROM NAMED WINDOW <w> ON <{STREAM}> [RANGE 1s TUMBLING] "
            f"WHERE {{ WINDOW <w> {{ {pattern.query()} }} }}"
        )
        triples = pattern.triples()
        try:
            by_kernel = rows(KernelEvaluator, text, triples)
        except UnsupportedByKernel:
            continue
        assert by_kernel == rows(ReferenceEvaluator, text, triples), f"query {number}: {text}"
        taken += 1
        found += any(by_kernel)
    assert taken > queries / 2
    assert found > queries / 5


def test_nested_patterns() -> None:
    check(0, 1_000)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 51_000, 5_000))
def test_many_nested_patterns(first: int) -> None:
    check(first, 5_000)


@pytest.mark.parametrize("make", [ReferenceEvaluator, KernelEvaluator])
def test_a_variable_that_is_asked_for_twice_is_there_once(make: MakeEvaluator) -> None:
    triple = Triple(NamedNode(HERE + "a"), NamedNode(HERE + "p"), Literal(1))
    for wanted in ("?x ?x", "?x ?x (COUNT(?y) AS ?n)"):
        inner = f"SELECT {wanted} {{ ?x ?z ?y }} {'GROUP BY ?x' if 'COUNT' in wanted else ''}"
        text = f"FROM NAMED WINDOW <w> ON <{STREAM}> [RANGE 1s TUMBLING] WHERE {{ WINDOW <w> {{"
        (found,) = rows(make, f"SELECT ?x ?x {text} {{ {inner} }} }} }}", (triple,))
        assert found == ((triple.subject,),)
    plan = plan_query(parse(f"DESCRIBE ?x ?x {text} ?x ?z ?y }} }}"))
    program = Program([RegisteredQuery(plan, resolve_settings(plan))], Store(), 0, make)
    (answer,) = program.advance({STREAM: [Element(500_000, (triple,))]}, ended=[STREAM]).answers
    assert answer.triples == (triple,)
