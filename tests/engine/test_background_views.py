"""Views that have to be found again are found while ticks go on with the version before."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

import headwater as hw
from headwater.datasets.dataset import DataSet
from headwater.datasets.linked_data import LinkedData
from headwater.datasets.mapped_files import Ints
from headwater.datasets.views import view_catalog as views
from headwater.datasets.views.preparation import Preparation
from headwater.datasets.views.view_definitions import Texts, ViewDefinition
from headwater.running.version_choice import VersionChoice
from headwater.terms.model import Literal

QUERIES = {
    "optional": "{ ?gate :name ?name OPTIONAL { ?gate :city ?city } }",
    "path": "?gate (:name|:alias) ?name",
    "followed": "?gate :name ?name",
}
_LONG = 20.0


class Held:
    """Has views that are found in the background wait until they may go on; `fails` says at which one it breaks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(views, "SLOW_SECONDS", 0.0)
        self.may_go_on = threading.Event()
        self.waited_in_vain = False
        self.fails: int | None = None
        self.found = 0
        self.versions: list[tuple[int, ...]] = []
        rows, begin = ViewDefinition.find_rows, Preparation.begin

        def slow(definition: ViewDefinition, data: LinkedData, texts: Texts) -> Ints:
            if threading.current_thread().name == "headwater-views":
                self.waited_in_vain |= not self.may_go_on.wait(_LONG)
                self.found += 1
                if self.found == self.fails:
                    raise RuntimeError("half-way")
            return rows(definition, data, texts)

        def noted(preparation: Preparation, data_at: Callable[[tuple[int, ...]], LinkedData]) -> None:
            self.versions.append(preparation.version)
            begin(preparation, data_at)

        monkeypatch.setattr(ViewDefinition, "find_rows", slow)
        monkeypatch.setattr(Preparation, "begin", noted)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(monkeypatch)


class Run:
    """A run over data that somebody changes between answers: `at` has what to do behind which tick (1, 2, …)."""

    def __init__(self, folder: Path, at: dict[int, Callable[[DataSet], object]], *names: str) -> None:
        lines = [f"{i * 250}\t<http://ex/car{i}> <http://ex/at> <http://ex/g{i % 2}> .\n" for i in range(80)]
        (folder / "s.tnq").write_text("".join(lines))
        engine = hw.Engine(in_process=True)
        engine.stream("http://ex/s", hw.files(str(folder / "s.tnq")))
        for name in names:
            engine.register(
                "PREFIX : <http://ex/> SELECT ?name "
                f"WHERE {{ STREAM <http://ex/s> [RANGE 2s SLIDE 1s] {{ ?car :at ?gate }} {QUERIES[name]} }}",
                name=name,
                emit="rstream",
            )
        (folder / "gates.ttl").write_text('<http://ex/g0> <http://ex/name> "1" . <http://ex/g1> <http://ex/name> "1" .')
        self.data = engine.dataset(folder / "gates.ttl")
        self.answers: list[hw.Answer] = []

        def on_answer(answer: hw.Answer) -> None:
            self.answers.append(answer)
            if answer.query == names[-1]:
                self.ticks += 1
                at.get(self.ticks, lambda data: None)(self.data)

        self.ticks = 0
        engine.run(on_answer=on_answer)
        self.names = names

    @property
    def versions(self) -> list[int]:
        """The version that each tick saw, in all queries."""
        seen: dict[int, set[tuple[int, ...] | None]] = {}
        for answer in self.answers:
            seen.setdefault(answer.time, set()).add(answer.data_version)
        assert all(len(found) == 1 for found in seen.values()), "queries move together"
        return [found.pop()[0] for _, found in sorted(seen.items()) if found]  # type: ignore[index]

    def check(self) -> None:
        """Every tick is answered by every query, and shows one version: gates are named after it."""
        for name in self.names:
            assert [one.time for one in self.answers if one.query == name] == [i * 1_000_000 for i in range(22)]
        for answer in self.answers:
            assert answer.data_version is not None
            names = {term.value for (term,) in answer.rows if isinstance(term, Literal)}
            assert names == {str(answer.data_version[0])}


def rename(data: DataSet) -> None:
    """One more version, after which the gates are named."""
    data.update(
        "PREFIX : <http://ex/> DELETE { ?gate :name ?name } "
        f'INSERT {{ ?gate :name "{data.version + 1}" }} WHERE {{ ?gate :name ?name }}'
    )


@pytest.mark.parametrize("names", [("optional",), ("path",), ("optional", "path", "followed")])
def test_a_slow_view_holds_no_tick_up_and_is_there_at_the_second(
    tmp_path: Path, held: Held, names: tuple[str, ...]
) -> None:
    run = Run(tmp_path, {5: rename, 6: lambda _: held.may_go_on.set()}, *names)
    run.check()
    assert not held.waited_in_vain, "tick 6 was answered while the view was under way"
    assert run.versions[:8] == [1, 1, 1, 1, 1, 1, 2, 2]
    assert held.versions == [(2,)]


def test_later_changes_are_followed_in_the_same_way(tmp_path: Path, held: Held) -> None:
    """From the second change on a view is an input that says how it changes."""

    def renamed_again(data: DataSet) -> None:
        held.may_go_on.clear()
        rename(data)

    go_on = {6: lambda _: held.may_go_on.set(), 11: lambda _: held.may_go_on.set()}
    run = Run(tmp_path, {5: rename, **go_on, 10: renamed_again}, "optional", "path")
    run.check()
    assert not held.waited_in_vain
    assert run.versions[4:13] == [1, 1, 2, 2, 2, 2, 2, 3, 3]


