"""The local view: filling, eviction by use, failures, and its state."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.federation.endpoint.remote import Page
from headwater.federation.view.change_model import ChangeModel
from headwater.federation.view.local_view import LocalView, share_of_difference
from headwater.federation.view.view_journal import pack_state, unpack_state
from headwater.terms.model import SECOND, Literal, NamedNode, Triple
from tests.federation.small_world import key, rows, view_of

BAGS = st.lists(st.integers(0, 4), max_size=6)


def page(*pairs: tuple[str, int], error: str | None = None) -> Page:
    return Page([(key(name), rows(name, value)[0]) for name, value in pairs], 0.25, error)


def empty(capacity: int | None = None) -> LocalView:
    return LocalView(ChangeModel(SECOND), capacity)


def names_in(view: LocalView) -> str:
    return "".join(str(entry.key[0])[-2] for entry in view)


def test_it_is_filled_page_by_page_with_all_rows_of_a_key() -> None:
    view = empty()
    filling = view.fill([page(("a", 1), ("b", 1)), page(("b", 2), ("c", 1))], now=7)
    assert (filling.pages, filling.rows, filling.keys, filling.is_complete, filling.error) == (2, 4, 3, True, None)
    assert filling.seconds == 0.5
    assert view.rows(key("b")) == rows("b", 1, 2)
    entry = view.get(key("a"))
    assert entry is not None
    assert (entry.refreshed_at, entry.best_before, entry.refreshes, entry.changes) == (7, 7, 0, 0)


def test_pages_that_overlap_give_a_row_once_and_a_page_may_hold_it_twice() -> None:
    view = empty()
    view.fill([page(("a", 1), ("b", 1), ("b", 1)), page(("b", 1), ("c", 1))], now=0)
    assert view.rows(key("a")) == rows("a", 1)
    assert view.rows(key("b")) == rows("b", 1, 1)


def test_a_filling_that_breaks_off_keeps_what_came_and_says_so() -> None:
    view = empty()
    filling = view.fill([page(("a", 1)), page(error="connection lost")], now=0)
    assert (filling.is_complete, filling.error, len(view)) == (False, "connection lost", 1)
    assert view.record_use([key("a"), key("z")], now=1) == [key("z")]


def test_a_filling_stops_where_there_is_no_room() -> None:
    view = empty(capacity=2)
    pages = iter([page(("a", 1), ("b", 1), ("c", 1)), page(("d", 1))])
    assert not view.fill(pages, now=0).is_complete
    assert len(view) == 2
    assert next(pages).pairs, "the second page was not asked for"


def test_a_complete_view_knows_which_keys_are_not_there() -> None:
    view = empty()
    view.fill([page(("a", 1))], now=3)
    assert view.record_use([key("a"), key("z")], now=10) == []
    absent = view.get(key("z"))
    assert absent is not None
    assert (absent.rows, absent.refreshed_at) == ((), 3)


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    view = view_of("abcd", capacity=2)
    view.record_use([key("a")], now=1)
    view.record_use([key("c"), key("b")], now=2)
    assert view.evict() == 2
    assert names_in(view) == "cb"
    assert view.evictions == 2


def test_forgetting_ends_the_knowledge_of_absent_keys() -> None:
    view = empty(capacity=2)
    view.fill([page(("a", 1), ("b", 1))], now=0)
    view.record_use([key("y")], now=1)
    view.evict()
    assert view.record_use([key("a")], now=2) == [key("a")]


def test_a_refresh_counts_and_finds_changes() -> None:
    view = view_of("a")
    assert not view.store(key("a"), rows("a", 0), 10 * SECOND, 20 * SECOND)
    assert view.store(key("a"), rows("a", 1), 30 * SECOND, 40 * SECOND)
    entry = view.get(key("a"))
    assert entry is not None
    assert (entry.refreshes, entry.changes, entry.refreshed_at, entry.best_before) == (2, 1, 30 * SECOND, 40 * SECOND)
    assert entry.rows == rows("a", 1)


def test_rows_in_another_order_are_no_change() -> None:
    view = empty()
    view.store(key("a"), rows("a", 1, 2, 2), 0)
    assert not view.store(key("a"), rows("a", 2, 1, 2), SECOND)
    assert view.store(key("a"), rows("a", 2, 1, 1), 2 * SECOND)


def test_an_answer_that_was_overtaken_by_a_newer_one_is_left_aside() -> None:
    view = view_of("a")
    view.store(key("a"), rows("a", 2), 20)
    assert not view.store(key("a"), rows("a", 1), 10)
    assert view.rows(key("a")) == rows("a", 2)


def test_a_failure_leaves_the_old_rows_marked_until_a_refresh_succeeds() -> None:
    view = view_of("a")
    view.record_failure(key("a"), 10)
    view.record_failure(key("a"), 20)
    view.record_failure(key("unknown"), 20)
    entry = view.get(key("a"))
    assert entry is not None
    assert (entry.rows, entry.failing_since, entry.refreshed_at) == (rows("a", 0), 10, 0)
    view.store(key("a"), rows("a", 0), 30)
    assert entry.failing_since is None


def test_the_extent_of_changes_is_the_share_of_rows_they_touch() -> None:
    view = empty()
    view.store(key("a"), rows("a", *range(10)), 0)
    view.store(key("a"), rows("a", *range(9), 99), SECOND)
    entry = view.get(key("a"))
    assert entry is not None
    assert entry.extent == pytest.approx(0.1)


def test_entries_grow_stale_and_faster_the_more_often_they_changed() -> None:
    view = view_of("ab")
    for second in range(1, 9):
        view.store(key("a"), rows("a", second), second * SECOND)
        view.store(key("b"), rows("b", 0), second * SECOND)
        view.model.refit_population()
    entries = list(view)
    now = 8 * SECOND
    np.testing.assert_allclose(view.staleness(entries, now), [0.0, 0.0], atol=1e-9)
    soon, later = view.staleness(entries, now + SECOND), view.staleness(entries, now + 20 * SECOND)
    assert soon[0] > 5 * soon[1]
    assert all(later > soon)
    assert view.change_rate(entries[0]) > 5 * view.change_rate(entries[1])


def test_the_presence_of_an_entry_is_the_share_of_ticks_that_use_it() -> None:
    view = view_of("abc")
    for tick in range(200):
        view.record_use([key("a"), key("b")] if tick % 2 else [key("a")], now=tick)
    shares = [view.presence(entry) for name in "abc" if (entry := view.get(key(name)))]
    assert shares == pytest.approx([1.0, 0.5, 0.0], abs=0.02)


def test_before_the_first_tick_nothing_was_used() -> None:
    view = view_of("a")
    assert [view.presence(entry) for entry in view] == [0.0]


def test_its_state_survives_a_restart() -> None:
    view = empty(capacity=3)
    node = (*key("a"), Literal("x", language="en"))
    view.fill([Page([(key("a"), node), (key("b"), rows("b", 1)[0])], 0.0)], now=0)
    view.store(key("b"), rows("b", 2), 5 * SECOND, 9 * SECOND)
    view.record_use([key("a")], now=6 * SECOND)
    view.record_failure(key("b"), 6 * SECOND)
    saved = pack_state(view.state())
    view.store(key("a"), (), 7 * SECOND)
    other = empty(capacity=3)
    other.restore(unpack_state(saved))
    assert other.rows(key("a")) == (node,)
    restored = other.get(key("b"))
    assert restored is not None
    assert (restored.rows, restored.best_before, restored.failing_since) == (rows("b", 2), 9 * SECOND, 6 * SECOND)
    assert (other.ticks, other.complete_since) == (1, 0)
    assert names_in(other) == "ba"


def all_of(view: LocalView) -> list[object]:
    """Everything in a view's state, comparable."""
    state = view.state()
    return [
        state["ticks"],
        state["evictions"],
        state["complete_since"],
        state["model"]["slots"],
        state["model"]["evidence"].tolist(),
        *([str(getattr(entry, field.name)) for field in fields(entry)] for entry in state["entries"]),
    ]


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["use", "store", "fail", "trim", "save"]), st.sampled_from("abcdef"), st.integers(0, 3)),
    max_size=40,
)


