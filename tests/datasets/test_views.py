"""Views: their rows are those of the definition; they are shared, kept on disk, and follow changes."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from pyoxigraph import Quad, Store

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Node, Project
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import visible_variables
from headwater.datasets.dataset import DataSet
from headwater.datasets.linked_data import LinkedData
from headwater.datasets.loading.temporary_dataset import add_statements
from headwater.datasets.views import view_catalog as views
from headwater.datasets.views.stored_views import ViewRelation
from headwater.execution.static_data import StaticData
from headwater.kernel.compiling.static_views import View
from headwater.language.parser import parse
from headwater.optimizer.statistics import Statistics
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import XSD, Literal, NamedNode, Row
from headwater.windows.settings import resolve_settings

EX = "http://ex/"
_LONG = 20.0
NODES = [NamedNode(EX + name) for name in "abcde"]
PREDICATES = [NamedNode(EX + name) for name in "pqr"]
VALUES: list[NamedNode | Literal] = [
    *NODES,
    *(Literal(text, datatype=NamedNode(XSD + "integer")) for text in ("1", "2", "02")),
]
PARTS = [
    "?x :p ?y . ?y :q ?z",
    "?x :p ?y . ?y :q ?x",
    "?x :p ?x",
    ":a :p ?y . ?y ?what ?z",
    "?x :p ?y . ?x :p ?z . ?x :q ?w FILTER(?y != ?z)",
    "?x :p ?v FILTER(?v > 1)",
    "?x :p 2 . ?x :q ?z",
    "?x :p ?y . ?z :r ?w",
    "?x :p ?y . GRAPH :g { ?y :q ?z }",
    "?x :p ?y OPTIONAL { ?y :q ?z }",
    "?x :p ?y OPTIONAL { ?y :q ?z FILTER(?z != ?x) }",
    "?x :p ?y OPTIONAL { ?y :q ?z } OPTIONAL { ?y :r ?w }",
    "?x :p ?y OPTIONAL { ?y :q ?z } OPTIONAL { ?z :r ?w }",
    "?x :p ?y OPTIONAL { ?y :q ?z OPTIONAL { ?z :r ?w } }",
    "?x :p ?y OPTIONAL { GRAPH :g { ?y :q ?z } } FILTER(!BOUND(?z))",
    "GRAPH :g { ?x :p ?y OPTIONAL { ?y :q ?z } MINUS { ?x :r ?y } }",
    "?x :p ?y MINUS { ?y :q ?z }",
    "?x :p ?y MINUS { ?a :q ?b }",
    "{ ?x :p ?y } UNION { ?x :q ?z } ?x :r ?w",
    "{ ?x :p ?y } UNION { ?x :q ?z } OPTIONAL { ?y :r ?w }",
    "?x :p ?y { SELECT ?x WHERE { ?x :q ?z } }",
    "{ SELECT DISTINCT ?x WHERE { ?x :q ?z } } ?x :p ?y",
    "?x :p ?y BIND(STR(?y) AS ?text)",
    "VALUES ?x { :a :b } ?x :p ?y",
    "VALUES ?x { :a :a } ?x :p ?y",
    "VALUES ?z { :a } ?x :p ?y",
    "?x :p ?y . ?y :q ?z VALUES ?y { 2 :b :absent } FILTER(STRLEN(STR(?y)) > 0)",
    "?x :p ?y FILTER(?y IN (:a, :absent) && isIRI(?y))",
    "?x :p ?y FILTER(sameTerm(?y, 2) || sameTerm(?y, :b))",
    "?x ?k ?y FILTER(isIRI(?k) && !isLITERAL(?y))",
    "?x :p ?y OPTIONAL { ?y :q ?z } FILTER(isBLANK(?z) || isLITERAL(?z))",
    "{ ?x :p ?y } UNION { ?x :q ?y }",
    "?x :p/:q ?y",
    "?x :p+ ?y",
    "SELECT ?x (COUNT(*) AS ?n) WHERE { ?x :p ?y } GROUP BY ?x",
    "?x :p ?y FILTER NOT EXISTS { ?y :q ?z }",
]


def a_quad(random: Random) -> Quad:
    s, p, o = random.choice(NODES), random.choice(PREDICATES), random.choice(VALUES)
    return Quad(s, p, o, NamedNode(EX + "g")) if random.randrange(3) == 0 else Quad(s, p, o)


def part_of(text: str) -> tuple[QueryPlan, Node]:
    plan = plan_query(parse(f"PREFIX : <{EX}> SELECT * WHERE {{ {text} }}"))
    root = plan.root
    assert isinstance(root, Project)
    return plan, root.inner


class Viewer:
    """Gets the view of a part, and counts how often it was found by definition."""

    def __init__(self, data: LinkedData, text: str) -> None:
        self.data = data
        self.plan, self.part = part_of(text)
        self.times_by_definition = 0

    def view(self) -> View:
        return self.data.view(self.plan, self.part, self._ask)

    def _ask(self, data: StaticData) -> list[Row]:
        self.times_by_definition += 1
        return rows_by_definition(self.plan, self.part, data)

    def rows(self) -> Counter[Row]:
        relation = self.view().relation
        found = [[None if n == -(1 << 63) else self.data.term_of(n) for n in row] for row in relation.ids().tolist()]
        return Counter(map(tuple, found))


def rows_by_definition(plan: QueryPlan, part: Node, data: StaticData) -> list[Row]:
    store = Store()
    store.extend(data.quads_for_pattern(None, None, None))
    shown = visible_variables(part)
    root = Project(part, shown)
    whole = replace(plan, root=root, variables=shown)
    return ReferenceEvaluator(whole, resolve_settings(whole), store).evaluate_static_part(root, shown)


@pytest.mark.parametrize("text", PARTS)
def test_a_view_has_the_rows_of_the_definition_before_and_after_changes(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it was found in the background, for this version or for one before."""
    monkeypatch.setattr(views, "SLOW_SECONDS", 0.0)
    random = Random(text)
    add_statements(tmp_path, [a_quad(random) for _ in range(40)])
    add_statements(tmp_path / "other", [a_quad(random) for _ in range(15)])
    data = LinkedData([DataSet.open(tmp_path), DataSet.open(tmp_path / "other")])
    viewer = Viewer(data, text)
    follower = viewer.view().follow(("a",) * viewer.view().relation.width)
    followed = Counter(map(tuple, follower.advance().added.tolist()))
    for _ in range(18):
        writer = DataSet.open(random.choice([tmp_path, tmp_path / "other"]))
        there = list(writer.quads())
        added = [a_quad(random) for _ in range(random.randrange(3))]
        writer.change(added, random.sample(there, random.randrange(3)))
        if random.randrange(2):
            assert data.prepare(data.latest(), _LONG) <= data.latest()
        if random.randrange(3) == 0:
            continue
        data.move(data.latest())
        assert viewer.rows() == Counter(rows_by_definition(viewer.plan, viewer.part, data))
        change = follower.advance()
        followed.update(map(tuple, change.added.tolist()))
        followed.subtract(map(tuple, change.removed.tolist()))
        assert +followed == Counter(map(tuple, viewer.view().relation.ids().tolist()))


