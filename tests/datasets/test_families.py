"""Queries that differ in constants, evaluated as one over a data set that changes."""

from __future__ import annotations

from pathlib import Path

from pyoxigraph import Quad

from headwater.algebra.build import plan_query
from headwater.datasets.dataset import DataSet
from headwater.datasets.linked_data import LinkedData
from headwater.datasets.loading.temporary_dataset import add_statements
from headwater.execution.answers import Answer
from headwater.execution.program import Program
from headwater.execution.query_evaluators import no_families
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.families.family_evaluator import FamilyEvaluator, find_families
from headwater.language.parser import parse
from headwater.terms.model import Element, Literal, NamedNode, Triple
from headwater.windows.settings import resolve_settings
from tests.reference_programs import reference_program

EX = "http://ex/"
TEXT = """PREFIX : <http://ex/>
SELECT ?gate WHERE {{ STREAM :s [RANGE 3s SLIDE 1s] {{ ?car :at ?gate }} ?car :owner ?who . ?who :name "{}" }}"""


def registered(name: str) -> RegisteredQuery:
    plan = plan_query(parse(TEXT.format(name)), name=name, streams=[EX + "s"])
    return RegisteredQuery(plan, resolve_settings(plan))


def iri(name: str) -> NamedNode:
    return NamedNode(EX + name)


def answers(folder: Path, find: object) -> tuple[list[Answer], Program]:
    data = LinkedData([DataSet.open(folder, version=1)])
    program = reference_program([registered(name) for name in ("ann", "bob", "cleo")], data, families=find)
    found: list[Answer] = []
    for second in range(12):
        triple = Triple(iri(f"car{second % 4}"), iri("at"), iri(f"gate{second}"))
        version = (1,) if second < 4 else (2,) if second < 8 else (3,)
        found += program.advance({EX + "s": [Element(second * 1_000_000, (triple,))]}, version=version).answers
    return found, program


def test_a_family_follows_the_versions_of_the_data(tmp_path: Path) -> None:
    owned = [Quad(iri(f"car{i}"), iri("owner"), iri(f"person{i % 2}")) for i in range(4)]
    add_statements(tmp_path, [*owned, Quad(iri("person0"), iri("name"), Literal("ann"))])
    data = DataSet.open(tmp_path)
    data.insert([Quad(iri("person1"), iri("name"), Literal("bob"))])
    data.change(
        [Quad(iri("person0"), iri("name"), Literal("cleo"))], [Quad(iri("person0"), iri("name"), Literal("ann"))]
    )
    expected, _ = answers(tmp_path, no_families)
    found, program = answers(tmp_path, find_families)
    assert all(isinstance(one, FamilyEvaluator) for one in program.evaluators.values())
    assert [(a.query, a.time, a.rows, a.data_version) for a in found] == [
        (a.query, a.time, a.rows, a.data_version) for a in expected
    ]
    assert {a.query for a in found if a.rows} == {"ann", "bob", "cleo"}
