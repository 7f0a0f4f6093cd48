"""The demonstration: an invented morning that is the same everywhere, and three queries that agree about it."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from headwater.commands import option_values as inputs
from headwater.commands.answer_tables import Screen
from headwater.commands.demo_board import Board, Panel
from headwater.commands.demo_command import MINUTES, QUERIES, SEED, Pace, suggest_command
from headwater.commands.query_files import QueryFile
from headwater.demo import traffic
from headwater.demo.traffic import BEGIN, MINUTE, City, Minute, morning
from headwater.demo.traffic_feed import FOLDERS, TOLLGATES, TrafficFeed, last_instants, write_city, write_minute
from headwater.language.stream_clauses import Dialect, RegistrationKind
from headwater.running.progress import Progress
from headwater.terms.element_files import element_reader
from headwater.terms.model import Element
from tests.commands.running import PROJECT, headwater

DEMO = PROJECT / "headwater" / "demo"


@pytest.fixture(scope="module")
def minutes() -> list[Minute]:
    return morning(City.read(), MINUTES, SEED)


@pytest.mark.parametrize("module", [traffic, inputs])
def test_the_examples_in_docstrings_are_true(module: ModuleType) -> None:
    tried = doctest.testmod(module)
    assert tried.attempted
    assert not tried.failed


def test_the_same_seed_gives_the_same_morning(minutes: list[Minute]) -> None:
    assert morning(City.read(), MINUTES, SEED) == minutes
    assert morning(City.read(), MINUTES, SEED + 1) != minutes


def test_the_morning_is_in_order_of_time_with_a_rush_hour(minutes: list[Minute]) -> None:
    for stream in (
        [seen.instant for minute in minutes for seen in minute.tollgates],
        [seen.instant for minute in minutes for seen in minute.cameras],
    ):
        assert stream == sorted(stream)
        assert stream[0] >= BEGIN
        assert stream[-1] < BEGIN + MINUTES * MINUTE
    cars = [len(minute.tollgates) for minute in minutes]
    assert cars[MINUTES // 2] > 3 * max(cars[0], cars[-1])


def test_cameras_see_only_cars_that_entered_before(minutes: list[Minute]) -> None:
    entered = {seen.car: seen.instant for minute in minutes for seen in minute.tollgates}
    sightings = [seen for minute in minutes for seen in minute.cameras]
    assert sightings
    assert all(entered[seen.car] < seen.instant for seen in sightings)


def test_a_minute_on_disk_is_what_it_was(tmp_path: Path, minutes: list[Minute]) -> None:
    write_city(tmp_path)
    write_minute(tmp_path, 0, minutes[0])
    (file,) = (tmp_path / FOLDERS[TOLLGATES]).iterdir()
    elements = [found for found in element_reader(file).read() if isinstance(found, Element)]
    assert [element.time for element in elements] == [seen.instant * 1_000 for seen in minutes[0].tollgates]


def test_the_feed_writes_the_whole_morning(tmp_path: Path, minutes: list[Minute]) -> None:
    write_city(tmp_path)
    feed = TrafficFeed(tmp_path, minutes[:5])
    feed.begin()
    assert len(list((tmp_path / "tollgates").iterdir())) == 1
    feed.go_on(pause=0.01)
    feed.wait()
    assert feed.failure is None
    assert [len(list((tmp_path / name).glob("*.tnq"))) for name in FOLDERS.values()] == [5, 5]


def test_a_feed_that_is_stopped_leaves_no_half_file(tmp_path: Path, minutes: list[Minute]) -> None:
    write_city(tmp_path)
    feed = TrafficFeed(tmp_path, minutes)
    feed.begin()
    feed.go_on(pause=60.0)
    feed.stop()
    assert [file.name for file in tmp_path.rglob("minute-*")] == ["minute-0000.tnq", "minute-0000.tnq"]


def test_a_feed_that_cannot_write_says_so(tmp_path: Path, minutes: list[Minute]) -> None:
    feed = TrafficFeed(tmp_path / "nowhere", minutes[:2])
    feed.go_on(pause=0.0)
    feed.wait()
    assert isinstance(feed.failure, FileNotFoundError)


def test_the_last_instants_are_those_of_the_streams(minutes: list[Minute]) -> None:
    assert last_instants(minutes)[TOLLGATES] == minutes[-1].tollgates[-1].instant * 1_000


def test_there_is_one_query_per_dialect_and_one_reads_another() -> None:
    plans = [QueryFile.read(str(DEMO / "queries" / f"{name}.rq")).plan() for name in QUERIES]
    assert {plan.dialect for plan in plans} == set(Dialect)
    made = {
        f"headwater:/{plan.registration.name}"
        for plan in plans
        if plan.registration is not None and plan.registration.kind is RegistrationKind.STREAM
    }
    assert made & {window.stream.value for plan in plans for window in plan.windows}


def test_in_process_it_shows_all_three_queries_and_says_what_to_try() -> None:
    result = headwater("demo", "--seconds", "3", "--in-process")
    assert result.exit_code == 0, result.stderr
    for shown in ("C-SPARQL: cars that entered", "RSP-QL, reading the stream", "CQELS-QL: cars seen"):
        assert shown in result.stdout
    rows = {" ".join(line.replace("│", " ").split()) for line in result.stdout.splitlines()}
    assert "07:40:00 c:East t:has-entering-cars 21" in rows
    assert "07:30:00 c:North 62 50" in rows
    assert "07:33:28 HW 499 c:South c:East" in rows
    *_, done, page, last = result.stdout.splitlines()
    assert re.match(r"Done in \d+ s: 1,090 elements .* 41 ticks · 0 late · 0 bad", done)
    assert page.endswith("headwater demo --page")
    assert last.startswith("Try next: headwater run ")


def test_what_it_says_to_try_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    monkeypatch.setattr("sys.argv", ["headwater"])
    command = shlex.split(suggest_command())
    assert command[2] == "examples/cars-per-district.rq"
    result = headwater(*command[1:])
    assert result.exit_code == 0, result.stderr
    assert "CarsPerDistrict at 2026-03-02T07:10:00Z" in result.stdout


def test_the_pace_lets_the_morning_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    assert Pace(end=141.0).pause(41) == pytest.approx(1.0)
    assert Pace(end=90.0).pause(41) == 0.0
    assert Pace(end=90.0, shortest_pause=0.35).pause(41) == 0.35
    assert Pace(end=90.0).patience == Pace(end=100.0).patience == Pace(end=110.0).patience - 10


def test_the_board_stays_within_a_small_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = QueryFile.read(str(DEMO / "queries" / "fast-cars.rq")).plan()
    panels = {name: Panel.of(name, plan) for name in ("a", "b", "c")}
    for panel in panels.values():
        panel.newest.extend(("07:00:00", str(number), "x", "y") for number in range(10))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    screen = Screen()
    screen._force_terminal = True
    with screen.capture() as captured, Board(panels, screen) as board:
        board.progress(Progress())
    text = captured.get()
    assert "│ 9 " in text
    assert "│ 7 " not in text
