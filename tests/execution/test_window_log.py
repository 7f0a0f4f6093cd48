"""The log of the windows holds what windows can show, and writes no more than that."""

from __future__ import annotations

import pytest

from headwater.execution.window_log import LogChanges, WindowLog
from headwater.terms.element_columns import ElementColumns
from headwater.terms.model import Element, NamedNode, Triple
from headwater.windows.element_sequences import Elements, elements_of, times_of

KEY = ("http://example.org/s", None)


def at(*times: int) -> list[Element]:
    return [
        Element(time, (Triple(NamedNode(f"urn:{time}"), NamedNode("urn:p"), NamedNode("urn:o")),), position=(time,))
        for time in times
    ]


def times_in(changes: LogChanges) -> list[list[int]]:
    return [[element.time for element in elements_of(segment.elements or [])] for segment in changes.added]


@pytest.mark.parametrize("form", [list, ElementColumns.of])
def test_of_a_new_segment_only_what_windows_can_show_is_written(form: type) -> None:
    log = WindowLog()
    elements: Elements = form(at(1, 7, 3, 9, 8, 2))
    log.append(KEY, elements)
    log.trim(KEY, 7)
    assert log.size.rows == 3
    changes = log.changes()
    assert log.size.rows == 3
    assert log.removed_until == {KEY: 3}
    assert times_in(changes) == [[7, 9, 8]]
    (segment,) = changes.added
    if isinstance(segment.elements, ElementColumns):
        kept = {text.decode() for texts in segment.elements.texts for _, text in texts.items()}
        assert kept == {"<urn:7>", "<urn:8>", "<urn:9>", "<urn:p>", "<urn:o>"}


def test_what_was_written_stays_until_all_of_it_has_gone() -> None:
    log = WindowLog()
    log.append(KEY, at(1, 2, 3))
    first = log.changes()
    log.append(KEY, at(4, 5))
    log.trim(KEY, 3)
    assert [len(segment.elements or []) for segment in log] == [3, 2]
    assert not log.removed_until
    log.trim(KEY, 5)
    second = log.changes()
    assert second.removed == [first.added[0].number]
    assert times_in(second) == [[5]]
    assert log.removed_until == {KEY: 4}


def test_what_came_and_went_between_two_looks_is_never_written() -> None:
    log = WindowLog()
    log.append(KEY, at(1, 2))
    log.append(KEY, at(3, 4))
    log.trim(KEY, 4)
    changes = log.changes()
    assert times_in(changes) == [[4]] and not changes.removed


def test_a_segment_that_nobody_takes_is_not_cut_if_it_goes_with_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    log = WindowLog()
    cuts: list[int] = []
    monkeypatch.setattr(log, "_cut", lambda segment, instant: cuts.append(instant))
    for batch in range(10):
        log.append(KEY, at(*range(100 * batch, 100 * batch + 100)))
        log.trim(KEY, 100 * batch + 90)
        assert log.size.rows == 10
        assert len(log) == 1
    assert not cuts


def looked_at(slides: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many elements are looked at while a full window of so many slides of ten moves on by a hundred slides."""
    log = WindowLog()
    seen = 0

    def count(elements: Elements) -> object:
        nonlocal seen
        seen += len(elements)
        return times_of(elements)

    for slide in range(slides + 100):
        if slide == slides:
            monkeypatch.setattr("headwater.execution.window_log.times_of", count)
        log.append(KEY, at(*range(10 * slide, 10 * slide + 10)))
        log.trim(KEY, 10 * (slide - slides) + 5)
    monkeypatch.undo()
    assert log.size.rows <= 10 * (slides + 2)
    return seen


def test_what_a_slide_costs_does_not_depend_on_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_at(500, monkeypatch) == looked_at(10, monkeypatch)


def test_a_long_segment_that_was_not_written_is_cut_once_half_of_its_time_has_passed() -> None:
    log = WindowLog()
    log.append(KEY, at(*range(100)))
    for instant in range(1, 100):
        log.trim(KEY, instant)
        assert 100 - instant <= log.size.rows <= 2 * (100 - instant) + 1