def test_a_quick_view_is_there_at_the_next_tick(tmp_path: Path, held: Held) -> None:
    held.may_go_on.set()
    run = Run(tmp_path, {5: rename}, "optional", "path")
    run.check()
    assert run.versions[:7] == [1, 1, 1, 1, 1, 2, 2]


def test_what_is_followed_by_statements_needs_no_preparation(tmp_path: Path, held: Held) -> None:
    run = Run(tmp_path, {tick: rename for tick in range(3, 10)}, "followed")
    run.check()
    assert run.versions[:11] == [1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 8]
    assert not held.versions


def test_several_changes_are_prepared_as_one(tmp_path: Path, held: Held) -> None:
    def three(data: DataSet) -> None:
        for _ in range(3):
            rename(data)

    def two_more(data: DataSet) -> None:
        rename(data)
        rename(data)
        held.may_go_on.set()

    run = Run(tmp_path, {5: three, 6: two_more}, "optional", "path")
    run.check()
    assert not held.waited_in_vain
    assert run.versions[4:6] == [1, 1] and run.versions[6] >= 4 and run.versions[7] == 6
    assert held.versions == [(4,), (6,)]


def test_an_update_that_fails_half_way_leaves_the_version_before(tmp_path: Path, held: Held) -> None:
    def broken(data: DataSet) -> None:
        with pytest.raises(Exception, match="nothing is changed"):
            data.update('DELETE DATA { <http://ex/g0> <http://ex/name> "1" }; LOAD <file:///nowhere>')

    run = Run(tmp_path, {5: broken}, "optional", "path")
    run.check()
    assert set(run.versions) == {1} and not held.versions


def test_a_preparation_that_fails_half_way_shows_nothing(
    tmp_path: Path, held: Held, caplog: pytest.LogCaptureFixture
) -> None:
    """One of two views was found when the other failed: the version is made between two ticks, of both."""
    held.fails = 2
    with caplog.at_level(logging.WARNING):
        run = Run(tmp_path, {5: rename, 6: lambda _: held.may_go_on.set()}, "optional", "path")
    run.check()
    assert run.versions[4:7] == [1, 1, 2]
    assert held.found == 2 and "could not be prepared: half-way" in caplog.text


def choice(*ready: int) -> VersionChoice:
    """What chooses where some versions are ready."""
    return VersionChoice(lambda newest, _: max((v,) for v in (1, *ready) if v <= newest[0]))


def test_a_version_waits_for_one_tick() -> None:
    one = choice()
    assert one.next((1,), (1,)) == (1,)
    assert one.next((1,), (2,)) == (1,)
    assert one.next((1,), (3,)) == (2,), "the newest that a tick has missed"
    assert one.next((2,), (4,)) == (3,)
    assert one.next((3,), (4,)) == (4,)


def test_what_is_ready_is_taken() -> None:
    one = choice(3)
    assert one.next((1,), (4,)) == (3,)
    assert one.next((3,), (4,)) == (4,)
    assert one.next((4,), (5,)) == (3,), "nothing else is ready, and no tick has missed it"


@pytest.mark.parametrize(
    ("apart", "slide"),
    [(1, 1), (50, 1), (10, 20)],
    ids=["each element is a tick", "an element is fifty ticks", "two elements are a tick"],
)
def test_a_change_is_in_the_next_tick_however_many_are_read_at_once(tmp_path: Path, apart: int, slide: int) -> None:
    """All of the stream is read in one go, and the gate is renamed again and again by whoever hears of a tick."""
    lines = [f"{i * apart}\t<http://ex/car{i}> <http://ex/at> <http://ex/g0> .\n" for i in range(40)]
    (tmp_path / "s.tnq").write_text("".join(lines))
    (tmp_path / "gates.ttl").write_text('<http://ex/g0> <http://ex/name> "1" .')
    engine = hw.Engine(in_process=True)
    engine.stream("http://ex/s", hw.files(str(tmp_path / "s.tnq")))
    data = engine.dataset(tmp_path / "gates.ttl")
    for name in ("one", "other"):
        engine.register(
            "PREFIX : <http://ex/> SELECT ?name "
            f"WHERE {{ STREAM <http://ex/s> [RANGE 2s SLIDE {slide}ms] {{ ?car :at ?gate }} ?gate :name ?name }}",
            name=name,
            emit="rstream",
        )
    seen: list[tuple[str, int]] = []

    def on_answer(answer: hw.Answer) -> None:
        assert answer.data_version == (data.version,)
        assert {term.value for (term,) in answer.rows if isinstance(term, Literal)} <= {str(data.version)}
        seen.append((answer.query, answer.time))
        if answer.query == "other" and len(seen) <= 200:
            rename(data)

    engine.run(on_answer=on_answer)
    assert data.version == min(100, len(seen) // 2) + 1
    assert [query for query, _ in seen] == ["one", "other"] * (len(seen) // 2)
    instants = [time for query, time in seen if query == "one"]
    assert instants[0] == 0 and {b - a for a, b in pairwise(instants)} == {slide * 1000}
