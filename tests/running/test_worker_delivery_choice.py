"""Which answers workers write: those of queries that need no merge, to sinks that take them so."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.running.program_description import ProgramDescription
from headwater.running.worker_delivery import WorkerDelivery
from headwater.sharding.shard_plan import ShardPlan
from headwater.sharding.shard_planning import plan_shards
from headwater.sinks.sink import Sink
from tests.sharding.shards import WINDOWS, registered

STAR = f"{WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }}"
IN_PARTS = {
    "rows": f"SELECT ?s ?v {STAR}",
    "groups of the key": f"SELECT ?o (MAX(?v) AS ?m) {STAR} GROUP BY ?o",
    "different rows with the key": f"SELECT DISTINCT ?o ?s {STAR}",
    "changes": f"REGISTER ISTREAM q AS SELECT ?o ?v {STAR}",
}
MERGED = {
    "groups of another key": f"SELECT ?s (MAX(?v) AS ?m) {STAR} GROUP BY ?s",
    "one group": f"SELECT (COUNT(*) AS ?n) {STAR}",
    "different rows without the key": f"SELECT DISTINCT ?s {STAR}",
    "different rows, the first of them": f"SELECT DISTINCT ?o {STAR} LIMIT 3",
    "ordered": f"SELECT ?o ?v {STAR} ORDER BY ?v",
    "the first": f"SELECT ?o ?v {STAR} LIMIT 3",
    "a verdict": f"ASK {STAR}",
    "triples": f"CONSTRUCT {{ ?s :seen true }} {STAR}",
}


class Elsewhere:
    """A sink that only the driver can write."""

    def open(self, spark: object) -> None:
        return

    def write(self, run: str, batch: int, answers: hw.AnswerBatch) -> None:
        return


def choose(text: str, shards: int, *sinks: Sink, is_taken: bool = False, local: bool = True) -> WorkerDelivery | None:
    query = registered(text)
    cut = plan_shards([query], tuple(range(shards)), has_static_default=False) if shards > 1 else None
    assert cut is None or isinstance(cut, ShardPlan)
    description = ProgramDescription((query,), sharding=cut)
    return WorkerDelivery.choose(description, sinks, "run", {}, is_taken=is_taken, sees_folders=local)


@pytest.mark.parametrize("name", [*IN_PARTS, *MERGED])
def test_parts_are_written_where_no_merge_is_needed(name: str, tmp_path: Path) -> None:
    text = {**IN_PARTS, **MERGED}[name]
    found = choose(text, 3, hw.FileSink(tmp_path, parts=True))
    assert (found is not None) is (name in IN_PARTS)
    assert found is None or (found.queries == {"q"} and found.shards == (0, 1, 2) and not found.travels)
    # Nobody has asked for parts.
    assert choose(text, 3, hw.FileSink(tmp_path)) is None
    # With one shard, answers are whole.
    assert choose(text, 1, hw.FileSink(tmp_path)) is not None


def test_whole_answers_are_written_by_workers_only_where_none_travels(tmp_path: Path) -> None:
    text, sink = IN_PARTS["rows"], hw.FileSink(tmp_path)
    assert choose(text, 1, sink, is_taken=True) is None
    assert choose(text, 1, sink, local=False) is None
    assert choose(text, 1, sink, Elsewhere()) is None
    assert choose(text, 1) is None
    both = choose(text, 2, hw.FileSink(tmp_path, parts=True), Elsewhere(), is_taken=False, local=False)
    assert both is not None and both.travels and both.writers[0] is not None and both.writers[1] is None
