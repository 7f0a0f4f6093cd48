"""C-SPARQL's own form (CS9): the default graph is the merge of the FROM graphs and the windows of FROM STREAM.

Static triples come from views over the columns of the data, as they do where a pattern stands in a GRAPH.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyoxigraph import BlankNode, Quad

from headwater.algebra.build import plan_query
from headwater.algebra.scope import visible_variables
from headwater.datasets.dataset import DataSet
from headwater.datasets.linked_data import LinkedData
from headwater.datasets.loading.temporary_dataset import add_statements
from headwater.datasets.views import view_catalog as views
from headwater.datasets.views.view_definitions import ViewDefinition
from headwater.execution.answers import Answer
from headwater.execution.evaluator import Evaluator
from headwater.kernel.evaluator_choice import make_evaluator, with_optimisation
from headwater.kernel.join_measures import operators
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.kernel.operators.distinct import DistinctOperator
from headwater.kernel.operators.union import UnionOperator
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import SECOND, Element, NamedNode, Triple
from headwater.windows.settings import Content, Options, resolve_settings
from tests.datasets.versioned_runs import check_case
from tests.kernel.generated_queries import EX, GRAPHS, PREDICATES, RESOURCES, Case, Writer, a_case, dataset

G0, G1 = map(NamedNode, GRAPHS)
GATES, DISTRICTS = 400, 20
OWN_FORM = """PREFIX : <http://example.org/> SELECT ?district ?car FROM :g0 FROM :g1
    FROM STREAM :s0 [RANGE 2s STEP 1s]
    WHERE { ?gate :registers ?car . ?gate :placedIn ?street . ?district :contains ?street }"""
GRAPH_FORM = """PREFIX : <http://example.org/> SELECT ?district ?car FROM NAMED :g0
    FROM STREAM :s0 [RANGE 2s STEP 1s]
    WHERE { ?gate :registers ?car . GRAPH :g0 { ?gate :placedIn ?street . ?district :contains ?street } }"""


@pytest.fixture(autouse=True)
def every_view_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views that have to be found again are found in the background, if the version is prepared."""
    monkeypatch.setattr(views, "SLOW_SECONDS", 0.0)


def a_merged_case(random: Random) -> Case:
    """A C-SPARQL query over FROM graphs that share triples, and streams that bring a static predicate late or never."""
    case = a_case(random)
    writer = Writer(random, "csparql", random.randrange(3) == 0)
    graphs = random.choice(["FROM :g0", "FROM :g0 FROM :g1", "FROM :g0 FROM :g1 FROM NAMED :g1", ""])
    text = writer.query(random.randrange(3)).replace("@DATASET@", f"{graphs} {dataset(random, 'csparql')}")
    quads = list(case.quads)
    for graph in GRAPHS:
        quads += [replace_graph(quad, graph) for quad in random.sample(quads, min(2, len(quads)))]
        quads.append(Quad(BlankNode("b"), random.choice(PREDICATES), random.choice(RESOURCES), NamedNode(graph)))
    late = random.sample(PREDICATES, random.randrange(3))
    from_time = random.choice([0, 1_000_000, 2_000_000, 1 << 60])
    elements = {}
    for stream, given in case.elements.items():
        static = [quad.triple for quad in quads]
        kept = [
            replace(
                one,
                triples=tuple(
                    random.choice(static) if random.randrange(4) == 0 and one.time >= from_time else triple
                    for triple in one.triples
                    if triple.predicate not in late or one.time >= from_time
                ),
            )
            for one in given
        ]
        elements[stream] = tuple(one for one in kept if one.triples)
    return Case(f"PREFIX : <{EX}> {text}", case.options, elements, tuple(dict.fromkeys(quads)))


def replace_graph(quad: Quad, graph: str) -> Quad:
    return Quad(quad.subject, quad.predicate, quad.object, NamedNode(graph))


def test_answers_over_merged_graphs_are_those_of_the_definition(tmp_path: Path) -> None:
    with_answers = sum(check_case(number, tmp_path / str(number), a_merged_case) for number in range(40))
    assert with_answers > 15


@pytest.mark.soak
def test_many_answers_over_merged_graphs_are_those_of_the_definition(tmp_path: Path) -> None:
    numbers = range(1000, 4000)
    assert sum(check_case(number, tmp_path / str(number), a_merged_case) for number in numbers) > 1000


def ex(name: str) -> NamedNode:
    return NamedNode(EX + name)


def city() -> list[Quad]:
    """Gates in streets in districts; the second graph repeats some of the first."""
    placed = [Quad(ex(f"gate{n}"), ex("placedIn"), ex(f"street{n // 2}"), G0) for n in range(GATES)]
    contains = [Quad(ex(f"district{n % DISTRICTS}"), ex("contains"), ex(f"street{n}"), G0) for n in range(GATES)]
    return [*placed, *contains, *(replace_graph(quad, G1.value) for quad in placed[:50])]