def test_parts_that_differ_in_variable_names_are_one_view(tmp_path: Path) -> None:
    add_statements(tmp_path, [a_quad(Random(1)) for _ in range(40)])
    data = LinkedData([DataSet.open(tmp_path)])
    one, other = Viewer(data, "?x :p ?y . ?y :q ?z"), Viewer(data, "?a :p ?b . ?b :q ?c")
    assert one.view() is other.view()
    assert one.view() is not Viewer(data, "?a :p ?b . ?c :q ?b").view()


@pytest.mark.parametrize("text", [PARTS[0], PARTS[9], PARTS[22]])
def test_views_are_kept_for_the_next_start_until_the_data_changes(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "SLOW_SECONDS", 0.0)
    random = Random(5)
    add_statements(tmp_path, [a_quad(random) for _ in range(60)])
    first = Viewer(LinkedData([DataSet.open(tmp_path)]), text)
    expected = first.rows()
    key = (first.view().relation.width - 1,)
    values = first.view().relation.ids()[:, list(key)]
    first.view().relation.index(key)
    again = Viewer(LinkedData([DataSet.open(tmp_path)]), text)
    relation = again.view().relation
    assert isinstance(relation, ViewRelation) and relation.is_on_disk and not again.times_by_definition
    assert again.rows() == expected
    _, counts, total = relation.index(key).probe(relation.rows, values.copy(), np.arange(1, dtype=np.int32))
    assert total >= values.shape[0] and counts.min() >= 1
    DataSet.open(tmp_path).insert([Quad(NODES[0], PREDICATES[0], VALUES[5])])
    shutil.rmtree(tmp_path / "views")
    assert relation.index((0,)).probe(relation.rows, relation.ids()[:, :1].copy(), np.arange(1, dtype=np.int32))[2]
    later = Viewer(LinkedData([DataSet.open(tmp_path)]), text)
    assert later.rows() == Counter(rows_by_definition(later.plan, later.part, later.data))


def test_statistics_are_counted_by_graph_and_predicate(tmp_path: Path) -> None:
    random = Random(7)
    quads = [a_quad(random) for _ in range(100)]
    add_statements(tmp_path, quads)
    assert LinkedData([DataSet.open(tmp_path)]).statistics() == Statistics.of(quads)


@pytest.mark.parametrize("text", [PARTS[0], PARTS[9]])
def test_data_can_go_back_to_a_version_that_a_batch_saw(tmp_path: Path, text: str) -> None:
    """A batch that is run again by a new worker sees the same version."""
    random = Random(11)
    add_statements(tmp_path, [a_quad(random) for _ in range(40)])
    data = LinkedData([DataSet.open(tmp_path)])
    viewer = Viewer(data, text)
    before = viewer.rows()
    writer = DataSet.open(tmp_path)
    for _ in range(3):
        writer.change([a_quad(random) for _ in range(5)], random.sample(list(writer.quads()), 5))
    late = Viewer(LinkedData([DataSet.open(tmp_path)]), text)
    assert late.data.version == (4,) and late.rows() != before
    late.data.move((1,))
    assert late.data.version == (1,) and late.rows() == before
    late.data.move((4,))
    assert late.rows() == Counter(rows_by_definition(late.plan, late.part, late.data))
