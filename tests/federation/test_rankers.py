"""Proposers and rankers: who is proposed, who comes first, and the bounds that know the remote."""

from __future__ import annotations

import pytest

from benchmarks.upper_bounds import BestRanker, PerfectWindowBasedMaintenance, is_stale
from headwater.federation.policy.best_before import FOR_EVER
from headwater.federation.policy.candidates import Candidate, Tick
from headwater.federation.policy.policies import POLICIES, make_policy
from headwater.federation.policy.proposers import General, WindowServiceJoin
from headwater.federation.policy.rankers import LeastRecentlyRefreshed, NoRefresh, RandomRanker
from headwater.federation.view.lifetime import WindowKey
from headwater.federation.view.local_view import LocalView
from headwater.language.service_options import DEFAULT_POLICY
from tests.federation.small_world import counting_log, key, rows, view_of

TICK = Tick(now=100, slide=10)


def candidates_of(view: LocalView, ticks: int = 1) -> list[Candidate]:
    return [Candidate(entry, ticks) for entry in view]


def names(candidates: list[Candidate]) -> str:
    return "".join(str(candidate.entry.key[0])[-2] for candidate in candidates)


def window(*mappings: WindowKey) -> dict[object, WindowKey]:
    return {mapping.key: mapping for mapping in mappings}


def test_wsj_proposes_what_joins_the_window() -> None:
    view = view_of("abcd")
    proposed = WindowServiceJoin().propose(
        view, {mapping.key: mapping for mapping in (WindowKey(key("c"), 3, 2), WindowKey(key("z")))}
    )
    assert [(candidate.entry.key, candidate.ticks, candidate.rows) for candidate in proposed] == [(key("c"), 3, 2)]


def test_gnr_proposes_the_whole_view() -> None:
    view = view_of("abc")
    proposed = General().propose(view, {key("b"): WindowKey(key("b"), 3, 2)})
    assert [(candidate.ticks, candidate.rows) for candidate in proposed] == [(0, 0), (3, 2), (0, 0)]


def test_lru_takes_the_least_recently_refreshed() -> None:
    view = view_of("abc")
    view.store(key("a"), rows("a", 0), 50)
    view.store(key("c"), rows("c", 0), 20)
    assert names(LeastRecentlyRefreshed().rank(candidates_of(view), TICK)) == "bca"


def test_lru_leaves_ties_to_chance() -> None:
    view = view_of("abcd")
    assert {names(LeastRecentlyRefreshed(seed).rank(candidates_of(view), TICK))[0] for seed in range(30)} == set("abcd")


def test_rnd_takes_any_the_same_from_the_same_seed() -> None:
    view = view_of("abcdefgh")
    orders = {names(RandomRanker(seed).rank(candidates_of(view), TICK)) for seed in range(20)}
    assert len(orders) > 15
    assert all(sorted(order) == list("abcdefgh") for order in orders)
    assert names(RandomRanker(5).rank(candidates_of(view), TICK)) == names(
        RandomRanker(5).rank(candidates_of(view), TICK)
    )


def test_wst_takes_none() -> None:
    assert NoRefresh().rank(candidates_of(view_of("abc")), TICK) == []


def test_bst_takes_what_is_certainly_stale() -> None:
    view = view_of("abcd")
    log = counting_log("abcd", {"b": 30, "d": 100}, end=1000)
    stale = BestRanker(log).rank(candidates_of(view), TICK)
    assert sorted(names(stale)) == ["b", "d"]
    assert all(is_stale(candidate.entry, log, 100) for candidate in stale)
    assert {names(BestRanker(log, seed).rank(candidates_of(view), TICK)) for seed in range(20)} == {"bd", "db"}


def test_wbm_star_takes_the_stale_ones_that_will_be_good_for_longest() -> None:
    view = view_of("abcd")
    log = counting_log("abcd", {"a": 95, "b": 52, "c": 30}, end=1000)
    ranker = PerfectWindowBasedMaintenance(log)
    assert names(ranker.rank(candidates_of(view, ticks=9), TICK)) == "acb"
    assert (
        names(ranker.rank([Candidate(entry, ticks) for entry, ticks in zip(view, (1, 1, 4, 9), strict=True)], TICK))[0]
        == "c"
    )


def test_wbm_star_knows_the_next_change() -> None:
    view = view_of("ab")
    ranker = PerfectWindowBasedMaintenance(counting_log("ab", {"a": 70}, end=200))
    assert [ranker.best_before(entry, 100) for entry in view] == [140, FOR_EVER]


@pytest.mark.parametrize("name", POLICIES)
def test_policies_have_names(name: str) -> None:
    view = view_of("abc")
    proposer, ranker = make_policy(name.lower(), view)
    assert ranker.name == name.removeprefix("GNR-")
    assert proposer.name == ("GNR" if name.startswith("GNR") else "WSJ")
    ranked = ranker.rank(candidates_of(view), TICK)
    assert len(ranked) == (0 if name == "WST" else 3)
    assert all(ranker.best_before(entry, 100) >= 100 for entry in view)


def test_a_policy_may_carry_its_proposer() -> None:
    assert make_policy("WSJ-LRU", view_of("a"))[1].name == "LRU"
    assert DEFAULT_POLICY in POLICIES


def test_an_unknown_policy_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'FIFO'; choose one of LEARNT, WBM"):
        make_policy("FIFO", view_of("a"))