class MergedRun:
    """A query over the city and a stream, by the kernel and by the reference."""

    def __init__(self, folder: Path, text: str = OWN_FORM, content: Content | None = None) -> None:
        add_statements(folder, city(), (G0, G1))
        self.writer = DataSet.open(folder)
        plan = plan_query(parse(text), name="Q")
        settings = resolve_settings(plan, Options(content=content))
        self._data = [LinkedData([DataSet.open(folder)]) for _ in range(2)]
        kernel = with_optimisation(make_evaluator, self._data[0].statistics())(plan, settings, self._data[0])
        assert isinstance(kernel, KernelEvaluator)
        self.kernel = kernel
        self._reference: Evaluator = ReferenceEvaluator(plan, settings, self._data[1])
        self._tick = 0

    def tick(self, *triples: Triple) -> Answer:
        """The answer after a second with some triples, in which both agree."""
        self._tick += 1
        element = Element(self._tick * SECOND, triples, None, (self._tick,))
        ours, theirs = (self._advance(one, element) for one in (self.kernel, self._reference))
        assert [sorted(map(str, one.rows)) for one in ours] == [sorted(map(str, one.rows)) for one in theirs]
        (answer,) = ours
        return answer

    def _advance(self, evaluator: Evaluator, element: Element) -> list[Answer]:
        return list(evaluator.advance({evaluator.keys[0]: [element]}, element.time + 1))

    def move(self) -> None:
        """Move the data to the newest version."""
        for evaluator, data in zip((self.kernel, self._reference), self._data, strict=True):
            evaluator.prepare_static_change()
            data.move(data.latest())
            evaluator.apply_static_change()

    @property
    def reads_merge(self) -> bool:
        """Whether some pattern is read from static data and windows together."""
        return any(isinstance(one, UnionOperator) for one in operators(self.kernel.root))


def registers(gate: int, car: str) -> Triple:
    return Triple(ex(f"gate{gate}"), ex("registers"), ex(car))


@pytest.mark.parametrize("content", Content)
def test_static_patterns_of_a_merge_are_one_view_that_is_read_in_place(tmp_path: Path, content: Content) -> None:
    run = MergedRun(tmp_path, content=content)
    assert len(run.tick(registers(0, "car1"), registers(3, "car2")).rows) == 2
    (view,) = run.kernel._compiler.static_parts.views
    assert {variable.value for variable in visible_variables(view)} == {"gate", "street", "district"}
    assert not run.reads_merge
    merged = [one for one in operators(run.kernel.root) if isinstance(one, DistinctOperator)]
    assert all(one._counts.top <= 2 for one in merged), "static triples are not copied into operators"


def test_statements_of_the_data_are_not_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    one_by_one = LinkedData._quad

    def count(data: LinkedData, quad: tuple[int, int, int, int]) -> Quad:
        nonlocal read
        read += 1
        return one_by_one(data, quad)

    run = MergedRun(tmp_path)
    data, kernel = run._data[0], run.kernel
    monkeypatch.setattr(LinkedData, "_quad", count)
    make_evaluator(kernel.plan, kernel.settings, data).advance({kernel.keys[0]: []}, SECOND)
    assert read <= 4, "it is asked only whether some statement matches"
    run._reference = run.kernel
    run.move()
    read = 0
    run.writer.insert([Quad(ex("gate0"), ex("placedIn"), ex("street9"), G0)])
    run.move()
    assert read == 0


@pytest.mark.parametrize("content", Content)
def test_a_stream_that_brings_static_triples_is_merged_with_the_data(tmp_path: Path, content: Content) -> None:
    run = MergedRun(tmp_path, content=content)
    run.tick(registers(0, "car1"))
    placed = Triple(ex("gate0"), ex("placedIn"), ex("street0"))
    # In a set, the triple that both have counts once; in a bag it counts twice.
    assert len(run.tick(placed).rows) == (2 if content is Content.BAG else 1)
    assert run.reads_merge
    moved = Triple(ex("gate1"), ex("placedIn"), ex("street7"))
    assert len(run.tick(moved, registers(1, "car2")).rows) == 2
    run.tick()
    assert run.tick(registers(1, "car3")).rows
    run.tick(Triple(ex("district0"), ex("contains"), ex("street0")), registers(0, "car4"))
    run.writer.remove([Quad(ex("gate0"), ex("placedIn"), ex("street0"), G0)])
    run.move()
    assert run.tick(registers(0, "car5")).rows, "the second graph still has it"
    run.writer.remove([Quad(ex("gate0"), ex("placedIn"), ex("street0"), G1)])
    run.move()
    assert not run.tick().rows


def test_views_of_merged_graphs_follow_single_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = MergedRun(tmp_path)
    run.tick(registers(0, "car1"))
    run.writer.insert([Quad(ex("gate0"), ex("placedIn"), ex("street9"), G0)])
    run.move()
    assert len(run.tick(registers(0, "car2")).rows) == 4
    monkeypatch.setattr(ViewDefinition, "find_rows", None)
    changes = ((run.writer.insert, G1, 4), (run.writer.remove, G0, 4), (run.writer.remove, G1, 2))
    for number, (change, graph, rows) in enumerate(changes):
        change([Quad(ex("gate0"), ex("placedIn"), ex("street9"), graph)])
        run.move()
        assert len(run.tick(registers(0, f"other{number}")).rows) == rows


def test_both_forms_have_the_same_operators(tmp_path: Path) -> None:
    own, graph = MergedRun(tmp_path / "own"), MergedRun(tmp_path / "graph", GRAPH_FORM)
    assert own.tick(registers(4, "car")).rows == graph.tick(registers(4, "car")).rows
    names = [[type(one).__name__ for one in operators(run.kernel.root)] for run in (own, graph)]
    assert names[0] == names[1]