@given(OPERATIONS)
def test_changes_one_after_the_other_come_to_the_same_as_the_whole(operations: list[tuple[str, str, int]]) -> None:
    view, follower = view_of("abc", capacity=4), empty(capacity=4)
    follower.restore(view.state())
    for instant, (operation, name, value) in enumerate([*operations, ("save", "", 0)], 1):
        match operation:
            case "use":
                view.record_use([key(name), key("a")], instant)
            case "store":
                view.store(key(name), rows(name, value), instant)
            case "fail":
                view.record_failure(key(name), instant)
            case "trim":
                view.evict()
            case "save":
                follower.apply_changes(unpack_state(pack_state(view.changes())))
    assert names_in(follower) == names_in(view)
    assert all_of(follower) == all_of(view)


def test_changes_hold_only_what_was_touched() -> None:
    view = view_of("abcdef")
    view.record_use([key("a")], 1)
    view.state()
    view.record_use([key("b")], 2)
    view.store(key("c"), rows("c", 1), 2)
    assert sorted(str(entry.key[0])[-2] for entry in view.changes()["entries"]) == ["b", "c"]
    assert view.changes()["entries"] == []


def test_a_smaller_view_takes_what_it_has_room_for() -> None:
    view = view_of("abc")
    other = empty(capacity=1)
    other.restore(view.state())
    assert len(other) == 1


def test_triple_terms_can_be_values() -> None:
    term = Triple(NamedNode("http://example.org/s"), NamedNode("http://example.org/p"), Literal(1))
    view = empty()
    view.store(key("a"), ((*key("a"), term),), 0)
    assert unpack_state(pack_state(view.state()))["entries"][0].rows[0][1] == term


def test_there_must_be_room_for_something() -> None:
    with pytest.raises(ValueError, match="room for one entry"):
        empty(capacity=0)


@given(BAGS, BAGS)
def test_the_difference_of_bags(old: list[int], new: list[int]) -> None:
    share = share_of_difference(rows("a", *old), rows("a", *new))
    common = (Counter(old) & Counter(new)).total()
    assert share == pytest.approx(1 - common / max(len(old), len(new)) if old or new else 0.0)
    assert (share == 0.0) == (Counter(old) == Counter(new))
