"""Elements too far ahead of those before them are put aside, whatever the batches; a pause does not stop a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import headwater as hw
from headwater.terms.model import Element
from headwater.windows.element_sequences import times_of
from headwater.windows.partitioned_clock import PartitionedClock
from headwater.windows.stream_clock import StreamClock
from headwater.windows.time_jumps import NO_JUMP, find_jumps

LIMIT = 100


def _ahead(times: list[int], highest: int | None = None) -> list[int]:
    is_ahead, _ = find_jumps(np.array(times, dtype=np.int64), highest, LIMIT, NO_JUMP)
    return [time for time, ahead in zip(times, is_ahead, strict=True) if ahead]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([0, 10, 1000, 20, 30], [1000]),
        ([0, 100, 200, 300], []),
        ([0, 101, 5, 102, 6], [101]),
        ([0, 1000, 5, 1001, 6, 1002, 7], [1000, 1001, 1002]),
        ([0, 1000, 1001, 1002, 1003], [1000, 1001]),
        ([0, 1000, 5000, 9000, 10], [1000, 5000, 9000]),
        ([5000], []),
        ([0, -5000, 1], []),
    ],
)
def test_what_is_ahead(times: list[int], expected: list[int]) -> None:
    assert _ahead(times) == expected


def _put_aside(clock: StreamClock, batches: list[list[Element]]) -> tuple[list[int], list[int], list[int]]:
    ahead: list[int] = []
    late: list[int] = []
    admitted: list[int] = []
    for batch in batches:
        timely, jumped = clock.split_ahead(batch)
        taken, passed = clock.admit(timely)
        for found, elements in ((ahead, jumped), (late, passed), (admitted, taken)):
            found.extend(times_of(elements).tolist() if len(elements) else [])
    return ahead, late, admitted


times = st.lists(st.one_of(st.integers(0, 300), st.integers(1000, 1200), st.integers(5000, 5300)), max_size=20)


@given(times, st.lists(st.integers(1, 4), max_size=20), st.booleans())
def test_batches_do_not_matter(times: list[int], sizes: list[int], has_partitions: bool) -> None:
    elements = [Element(time, (), None, (number % 2, number)) for number, time in enumerate(times)]

    def clock() -> StreamClock:
        settings: dict[str, Any] = {"delay": 50, "max_ahead": LIMIT}
        return PartitionedClock(skew=1 << 40, **settings) if has_partitions else StreamClock(**settings)

    batches, rest = [], elements
    for size in sizes:
        batches.append(rest[:size])
        rest = rest[size:]
    ahead, late, _ = _put_aside(clock(), [*batches, rest])
    whole_ahead, whole_late, _ = _put_aside(clock(), [elements])
    assert sorted(ahead) == sorted(whole_ahead)
    if not has_partitions:
        # Which elements of a partition are late depends on how the partitions were interleaved with the others.
        assert late == whole_late


def _gates(folder: Path, jump: str = "2026-03-03T07:00:01Z") -> Path:
    times = ["2026-03-02T07:00:00Z", jump, *(f"2026-03-02T07:00:{second:02}Z" for second in range(2, 9))]
    lines = [f"{time}\t<http://x/g> <http://x/p> <http://x/c{number}> .\n" for number, time in enumerate(times)]
    path = folder / "gates.tnq"
    path.write_text("".join(lines))
    return path


QUERY = "SELECT (COUNT(?c) AS ?n) FROM STREAM <gates> [RANGE 10s STEP 10s] WHERE { ?g <http://x/p> ?c }"


def _counts(engine: hw.Engine, path: Path, **run: Any) -> tuple[list[int], hw.RunSummary]:
    engine.stream("gates", hw.files(path))
    engine.register(QUERY)
    answers: list[int] = []

    def take(answer: hw.Answer) -> None:
        answers.append(int(answer.rows[0][0].value))  # type: ignore[union-attr]

    def stop(progress: hw.Progress) -> None:
        if run and progress.elements == 9:
            engine.stop()

    return answers, engine.run(on_answer=take, on_progress=stop, **run)


def test_a_recording_is_taken_as_it_is(tmp_path: Path) -> None:
    _, summary = _counts(hw.Engine(in_process=True), _gates(tmp_path))
    assert (summary.late, summary.ahead) == (7, 0)
    assert "--max-ahead" in summary.warnings[0]


def test_a_limit_puts_the_jump_aside(tmp_path: Path) -> None:
    engine = hw.Engine(in_process=True, max_ahead="1h", dead_letters=tmp_path / "aside", batch_bytes=100)
    answers, summary = _counts(engine, _gates(tmp_path))
    assert (answers[0], summary.late, summary.ahead, summary.bad) == (1, 0, 1, 0)
    (letter,) = "".join(path.read_text() for path in (tmp_path / "aside").glob("*")).splitlines()
    assert '"kind": "ahead"' in letter
    assert "c1" in letter
    assert '"line": 2' in letter
    assert engine.queries[0].progress.ahead == 1


@pytest.mark.parametrize(("given", "ahead"), [(None, 1), ("off", 0), ("3d", 0)])
def test_a_run_that_follows_has_a_day(given: str | None, ahead: int, tmp_path: Path) -> None:
    path = _gates(tmp_path, "2026-03-04T07:00:01Z")
    _, summary = _counts(hw.Engine(in_process=True, max_ahead=given), path, follow=True, trigger_seconds=0.05)
    assert summary.ahead == ahead


def test_a_checkpoint_remembers_a_jump(tmp_path: Path) -> None:
    path = _gates(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2]))
    for text, expected in (("", 1), (lines[1] + lines[1], 1)):
        with path.open("a") as file:
            file.write(text)
        engine = hw.Engine(in_process=True, max_ahead="1h", checkpoint=tmp_path / "kept")
        engine.stream("gates", hw.files(path))
        engine.register(QUERY)
        assert engine.run(drain=False).ahead == expected


def test_a_strict_run_ends_at_a_jump(tmp_path: Path) -> None:
    engine = hw.Engine(in_process=True, max_ahead="1h", strict=True)
    engine.stream("gates", hw.files(_gates(tmp_path)))
    engine.register(QUERY)
    with pytest.raises(hw.StrictError, match=r"line 2: 2026-03-03T07:00:01Z is too far ahead"):
        engine.run()


def test_times_in_1970_are_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "gates.tnq"
    path.write_text("".join(f"{1772435100 + i}\t<http://x/g> <http://x/p> <http://x/c{i}> .\n" for i in range(9)))
    engine = hw.Engine(in_process=True, batch_bytes=60)
    engine.stream("gates", hw.files(path))
    engine.register(QUERY, name="one")
    engine.register(QUERY, name="two")
    warnings = engine.run().warnings
    assert len([text for text in warnings if "are in 1970" in text]) == 1
    assert len([record for record in caplog.records if "are in 1970" in record.getMessage()]) == 1
