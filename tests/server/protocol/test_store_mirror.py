"""The store that queries read has what the data set has, after any change."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import DefaultGraph, Store

from headwater.datasets.dataset import DataSet
from headwater.datasets.loading.new_dataset import create_dataset
from headwater.server.protocol import store_mirror
from headwater.server.protocol.store_mirror import StoreMirror
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Quad
from headwater.terms.stored_forms import to_stored_quad

EX = "http://example.org/"
SUBJECTS: list[Any] = [NamedNode(EX + "a"), NamedNode(EX + "b"), BlankNode("n")]
PREDICATES = [NamedNode(EX + "p"), NamedNode(EX + "q")]
OBJECTS: list[Any] = [
    NamedNode(EX + "a"),
    BlankNode("n"),
    Literal(1),
    Literal("01", datatype=NamedNode(XSD + "integer")),
    Literal("1.50", datatype=NamedNode(XSD + "decimal")),
    Literal('x\n"y\\', language="en"),
]
GRAPHS: list[Any] = [DefaultGraph(), NamedNode(EX + "g"), NamedNode(EX + "h"), BlankNode("graph")]


def some_quads(chance: random.Random, most: int) -> list[Quad]:
    return [
        Quad(chance.choice(SUBJECTS), chance.choice(PREDICATES), chance.choice(OBJECTS), chance.choice(GRAPHS))
        for _ in range(chance.randint(0, most))
    ]


def new_dataset(folder: Path) -> DataSet:
    create_dataset(folder)
    return DataSet.open(folder)


def check(mirror: StoreMirror, data: DataSet) -> Store:
    """Assert that both have the same statements at the same version."""
    latest = mirror.latest()
    assert latest.version == data.version
    wanted = [to_stored_quad(quad) for quad in data.quads()]
    assert set(latest.store) == set(wanted)
    assert len(latest.store) == len(wanted)
    if not set(wanted) <= set(data.quads()):
        assert latest.holds_stored_forms
    named = {quad.graph_name for quad in wanted if isinstance(quad.graph_name, NamedNode)}
    assert set(latest.named_graphs) == named
    return latest.store


@pytest.mark.parametrize("seed", range(4))
def test_it_follows_every_change(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = new_dataset(tmp_path / "data")
    mirror = StoreMirror(data.folder)
    for _ in range(40):
        for _ in range(chance.randint(1, 3)):
            data.change(added=some_quads(chance, 6), removed=some_quads(chance, 6))
        check(mirror, data)
        check(StoreMirror(data.folder), data)


def test_it_follows_what_others_change_and_load(tmp_path: Path) -> None:
    data = new_dataset(tmp_path / "data")
    mirror = StoreMirror(data.folder)
    store = check(mirror, data)
    other = DataSet.open(data.folder)
    other.insert([Quad(SUBJECTS[0], PREDICATES[0], OBJECTS[3])])
    data.advance()
    assert check(mirror, data) is store, "a change needs no new store"
    other.compact()
    data.advance()
    assert check(mirror, data) is not store


def test_so_many_removals_are_a_new_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_mirror, "_LARGEST_CHANGE", 10)
    data = new_dataset(tmp_path / "data")
    quads = [Quad(SUBJECTS[0], PREDICATES[0], Literal(n), GRAPHS[1]) for n in range(20)]
    data.insert(quads)
    mirror = StoreMirror(data.folder)
    store = check(mirror, data)
    data.remove(quads[:5])
    assert check(mirror, data) is store
    data.remove(quads[5:16])
    assert check(mirror, data) is not store


def test_a_query_that_has_begun_sees_one_version(tmp_path: Path) -> None:
    data = new_dataset(tmp_path / "data")
    before = [Quad(SUBJECTS[0], PREDICATES[0], Literal(n)) for n in range(500)]
    data.insert(before)
    mirror = StoreMirror(data.folder)
    statements = mirror.latest().store.quads_for_pattern(None, None, None)
    first = next(statements)
    data.change(added=[Quad(SUBJECTS[1], PREDICATES[0], Literal(n)) for n in range(500)], removed=before)
    check(mirror, data)
    assert {first, *statements} == set(before)


def test_it_knows_when_a_graph_was_changed(tmp_path: Path) -> None:
    data = new_dataset(tmp_path / "data")
    mirror = StoreMirror(data.folder)
    first = mirror.graph_version(GRAPHS[1])
    data.insert([Quad(SUBJECTS[0], PREDICATES[0], Literal(1), GRAPHS[1])])
    changed = mirror.graph_version(GRAPHS[1])
    assert changed > first
    data.insert([Quad(SUBJECTS[0], PREDICATES[0], Literal(1), GRAPHS[2])])
    assert mirror.graph_version(GRAPHS[1]) == changed
    assert mirror.graph_version(DefaultGraph()) == first
    data.remove([Quad(SUBJECTS[0], PREDICATES[0], Literal(1), GRAPHS[1])])
    assert mirror.graph_version(GRAPHS[1]) > changed
