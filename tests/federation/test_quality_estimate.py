"""What an answer is worth: the estimate, goals that make sense, and what an alert says."""

from __future__ import annotations

import pytest

from headwater.federation.view.lifetime import WindowKey
from headwater.federation.view.service_quality import Alert, Goal, Goals, estimate_quality
from headwater.terms.model import SECOND
from tests.federation.small_world import key, rows, view_of


def test_fresh_rows_are_right() -> None:
    view = view_of("ab", now=SECOND)
    found = estimate_quality(view, [WindowKey(key("a")), WindowKey(key("b"))], now=SECOND)
    assert found.accuracy == pytest.approx(1.0)
    assert (found.suspects, found.rows, found.missing) == (0, 2, 0)


def test_the_estimate_is_the_mean_over_rows_of_the_chance_to_be_right() -> None:
    view = view_of("ab")
    for second in range(1, 9):
        view.store(key("a"), rows("a", second), second * SECOND)
        view.store(key("b"), rows("b", 0), second * SECOND)
    view.model.refit_population()
    now = 12 * SECOND
    stale_a, stale_b = view.staleness(list(view), now)
    found = estimate_quality(view, [WindowKey(key("a"), 1, 3), WindowKey(key("b"), 1, 1)], now)
    assert found.accuracy == pytest.approx(1 - (3 * stale_a + stale_b) / 4)
    assert stale_a > 0.5 > stale_b
    assert found.suspects == 3


def test_long_lists_count_by_their_rows_and_by_what_a_change_touches() -> None:
    view = view_of("s")
    view.store(key("l"), rows("l", *range(10)), 0)
    for second in range(1, 6):
        view.store(key("l"), rows("l", *range(9), 100 + second), second * SECOND)
    view.model.refit_population()
    entry = view.get(key("l"))
    assert entry is not None
    (stale,) = view.staleness([entry], 30 * SECOND)
    found = estimate_quality(view, [WindowKey(key("l"), 1, 2)], 30 * SECOND)
    assert found.rows == 20
    assert found.accuracy == pytest.approx(1 - stale * entry.extent)
    assert found.accuracy > 0.85


def test_unknown_keys_count_as_wrong() -> None:
    view = view_of("a")
    found = estimate_quality(view, [WindowKey(key("a"), 1, 1), WindowKey(key("z"), 1, 3)], now=0)
    assert found.accuracy == pytest.approx(0.25)
    assert (found.missing, found.suspects, found.rows) == (3, 3, 4)


def test_an_entry_without_rows_may_be_stale_as_well() -> None:
    view = view_of("")
    view.store(key("a"), (), 0)
    assert estimate_quality(view, [WindowKey(key("a"))], now=100 * SECOND).accuracy < 1.0


def test_what_could_not_be_refreshed_is_suspect() -> None:
    view = view_of("ab")
    view.record_failure(key("a"), 0)
    assert estimate_quality(view, [WindowKey(key("a"), 1, 2), WindowKey(key("b"))], now=0).suspects == 2


def test_an_empty_window_is_answered_rightly() -> None:
    assert estimate_quality(view_of("a"), [], now=0).accuracy == 1.0


@pytest.mark.parametrize(
    ("goals", "complaint"),
    [
        ({"accuracy": 1.5}, "between 0 and 1"),
        ({"latency": 0.0}, "longer than nothing"),
        ({"budget": -1}, "not negative"),
    ],
)
def test_goals_that_make_no_sense_are_refused(goals: dict[str, float], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Goals(**goals)  # type: ignore[arg-type]


def test_an_alert_says_what_gives_way() -> None:
    alert = Alert(5, Goal.ACCURACY, 0.75, 0.5512, "the endpoint did not answer")
    assert str(alert) == "accuracy gives way: 0.551 instead of 0.75 (the endpoint did not answer)"
    assert (
        str(Alert(5, Goal.LATENCY, 0.5, 0.8, "accuracy holds"))
        == "latency gives way: 0.8 s instead of 0.5 s (accuracy holds)"
    )
