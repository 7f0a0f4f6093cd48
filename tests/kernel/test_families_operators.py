"""The operators of families against the definitions: a screen, a view, and pairs that satisfy a condition."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.families.family_screening import MemberFilterOperator
from headwater.kernel.families.member_tables import FamilyViewOperator, Key, TableOperator
from headwater.kernel.families.threshold_join import ThresholdJoinOperator
from tests.kernel.manual_input import Bag, ManualInput, ResultBag, as_rows

VALUES = st.integers(1, 4)
PAIRS = st.lists(st.tuples(VALUES, VALUES), max_size=5)
CHANGES = st.lists(st.tuples(PAIRS, st.floats(0, 1), PAIRS, st.floats(0, 1)), min_size=1, max_size=6)


def _goes(bag: Bag, share: float) -> list[tuple[int, ...]]:
    """About so much of a bag."""
    rows = sorted(bag.elements())
    return rows[: int(share * len(rows))]


@given(CHANGES)
def test_threshold_join(changes: list[tuple[list[Key], float, list[Key], float]]) -> None:
    left, right = ManualInput("a", "v"), ManualInput("m", "p")
    join = ResultBag(ThresholdJoinOperator(left, right, lambda rows: rows[:, 1] > rows[:, 3]))
    lefts: Bag = Counter()
    rights: Bag = Counter()
    for added, share, came, going in changes:
        gone, left_over = _goes(lefts, share), _goes(rights, going)
        left.feed(added, gone)
        right.feed(came, left_over)
        lefts = lefts + Counter(added) - Counter(gone)
        rights = rights + Counter(came) - Counter(left_over)
        expected: Bag = Counter()
        for one, n in lefts.items():
            for other, k in rights.items():
                if one[1] > other[1]:
                    expected[one + other] += n * k
        assert join.advance() == expected


@given(CHANGES)
def test_screen(changes: list[tuple[list[Key], float, list[Key], float]]) -> None:
    source = ManualInput("s", "o")
    content: Bag = Counter()
    screen = MemberFilterOperator(source, [1], [1], lambda: as_rows(content.elements(), 2), [(0, 1)])
    results = ResultBag(screen)
    members: Bag = Counter()
    for added, share, came, going in changes:
        gone = _goes(content, share)
        source.feed(added, gone)
        content = content + Counter(added) - Counter(gone)
        screen.enter(came)
        members += Counter(came)
        for member in _goes(members, going):
            screen.leave(member)
            members -= Counter([member])
        asked = {value for _, value in members}
        expected = Counter({row: n for row, n in content.items() if row[0] == 1 and row[1] in asked})
        assert results.advance() == expected


@given(st.lists(st.tuples(PAIRS, st.floats(0, 1)), min_size=1, max_size=6))
def test_view(changes: list[tuple[list[Key], float]]) -> None:
    questions: list[Key] = []

    def ask(keys: object) -> Ints:
        asked = list(keys)  # type: ignore[call-overload]
        questions.extend(asked)
        # A value has as many rows as it says.
        found = [(10 * key[0] + i, key[0]) for key in asked for i in range(key[0])]
        return np.array(found, dtype=np.int64).reshape(len(found), 2)

    view = FamilyViewOperator(("x", "p"), [1], [1], ask)
    results = ResultBag(view)
    members: Bag = Counter()
    for came, going in changes:
        before = {value for _, value in members}
        questions.clear()
        view.enter(came)
        assert sorted(questions) == sorted({(value,) for _, value in came} - {(value,) for value in before})
        members += Counter(came)
        for member in _goes(members, going):
            view.leave(member)
            members -= Counter([member])
        asked = {value for _, value in members}
        assert results.advance() == Counter((10 * p + i, p) for p in asked for i in range(p))
        assert view.nbytes == 16 * sum(asked)


def test_what_is_given_and_taken_before_a_tick_is_not_there() -> None:
    table = TableOperator(("m",))
    table.give(as_rows([(1,), (2,)], 1))
    table.take(as_rows([(1,)], 1))
    delta = table.advance()
    assert delta.added.tolist() == [[2]] and not delta.removed.shape[0]
    assert table.advance().is_empty
