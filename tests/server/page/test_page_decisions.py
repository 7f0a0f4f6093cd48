"""What the page decides without a browser: pictures, differences, troubles, rates, links and marks."""

from __future__ import annotations

import doctest
from dataclasses import replace

import pytest

from headwater.errors import SettingError
from headwater.server.page import share_links
from headwater.server.page.answer_charts import ChartKind, MapExtent, chart_options, find_columns, possible_charts
from headwater.server.page.answer_differences import compare_answers
from headwater.server.page.embedded.completion_words import list_completions
from headwater.server.page.page_access import (
    PageAnswer,
    PageOverview,
    PageQuery,
    PageStream,
    PageTable,
    QueryState,
    WhyStep,
)
from headwater.server.page.page_rates import RateMeter
from headwater.server.page.page_troubles import Severity, find_troubles
from headwater.server.page.plan_rows import rows_graph
from headwater.server.page.query_examples import list_examples
from headwater.server.page.query_tabs import quality_text, tick_time_text
from headwater.server.page.share_links import LONGEST_TEXT, editor_path, pack_text, query_path, unpack_text

PLACES = PageTable(("place", "lat", "long", "cars"), (("c:gate1", 45.5, 9.1, 3), ("c:gate2", 45.4, 9.2, 12)))
COUNTS = PageTable(("gate", "cars"), (("c:gate1", 3), ("c:gate2", 12)))
TEXTS = PageTable(("car", "from"), (("HW 1", "c:North"),))
RUNNING = PageQuery("q", "RSP-QL", QueryState.RUNNING, "")


def answer(table: PageTable, time: int = 0, operator: str = "rstream") -> PageAnswer:
    return PageAnswer("", time, table, operator)


def test_columns_are_coordinates_numbers_or_texts() -> None:
    columns = find_columns(PLACES)
    assert (columns.latitude, columns.longitude, columns.numbers, columns.texts) == (1, 2, (3,), (0,))
    assert columns.has_coordinates
    assert not find_columns(PageTable(("lat", "long"), (("north", 9.1),))).has_coordinates
    assert find_columns(PageTable(("is", "n"), ((True, None), (False, 2)))).numbers == (1,)


@pytest.mark.parametrize(
    ("table", "kinds"),
    [
        (PLACES, (ChartKind.MAP, ChartKind.LINES, ChartKind.BARS)),
        (COUNTS, (ChartKind.LINES, ChartKind.BARS)),
        (TEXTS, (ChartKind.LINES,)),
    ],
)
def test_the_best_picture_comes_first(table: PageTable, kinds: tuple[ChartKind, ...]) -> None:
    assert possible_charts(table) == kinds


def test_a_map_has_points_at_their_coordinates_and_stays_where_it_is() -> None:
    extent = MapExtent()
    options = chart_options(ChartKind.MAP, [answer(PLACES)], extent)
    points = {point["name"]: point for point in options["series"][0]["data"]}
    assert points["c:gate1"]["value"] == [9.1, 45.5, 3]
    assert points["c:gate1"]["symbolSize"] < points["c:gate2"]["symbolSize"]
    only_first = replace(PLACES, rows=PLACES.rows[:1])
    later = chart_options(ChartKind.MAP, [answer(only_first)], extent)
    assert [point["name"] for point in later["series"][0]["data"]] == ["c:gate1"]
    for axis in ("xAxis", "yAxis"):
        assert (later[axis]["min"], later[axis]["max"]) == (options[axis]["min"], options[axis]["max"])


def test_lines_have_a_series_for_each_text() -> None:
    later = replace(COUNTS, rows=(("c:gate1", 5),))
    options = chart_options(ChartKind.LINES, [answer(COUNTS, 1_000_000), answer(later, 2_000_000)])
    series = {one["name"]: one["data"] for one in options["series"]}
    assert series == {"c:gate1": [[1000.0, 3], [2000.0, 5]], "c:gate2": [[1000.0, 12]]}
    rows = chart_options(ChartKind.LINES, [answer(TEXTS), answer(PageTable(("car", "from")), 1_000_000)])
    assert rows["series"][0]["data"] == [[0.0, 1], [1000.0, 0]]


def test_iris_are_named_by_their_last_part_where_that_is_enough() -> None:
    rows = (("<http://x/city#gate1>", 1), ("<http://x/city/gate2/>", 2))
    names = [one["name"] for one in chart_options(ChartKind.LINES, [answer(PageTable(("g", "n"), rows))])["series"]]
    assert sorted(names) == ["gate1", "gate2"]
    rows = (("<http://x/a#gate>", 1), ("<http://x/b#gate>", 2))
    bars = chart_options(ChartKind.BARS, [answer(PageTable(("g", "n"), rows))])
    assert bars["yAxis"]["data"] == ["<http://x/b#gate>", "<http://x/a#gate>"]


def test_bars_are_those_of_the_newest_answer_with_rows() -> None:
    options = chart_options(ChartKind.BARS, [answer(COUNTS), answer(PageTable(COUNTS.columns))])
    assert options["yAxis"]["data"] == ["c:gate2", "c:gate1"]
    assert options["series"][0]["data"] == [12, 3]


def test_pictures_are_bounded() -> None:
    many = PageTable(("name", "n"), tuple((f"row {number}", number) for number in range(500)))
    assert len(chart_options(ChartKind.LINES, [answer(many)])["series"]) <= 12
    assert len(chart_options(ChartKind.BARS, [answer(many)])["series"][0]["data"]) <= 30


