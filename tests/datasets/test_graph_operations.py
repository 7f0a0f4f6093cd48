"""Operations on whole graphs do what pyoxigraph does with them over all data."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import DefaultGraph, Store

from headwater.datasets.dataset import DataSet
from headwater.datasets.errors import DataSetError
from headwater.datasets.graph_operations import read_graph_operations
from headwater.datasets.loading.new_dataset import create_dataset
from headwater.datasets.remote_updates import resolve_iri
from headwater.terms.model import Literal, NamedNode, Quad

EX = "http://example.org/"
GRAPHS: list[Any] = [DefaultGraph(), *(NamedNode(EX + name) for name in "gh")]
NAMES = ["DEFAULT", "<g>", "GRAPH <h>", "e:new"]
PROLOGUE = f"PREFIX e: <{EX}> "


def some_operation(chance: random.Random) -> str:
    silent = chance.choice(["", "SILENT "])
    kind = chance.choice(["CLEAR", "DROP", "CREATE", "COPY", "MOVE", "ADD"])
    if kind in ("COPY", "MOVE", "ADD"):
        source = chance.choice(NAMES)
        copied = f"{kind} {silent}{source} TO {chance.choice(NAMES)}"
        # pyoxigraph copies a graph that is not there as an empty one, and so empties the other.
        return copied if source == "DEFAULT" else f"CREATE SILENT GRAPH {source.removeprefix('GRAPH ')} ; {copied}"
    graph = chance.choice(["GRAPH <g>", "GRAPH e:h", "GRAPH <new>"])
    if kind == "CREATE":
        return f"CREATE {silent}{graph}"
    return f"{kind} {silent}{chance.choice([graph, 'DEFAULT', 'NAMED', 'ALL'])}"


def some_quads(chance: random.Random) -> list[Quad]:
    p = NamedNode(EX + "p")
    return [Quad(p, p, Literal(chance.randint(0, 3)), chance.choice(GRAPHS)) for _ in range(chance.randint(0, 5))]


@pytest.mark.parametrize("seed", range(60))
def test_they_do_what_the_whole_update_does(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    create_dataset(tmp_path / "data")
    data = DataSet.open(tmp_path / "data")
    data.insert(some_quads(chance))
    text = PROLOGUE + " ;\n".join(some_operation(chance) for _ in range(chance.randint(1, 4)))
    assert read_graph_operations(text, resolve_iri) is not None
    store = Store()
    store.extend(data.quads())
    try:
        store.update(text, base_iri=EX)
    except RuntimeError:
        before = set(data.quads())
        with pytest.raises(DataSetError, match=r"nothing is changed: the graph <.*> (does not exist|already exists)"):
            data.update(text, base_iri=EX)
        assert set(data.quads()) == before
    else:
        data.update(text, base_iri=EX)
        assert set(data.quads()) == set(store)


def test_a_graph_that_is_not_there_is_not_copied(tmp_path: Path) -> None:
    create_dataset(tmp_path / "data")
    data = DataSet.open(tmp_path / "data")
    kept = Quad(NamedNode(EX + "p"), NamedNode(EX + "p"), Literal(1), GRAPHS[1])
    data.insert([kept])
    with pytest.raises(DataSetError, match="none> does not exist"):
        data.update("COPY <none> TO <g>", base_iri=EX)
    data.update("MOVE SILENT <none> TO <g>", base_iri=EX)
    assert list(data.quads()) == [kept]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT DATA { <a> <b> <c> }",
        "CLEAR ALL ; INSERT DATA { <a> <b> <c> }",
        "CLEAR <g>",
        "CREATE DEFAULT",
        "COPY <g> <h>",
        "DROP GRAPH",
        "MOVE NAMED TO <g>",
        "CLEAR ALL CLEAR ALL",
    ],
)
def test_other_updates_are_no_operations_on_graphs(text: str) -> None:
    assert read_graph_operations(text, resolve_iri) is None
