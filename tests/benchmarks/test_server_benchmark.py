"""The benchmark of the server measures what it says."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.server import SLIDING, TUMBLING, make_bodies, measure_fan_out, measure_rates, server


@pytest.mark.parametrize("text", [SLIDING, TUMBLING])
def test_feed_and_engine_come_to_the_last_answer(text: str) -> None:
    bodies, triples = make_bodies(2)
    found = measure_rates(bodies, triples, text, turns=1)
    assert all(rate > 0 for rate in found.values())
    assert found["overhead"] == pytest.approx(found["server_triples_per_s"] / found["engine_triples_per_s"], abs=0.001)


def test_each_answer_comes_to_the_last_subscriber() -> None:
    with server() as one:
        delays, _ = asyncio.run(measure_fan_out(one, 20, 5))
    assert len(delays) == 5
    assert all(0 <= delay < 60 for delay in delays)


def test_bodies_have_a_megabyte_and_follow_each_other() -> None:
    bodies, triples = make_bodies(2)
    assert all(1 << 20 <= len(body) < 1.1 * (1 << 20) for body in bodies)
    assert sum(body.count(b"\n") for body in bodies) == triples
    first, second = (int(body.split(b"\t", 1)[0]) for body in bodies)
    assert first < second
