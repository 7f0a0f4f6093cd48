"""`headwater run` in process: answers on stdout in the format asked for, the rest on stderr, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.running import CAMERAS, CITY, EXAMPLES, TOLLGATES, headwater, run_example

CITY_IRI = "http://linkedurbandata.org/city#"
XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"

COUNTS = {"07:05": {"East": 1, "North": 3}, "07:10": {"East": 2, "North": 7}}
COUNTS |= {"07:15": {"East": 2, "North": 5}, "07:20": {"East": 1, "North": 1}}


def expected_json(clock: str, time_us: int) -> dict[str, Any]:
    bindings = [
        {
            "district": {"type": "uri", "value": CITY_IRI + district},
            "passages": {"type": "literal", "value": str(count), "datatype": XSD_INTEGER},
        }
        for district, count in COUNTS[clock].items()
    ]
    return {
        "head": {"vars": ["district", "passages"]},
        "time_us": time_us,
        "time": f"2026-03-02T{clock}:00Z",
        "results": {"bindings": bindings},
    }


def test_json_is_one_results_object_per_line_and_nothing_else() -> None:
    result = run_example("cars-per-district", "--format", "json")
    assert result.exit_code == 0, result.stderr
    step = 5 * 60 * 1_000_000
    expected = [expected_json(clock, 1_772_435_100_000_000 + i * step) for i, clock in enumerate(COUNTS)]
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    inputs = [answer.pop("inputs") for answer in answers]
    assert answers == expected
    assert inputs[0] == [
        {
            "window": "http://city/tollgates",
            "from_us": 1_772_434_500_000_001,
            "before_us": 1_772_435_100_000_001,
            "items": 4,
        }
    ]


def test_the_summary_goes_to_stderr_in_one_line_and_no_progress_does() -> None:
    result = run_example("cars-per-district", "--format", "json")
    (summary,) = result.stderr.splitlines()
    assert summary.startswith("done in ")
    assert "11 elements" in summary
    assert "watermark 2026-03-02T07:13:25Z · 4 ticks · 0 late · 0 bad" in summary


def test_tables_are_titled_with_query_and_time() -> None:
    result = run_example("cars-per-district")
    lines = result.stdout.splitlines()
    assert lines[0] == "CarsPerDistrict at 2026-03-02T07:05:00Z"
    assert "│ c:North  │        3 │" in lines
    assert len([line for line in lines if line.startswith("CarsPerDistrict at")]) == 4


def test_csv_has_one_header() -> None:
    result = run_example("cars-per-district", "--format", "csv")
    lines = result.stdout.splitlines()
    assert lines[:2] == ["time,district,passages", f"2026-03-02T07:05:00Z,{CITY_IRI}East,1"]
    assert len(lines) == 9


def test_nquads_hold_the_constructed_triples() -> None:
    result = run_example("district-stream", "--format", "nquads")
    assert f'<{CITY_IRI}North> <http://linkedurbandata.org/traffic#has-entering-cars> "7"' in result.stdout
    assert result.stdout.count("generatedAtTime") == 4


def test_queries_feed_each_other_whatever_their_order() -> None:
    queries = [EXAMPLES / "busy-districts.rq", EXAMPLES / "district-stream.rq"]
    result = headwater("run", *queries, "--in-process", *TOLLGATES, *CITY, "--format", "json")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    busy = [answer for answer in answers if answer["query"] == "BusyDistricts"]
    full = [(a["time"], row["district"]["value"]) for a in busy for row in a["results"]["bindings"]]
    assert full == [("2026-03-02T07:10:00Z", CITY_IRI + "North")]
    assert [answer["time"] for answer in answers if answer["query"] == "EnteringCars"] == [
        f"2026-03-02T{clock}:00Z" for clock in COUNTS
    ]


def test_a_query_without_a_name_is_called_like_its_file() -> None:
    result = run_example("across-town", *CAMERAS)
    assert result.stdout.splitlines()[0] == "across-town at 2026-03-02T07:03:20Z"
    cars = [line.split("│")[1].strip() for line in result.stdout.splitlines() if "HW" in line]
    assert cars == ["HW 101", "HW 105", "HW 106", "HW 109"]


def test_the_query_can_come_from_stdin() -> None:
    text = (EXAMPLES / "cars-per-district.rq").read_text()
    result = headwater("run", "-", "--in-process", *TOLLGATES, *CITY, "--format", "json", stdin=text)
    assert result.stdout == run_example("cars-per-district", "--format", "json").stdout


def test_a_stream_may_have_several_sources(tmp_path: Path) -> None:
    lines = (EXAMPLES / "tollgates.tnq").read_text().splitlines(keepends=True)
    (tmp_path / "a.tnq").write_text("".join(lines[:6]))
    (tmp_path / "b.tnq").write_text("".join(lines[6:]))
    streams = [("--stream", f"http://city/tollgates={tmp_path / name}") for name in ("a.tnq", "b.tnq")]
    query = EXAMPLES / "cars-per-district.rq"
    result = headwater("run", query, "--in-process", *streams[0], *streams[1], *CITY, "--format", "json")
    assert result.stdout == run_example("cars-per-district", "--format", "json").stdout


def test_data_can_go_into_a_named_graph() -> None:
    query = "SELECT ?g WHERE { GRAPH ?g { <http://linkedurbandata.org/city#gate1> ?p ?o } }"
    data = f"{EXAMPLES / 'city.ttl'}@http://city/map"
    result = headwater("run", "-", "--in-process", "--data", data, "--format", "json", stdin=query)
    (answer,) = map(json.loads, result.stdout.splitlines())
    assert answer["results"]["bindings"] == [{"g": {"type": "uri", "value": "http://city/map"}}]


ONE_GATE = "SELECT (COUNT(*) AS ?n) FROM STREAM <gates> [RANGE 10s STEP 10s] WHERE { ?gate <urn:sees> ?car }"


def counts(stream: Path, *options: str, query: str = ONE_GATE) -> list[tuple[int, str]]:
    result = headwater(
        "run", "-", "--in-process", "--stream", f"gates={stream}", "--format", "json", *options, stdin=query
    )
    assert result.exit_code == 0, result.stderr
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    return [(a["time_us"] // 1_000_000, row["n"]["value"]) for a in answers for row in a["results"]["bindings"]]


def gates(path: Path, *seconds: int) -> Path:
    lines = (f"{second * 1000}\t<urn:gate> <urn:sees> <urn:car{i}> .\n" for i, second in enumerate(seconds))
    path.write_text("".join(lines))
    return path


def test_bounds_and_t0_move_the_windows(tmp_path: Path) -> None:
    stream = gates(tmp_path / "gates.tnq", 3, 10, 14)
    assert counts(stream) == [(10, "2"), (20, "1")]
    assert counts(stream, "--bounds", "[)") == [(10, "1"), (20, "2")]
    assert counts(stream, "--t0", "3000") == [(13, "1"), (23, "1")]
    assert counts(stream, "--t0", "1970-01-01T00:00:03Z", "--bounds", "[)") == [(13, "2"), (23, "1")]


def test_emit_and_report_and_content_are_passed_on(tmp_path: Path) -> None:
    stream = gates(tmp_path / "gates.tnq", 3, 13, 23)
    assert counts(stream) == [(10, "1"), (20, "1"), (30, "1")]
    assert counts(stream, "--emit", "istream") == [(10, "1")]
    assert counts(stream, "--report", "nonempty") == [(10, "1"), (20, "1"), (30, "1")]
    twice = tmp_path / "twice.tnq"
    twice.write_text("1000\t<urn:gate> <urn:sees> <urn:car> .\n2000\t<urn:gate> <urn:sees> <urn:car> .\n")
    assert counts(twice) == [(10, "1")]
    assert counts(twice, "--content", "bag") == [(10, "2")]


def test_delay_lets_late_elements_in(tmp_path: Path) -> None:
    stream = gates(tmp_path / "gates.tnq", 3, 14, 9)
    assert counts(stream, "--delay", "5s") == [(10, "2"), (20, "1")]
    assert counts(stream) == [(10, "1"), (20, "1")]


def test_without_draining_open_windows_stay_unanswered(tmp_path: Path) -> None:
    stream = gates(tmp_path / "gates.tnq", 3, 14)
    assert counts(stream, "--no-drain") == [(10, "1")]


def test_bad_and_late_lines_are_counted_and_kept(tmp_path: Path) -> None:
    stream = gates(tmp_path / "gates.tnq", 3, 14, 2)
    with stream.open("a") as file:
        file.write("this is no line of a stream\n")
    letters = tmp_path / "letters"
    arguments = ["--in-process", "--stream", f"gates={stream}", "--dead-letters", letters, "--format", "json"]
    result = headwater("run", "-", *arguments, stdin=ONE_GATE)
    assert result.exit_code == 0
    assert "1 late · 1 bad" in result.stderr
    kinds = [json.loads(line)["kind"] for path in letters.iterdir() for line in path.read_text().splitlines()]
    assert sorted(kinds) == ["bad", "late"]


def test_strict_stops_at_the_first_bad_line(tmp_path: Path) -> None:
    stream = gates(tmp_path / "gates.tnq", 3)
    with stream.open("a") as file:
        file.write("this is no line of a stream\n")
    result = headwater("run", "-", "--in-process", "--strict", "--stream", f"gates={stream}", stdin=ONE_GATE)
    assert result.exit_code == 1
    assert result.stderr.startswith("headwater: ")
    assert "gates.tnq, line 2" in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_a_checkpoint_goes_on_where_it_was(tmp_path: Path) -> None:
    stream = gates(tmp_path / "gates.tnq", 3, 14)
    options = ("--checkpoint", str(tmp_path / "checkpoint"), "--no-drain")
    assert counts(stream, *options) == [(10, "1")]
    gates(stream, 3, 14, 15, 24)
    assert counts(stream, *options) == [(20, "2")]


def test_rows_need_their_template(tmp_path: Path) -> None:
    rows, template = tmp_path / "gates.csv", tmp_path / "row.template"
    rows.write_text("when,car\n1000,a\n2000,b\n")
    template.write_text("@time {when}\n<urn:gate> <urn:sees> <urn:{car}> .\n")
    result = headwater("run", "-", "--in-process", "--stream", f"gates={rows}", stdin=ONE_GATE)
    assert result.exit_code == 2
    assert "--template" in result.stderr
    assert counts(rows, "--template", f"gates={template}") == [(10, "2")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--stream", "http://city/tollgates"), "IRI=SOURCE"),
        (("--stream", "http://city/tollgates=nowhere.tnq"), "no file or folder nowhere.tnq"),
        (("--data", "nowhere.ttl"), "no file nowhere.ttl"),
        (("--template", "http://city/tollgates=nowhere"), "no file nowhere"),
        (("--delay", "5 parsecs"), "is not a duration"),
        (("--t0", "yesterday"), "is not a time"),
        (("--format", "yaml"), "'yaml' is not one of"),
        (("--bounds", "[]"), "'[]' is not one of"),
        ((), "has no source"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_why(arguments: tuple[str, ...], message: str) -> None:
    result = headwater("run", EXAMPLES / "cars-per-district.rq", "--in-process", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_a_wrong_query_ends_with_2_before_anything_is_read(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.rq"
    wrong.write_text("SELECT ?s\nWHERE { ?s ?p ?o")
    result = headwater("run", wrong, "--in-process", "--stream", "gates=nowhere.tnq")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{wrong}: line 2, column ")
    assert "^" in result.stderr


def test_equal_names_are_refused() -> None:
    query = EXAMPLES / "cars-per-district.rq"
    result = headwater("run", query, query, "--in-process", *TOLLGATES, *CITY)
    assert result.exit_code == 2
    assert "two queries are named 'CarsPerDistrict'" in result.stderr


def test_broken_static_data_ends_with_1(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ttl"
    broken.write_text("<urn:a> <urn:b> .")
    result = run_example("cars-per-district", "--data", broken)
    assert result.exit_code == 1
    assert "broken.ttl" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_second_run_from_a_checkpoint_says_that_everything_was_read(tmp_path: Path) -> None:
    first, second = (run_example("cars-per-district", "--checkpoint", tmp_path / "checkpoint") for _ in range(2))
    assert "had read everything" not in first.stderr
    assert second.exit_code == 0
    assert f"an earlier run from the checkpoint {tmp_path / 'checkpoint'} had read everything" in second.stderr


def test_real_time_mode_is_one_of_spark() -> None:
    result = run_example("cars-per-district", "--realtime")
    assert result.exit_code != 0
    assert "leave out in_process=True (--in-process)" in result.stderr + str(result.exception)
