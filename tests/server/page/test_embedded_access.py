"""The page's view of an engine in the same process: counts, answers, windows, previews, changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.demo.traffic import City, morning
from headwater.demo.traffic_feed import write_minute
from headwater.server.page.embedded.answer_history import AnswerHistory
from headwater.server.page.embedded.embedded_access import EmbeddedAccess
from headwater.server.page.embedded.recent_elements import read_recent
from headwater.server.page.page_access import PageAccess, PageAnswer, PageOverview, PageTable, QueryState
from tests.server.page.city_page import make_city, read_query

MINUTES = 12
DISTRICTS = "CarsEnteringPerDistrict"


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedAccess, Path]]:
    """A city of which twelve minutes have passed, with a stream that a query makes, and a line that is no element."""
    folder = tmp_path_factory.mktemp("city")
    access = make_city(folder)
    for number, minute in enumerate(morning(City.read(), MINUTES, 2010)):
        write_minute(folder, number, minute)
    (folder / "tollgates" / "minute-0005b.tnq").write_text("no element\n", "utf-8")
    access.add_query(read_query("entering-cars"))
    access.start()
    yield access, folder
    access.stop()


def until(look: Callable[[], Awaitable[PageOverview]], is_there: Callable[[PageOverview], bool]) -> PageOverview:
    """The overview, as soon as it shows something."""

    async def wait() -> PageOverview:
        while True:
            found = await look()
            assert not found.failure
            if is_there(found):
                return found
            await asyncio.sleep(0.05)

    return asyncio.run(asyncio.wait_for(wait(), 120))


def answered(access: PageAccess) -> PageOverview:
    """The overview when the districts were counted twice."""
    return until(access.overview, lambda found: found.queries[0].ticks >= 2)


def first_answers(access: PageAccess, name: str, count: int, after: str | None = None) -> list[PageAnswer]:
    async def take() -> list[PageAnswer]:
        found: list[PageAnswer] = []
        async for answer in access.answers(name, after):
            found.append(answer)
            if len(found) == count:
                break
        return found

    return asyncio.run(asyncio.wait_for(take(), 120))


def test_the_overview_counts_streams_queries_and_data(city: tuple[EmbeddedAccess, Path]) -> None:
    overview = answered(city[0])
    gates, cameras, derived = overview.streams[:3]
    assert (gates.name, gates.source, gates.bad) == ("http://city/tollgates", "tollgates", 1)
    assert gates.elements > 50 and gates.watermark is not None
    assert cameras.name == "http://city/cameras"
    assert (derived.name, derived.is_derived) == (DISTRICTS, True)
    query = overview.queries[0]
    assert (query.title, query.dialect, query.state) == (DISTRICTS, "C-SPARQL", QueryState.RUNNING)
    assert query.streams == ("http://city/tollgates",)
    (data,) = overview.datasets
    assert (data.name, data.statements) == ("city, places", 60)
    assert (overview.memory_bytes or 1) > 0


def test_answers_come_with_ids_from_which_a_reader_goes_on(city: tuple[EmbeddedAccess, Path]) -> None:
    access = city[0]
    answered(access)
    first, second = first_answers(access, DISTRICTS, 2)
    assert first.time < second.time
    assert first.table.columns == ("subject", "predicate", "object")
    assert ("c:North", "t:has-entering-cars") in {row[:2] for row in second.table.rows}
    assert first_answers(access, DISTRICTS, 1, after=first.id) == [second]


def test_windows_have_the_elements_that_they_held(city: tuple[EmbeddedAccess, Path]) -> None:
    answered(city[0])
    (window,) = asyncio.run(city[0].windows(DISTRICTS))
    assert window.stream == "http://city/tollgates" and "10m" in window.specification
    assert 0 < len(window.elements) <= window.items
    assert all(one.time is not None and window.low <= one.time < window.high for one in window.elements)
    assert "t:registers" in window.elements[0].triples


def test_the_plan_and_the_counts_of_its_steps(city: tuple[EmbeddedAccess, Path]) -> None:
    access = city[0]
    answered(access)
    plan = asyncio.run(access.plan(DISTRICTS))
    assert "flowchart" in plan.mermaid and "c:contains ?street" in plan.text
    assert plan.joins.columns[:3] == ("join", "input", "rows")
    newest = first_answers(access, DISTRICTS, 2)[-1]
    steps = asyncio.run(access.why(DISTRICTS, newest.time))
    assert any("t:registers" in step.text and step.solutions > 0 for step in steps)


def test_a_stream_shows_what_came_and_what_could_not_be_used(city: tuple[EmbeddedAccess, Path]) -> None:
    access = city[0]
    answered(access)
    details = asyncio.run(access.stream_details("http://city/tollgates"))
    times = [one.time or 0 for one in details.elements]
    assert times and times == sorted(times, reverse=True)
    assert details.predicates[0][0] == "http://linkedurbandata.org/traffic#registers"
    (letter,) = details.dead_letters
    assert (letter.kind, letter.text, letter.source, letter.line) == ("bad", "no element", "minute-0005b.tnq", 1)
    derived = asyncio.run(access.stream_details(DISTRICTS))
    assert "has-entering-cars" in derived.elements[0].triples
    with pytest.raises(hw.SettingError, match="no stream"):
        asyncio.run(access.stream_details("elsewhere"))


def test_a_text_is_checked_with_the_place_of_its_mistake(city: tuple[EmbeddedAccess, Path]) -> None:
    access = city[0]
    wrong = asyncio.run(access.validate("SELECT ?x\nWHERE { ?x ?y ?z } GROUP OF ?x"))
    assert wrong.problem is not None
    assert (wrong.problem.line, wrong.problem.column, wrong.problem.expected) == (2, 26, ("BY",))
    right = asyncio.run(access.validate(read_query("full-districts")))
    assert (right.problem, right.dialect, right.name, right.unknown_streams) == (None, "RSP-QL", "FullDistricts", ())
    elsewhere = asyncio.run(access.validate(read_query("fast-cars").replace("http://city/cameras", "elsewhere")))
    assert elsewhere.unknown_streams == ("elsewhere",)


def test_a_preview_answers_and_leaves_nothing_behind(city: tuple[EmbeddedAccess, Path]) -> None:
    access = city[0]
    answered(access)
    found = asyncio.run(access.preview(read_query("cars-on-the-map")))
    assert found.answers[-1].table.columns == ("place", "lat", "long", "cars")
    assert "answers over the last" in found.note
    fed = asyncio.run(access.preview(read_query("full-districts").replace("0.8 *", "0.0 *")))
    assert fed.answers, "it reads the stream that a registered query makes"
    assert [one.title for one in asyncio.run(access.overview()).queries] == [DISTRICTS]
    with pytest.raises(hw.QueryError):
        asyncio.run(access.preview("SELECT nothing"))


def test_a_query_is_registered_paused_resumed_and_dropped(city: tuple[EmbeddedAccess, Path]) -> None:
    access, folder = city
    answered(access)
    name = asyncio.run(access.register(read_query("fast-cars"), name="fast"))
    assert name == "fast"
    with pytest.raises(hw.HeadwaterError, match="fast"):
        asyncio.run(access.register(read_query("fast-cars"), name="fast"))
    asyncio.run(access.pause("fast"))
    with pytest.raises(hw.StateError, match="paused"):
        asyncio.run(access.why("fast", 0))
    assert [one.state for one in asyncio.run(access.overview()).queries][1] is QueryState.PAUSED
    asyncio.run(access.resume("fast"))
    later = morning(City.read(), MINUTES + 10, 2010)
    for number in range(MINUTES, MINUTES + 10):
        write_minute(folder, number, later[number])
    until(access.overview, lambda found: found.queries[1].ticks > 0)
    asyncio.run(access.drop("fast"))
    assert len(asyncio.run(access.overview()).queries) == 1
    with pytest.raises(hw.StateError, match="no query"):
        access.answers("fast")


def test_sparql_reads_the_linked_data_and_asks_nobody_else(city: tuple[EmbeddedAccess, Path]) -> None:
    access = city[0]
    prefix = "PREFIX c: <http://linkedurbandata.org/city#> "
    rows = asyncio.run(access.sparql(prefix + "SELECT ?s { c:North c:contains ?s } ORDER BY ?s"))
    assert rows.columns == ("s",) and len(rows.rows) == 2
    assert asyncio.run(access.sparql(prefix + "ASK { c:North c:contains c:Oak-Avenue }")).rows == ((True,),)
    built = asyncio.run(access.sparql("CONSTRUCT WHERE { ?s ?p ?o }"))
    assert len(built.rows) == 60 and built.columns == ("subject", "predicate", "object")
    for refused in ("SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }", "SELECT nothing"):
        with pytest.raises(hw.SettingError):
            asyncio.run(access.sparql(refused))


def test_completions_come_from_what_was_seen(city: tuple[EmbeddedAccess, Path]) -> None:
    labels = {one.label for one in asyncio.run(city[0].completions())}
    assert {"<http://city/tollgates>", f"<{DISTRICTS}>", "t:registers", "c:contains"} <= labels


def test_a_template_is_tried_on_rows(city: tuple[EmbeddedAccess, Path]) -> None:
    template = '@time {t}\n<http://x/{id}> <http://x/v> "{v}" .\n'
    found = asyncio.run(city[0].try_template(template, "t,id,v\n2026-01-01T00:00:00Z,a,1\nnever,b,2", ".csv"))
    assert [one.triples for one in found.elements] == ['<http://x/a> <http://x/v> "1" .']
    assert len(found.problems) == 1 and found.problems[0].startswith("row in line 3: ")
    lines = asyncio.run(city[0].try_template(template, '{"t": "2026-01-01T00:00:00Z", "id": "a", "v": 5}', ".jsonl"))
    assert len(lines.elements) == 1
    assert asyncio.run(city[0].try_template("no template", "", ".csv")).problems


def test_only_the_end_of_a_stream_is_read_again(tmp_path: Path) -> None:
    lines = [f'{number}\t<http://x/s> <http://x/p> "{number}" .\n' for number in range(1, 2001)]
    (tmp_path / "a.tnq").write_text("".join(lines[:1000]), "utf-8")
    (tmp_path / "b.tnq").write_text("".join(lines[1000:]), "utf-8")
    source = hw.files(tmp_path)
    assert [one.time for one in read_recent(source, 3)] == [1998_000, 1999_000, 2000_000]
    few = read_recent(source, 5_000, tail_bytes=1_000)
    assert 10 < len(few) < 50 and few[-1].time == 2000_000
    assert read_recent(hw.push(), 3) == []


def test_readers_of_a_history_end_with_it_and_miss_nothing() -> None:
    history = AnswerHistory(kept=3)
    for time in range(5):
        history.add(PageAnswer("", time, PageTable()))

    async def read() -> list[int]:
        seen: list[int] = []
        async for answer in history.follow():
            seen.append(answer.time)
            if answer.time == 4:
                # From another thread, as the run does.
                await asyncio.to_thread(history.add, PageAnswer("", 5, PageTable()))
                await asyncio.to_thread(history.close)
        return seen

    assert asyncio.run(asyncio.wait_for(read(), 30)) == [2, 3, 4, 5]