def test_what_entered_and_what_left_counts_equal_rows() -> None:
    before = PageTable(("x",), (("a",), ("a",), ("b",)))
    now = PageTable(("x",), (("a",), ("c",)))
    difference = compare_answers(answer(before), answer(now))
    assert (difference.entered, difference.left) == ((("c",),), (("a",), ("b",)))
    assert compare_answers(None, answer(now)).entered == now.rows
    assert compare_answers(answer(before), answer(now, operator="istream")).left == ()
    assert compare_answers(answer(before), answer(now, operator="dstream")).left == now.rows


def test_what_is_wrong_comes_with_the_worst_first() -> None:
    overview = PageOverview(
        True,
        (
            PageStream("good", "", 100, late=0),
            PageStream("torn", "", 100, late=5, bad=1),
            PageStream("x y", "", ahead=2),
        ),
        (
            replace(RUNNING, state=QueryState.PAUSED),
            replace(RUNNING, name="p", waits_for=("torn",)),
            replace(RUNNING, name="s", state=QueryState.SUSPENDED, reason="too many rows"),
        ),
    )
    troubles = find_troubles(overview)
    assert [one.text for one in troubles] == [
        "s is suspended: too many rows",
        "p waits for the silent stream torn.",
        "1 element of torn could not be read.",
        "5 elements of torn came late.",
        "2 elements of x y jumped ahead in time.",
        "q is paused.",
    ]
    assert troubles[0].path == "/query?name=s"
    assert troubles[4].path == "/streams?name=x%20y"
    assert find_troubles(PageOverview(True, (PageStream("a", "", 1000, late=1),), (RUNNING,))) == []


def test_a_run_that_ended_is_the_first_trouble() -> None:
    (trouble,) = find_troubles(PageOverview(False, failure="the disk is full"))
    assert trouble.severity is Severity.FAILURE and "the disk is full" in trouble.text
    assert "not running" in find_troubles(PageOverview(False))[0].text


def test_rates_are_those_of_the_last_seconds() -> None:
    meter = RateMeter(seconds=2.0)
    counts = [(0.0, 0), (1.0, 10), (2.0, 20), (3.0, 120), (4.0, 220)]
    assert [meter.measure("a", count, now) for now, count in counts] == [0.0, 10.0, 10.0, 55.0, 100.0]
    assert meter.measure("a", 5, 5.0) == 0.0, "a count that began anew"


def test_links_bring_back_the_text() -> None:
    assert not doctest.testmod(share_links).failed
    text = 'SELECT ?ü WHERE { ?ü ?p "a & b" }\n' * 40
    assert unpack_text(pack_text(text)) == text
    assert len(pack_text(text)) < len(text) / 4
    assert editor_path("x").startswith("/editor?text=")
    assert query_path("http://a/b?c") == "/query?name=http%3A%2F%2Fa%2Fb%3Fc"
    assert len(unpack_text(pack_text("x" * 10_000_000))) == LONGEST_TEXT
    with pytest.raises(SettingError, match="damaged"):
        unpack_text("no link")


def test_examples_are_queries_over_a_known_stream() -> None:
    from headwater.language.parser import parse

    examples = list_examples(["http://city/tollgates"])
    assert {parse(one.text).dialect.value for one in examples} == {"csparql", "cqels", "rspql"}
    assert all("<http://city/tollgates>" in one.text for one in examples)


def test_completion_knows_prefixes_streams_and_predicates() -> None:
    words = list_completions([("t", "http://t/")], ["gates", "gates"], ["http://t/registers", "http://u/x"])
    labels = [one.label for one in words]
    assert {"REGISTER", "PREFIX t: <http://t/>", "<gates>", "t:registers", "<http://u/x>"} <= set(labels)
    assert labels.count("<gates>") == 1


def test_the_rows_of_a_plan_are_drawn_between_its_steps() -> None:
    steps = (
        WhyStep(2, "?a ?b ?c", 9),
        WhyStep(2, 'x "y" <z>', 3),
        WhyStep(1, "join", 0, True),
        WhyStep(0, "distinct", 0),
    )
    lines = rows_graph(steps).splitlines()
    assert lines[:2] == ["flowchart BT", 'n0["?a ?b ?c<br/>9 out"]']
    assert lines[2] == 'n1["x #34;y#34; #60;z#62;<br/>3 out"]'
    assert lines[3:5] == ['n2["join<br/>12 in, 0 out"]', "class n2 ending"]
    assert [line for line in lines if "-->" in line] == ['n0 -->|"9"| n2', 'n1 -->|"3"| n2', 'n2 -->|"0"| n3']


def test_delays_times_and_quality_are_said() -> None:
    assert PageStream("s", "", watermark=5_000_000).delay(7_000_000) == 2_000_000
    assert PageStream("s", "").delay(7_000_000) is None
    assert "100 ticks" in tick_time_text(replace(RUNNING, ticks=100, seconds=0.5))
    answer = PageAnswer("", 0, PageTable(), remarks=("data at version 3",))
    assert quality_text(answer) == "its windows held everything  ·  data at version 3"
    assert "did not hold" in quality_text(replace(answer, is_complete=False))
    assert quality_text(None) == ""
