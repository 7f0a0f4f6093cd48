"""SERVICE through the engine and the command line: goals, settings, quality in the output, both runners, restarts."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer
from pyoxigraph import Literal, NamedNode, Quad, QueryResultsFormat, QuerySolutions, Store, parse_query_results

import headwater as hw
from headwater.algebra.nodes import Service
from headwater.algebra.scope import nodes_of
from headwater.commands.option_values import parse_endpoint_option
from headwater.execution.answers import Answer
from headwater.language.service_options import Preference, Strategy
from headwater.sinks.answer_text import format_answer_json
from tests.federation.servers import Served, serving, sparql
from tests.federation.service_runs import EX, iri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PEOPLE = ("anna", "bert", "carl")


@pytest.fixture
def endpoint() -> Iterator[Served]:
    store = Store()
    for number, who in enumerate(PEOPLE):
        store.add(Quad(iri(who), iri("followers"), Literal(number)))
    with serving(sparql(store)) as served:
        yield served


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    lines = [
        f"{1000 * second + 500}\t<{EX}{PEOPLE[second % 3]}> <{EX}mentionedIn> <{EX}post{second}> .\n"
        for second in range(12)
    ]
    path = tmp_path / "mentions.tnq"
    path.write_text("".join(lines))
    return path


def query(url: str, options: str = "") -> str:
    return f"""PREFIX : <{EX}> SELECT ?who ?n FROM STREAM :mentions [RANGE 4s STEP 2s]
               WHERE {{ ?who :mentionedIn ?post . SERVICE <{url}> {{ ?who :followers ?n }} {options} }}"""


def answers_of(engine: hw.Engine, stream: Path, text: str, **settings: object) -> tuple[list[Answer], hw.RunSummary]:
    engine.stream(EX + "mentions", stream)
    engine.register(text, **settings)  # type: ignore[arg-type]
    found: list[Answer] = []
    return found, engine.run(on_answer=found.append)


def services_of(engine: hw.Engine) -> list[Service]:
    return [node for query in engine.queries for node in nodes_of(query.plan.root) if isinstance(node, Service)]


def test_goals_for_all_clauses_of_a_query(endpoint: Served, stream: Path) -> None:
    engine = hw.Engine(in_process=True)
    goals = {"latency": "200ms", "strategy": "view", "prefer": "accuracy", "budget": 7}
    answers, summary = answers_of(engine, stream, query(endpoint.url, "OPTION (BUDGET 1)"), service=goals)
    (service,) = services_of(engine)
    assert service.options == hw.ServiceOptions(
        latency=200_000, budget=1, strategy=Strategy.VIEW, prefer=Preference.ACCURACY
    )
    assert all(answer.quality is not None and answer.quality.requests <= 1 for answer in answers)
    assert summary.ticks == len(answers)


@pytest.mark.parametrize(
    "wrong",
    [
        {"budgets": 3},
        {"strategy": "guess"},
        {"clock": "sun"},
        {"rates": 3},
        {"policy": "BEST"},
        {"latency": "soon"},
        {"accuracy": 2.0},
    ],
)
def test_wrong_goals_are_errors_of_the_registration(wrong: dict[str, object]) -> None:
    engine = hw.Engine(in_process=True)
    with pytest.raises(ValueError):
        engine.register(query("http://example.org/sparql"), service=wrong)
    assert engine.queries == ()


def test_rates_from_a_file_a_graph_and_the_api(
    endpoint: Served, stream: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("who,per_day\n" + "".join(f"{EX}{who},1\n" for who in PEOPLE))
    often = [Quad(iri(who), NamedNode("urn:headwater:changesPerSecond"), Literal(1000), iri("rates")) for who in PEOPLE]

    def refreshes(options: str, **settings: object) -> int:
        engine = hw.Engine(in_process=True)
        engine.dataset(often)
        answers, _ = answers_of(engine, stream, query(endpoint.url, options), **settings)
        return sum(answer.quality.refreshes for answer in answers if answer.quality is not None)

    # What changes once a day is fetched once; what changes all the time is fetched at each tick.
    assert refreshes(f'OPTION (POLICY WBM, RATES "{file}")') == 3
    # As in the paper, the best-before times of a filled view begin with the first evaluation.
    assert refreshes("OPTION (FILL)", service={"rates": file}) == 3
    assert refreshes("OPTION (POLICY WBM, RATES :rates)") > 9
    assert refreshes("", service={"policy": "wbm", "rates": iri("rates")}) > 9
    assert not caplog.records


@pytest.mark.parametrize("is_in_text", [True, False])
def test_with_the_clock_of_the_stream_best_before_times_pass_in_a_replay(
    endpoint: Served, stream: Path, tmp_path: Path, is_in_text: bool
) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("who,per_second\n" + "".join(f"{EX}{who},0.25\n" for who in PEOPLE))

    def refreshes(clock: str, pause: float) -> list[int]:
        goals = None if is_in_text else {"policy": "WBM", "rates": file, "clock": clock}
        option = f'OPTION (POLICY WBM, RATES "{file}", CLOCK {clock})' if is_in_text else ""
        engine = hw.Engine(in_process=True, batch_bytes=200)
        engine.stream(EX + "mentions", stream)
        engine.register(query(endpoint.url, option), service=goals)
        found: list[Answer] = []

        def take(answer: Answer) -> None:
            found.append(answer)
            time.sleep(pause)

        engine.run(on_answer=take)
        return [answer.quality.refreshes for answer in found if answer.quality is not None]

    # What is fetched is good for four seconds, that is for two ticks.
    assert refreshes("stream", 0.0) == refreshes("stream", 0.02) == [2, 1, 2, 1, 2, 1, 1]
    assert sum(refreshes("wall", 0.0)) == 3


def test_wrong_rates_are_errors_before_the_run(endpoint: Served, stream: Path, tmp_path: Path) -> None:
    with pytest.raises(hw.SettingError, match=r"no file .*rates\.csv"):
        hw.Engine(in_process=True).register(query(endpoint.url), service={"rates": tmp_path / "rates.csv"})
    with pytest.raises(hw.SettingError, match=r"no graph <http://example.org/rates>"):
        answers_of(hw.Engine(in_process=True), stream, query(endpoint.url, "OPTION (RATES :rates)"))
    file = tmp_path / "rates.csv"
    file.write_text("user,per_day\nx:a,1\n")
    with pytest.raises(hw.SettingError, match=r"rates by \?user, but the keys of this SERVICE are \?who"):
        answers_of(hw.Engine(in_process=True), stream, query(endpoint.url, f'OPTION (RATES "{file}")'))
    assert endpoint.heard == []


def test_what_a_variable_endpoint_cannot_have_is_an_error(stream: Path) -> None:
    text = query("x").replace("<x>", "?post")
    with pytest.raises(hw.RegistrationError, match="learns its endpoints"):
        hw.Engine(in_process=True).register(text, service={"strategy": "hash"})


def test_settings_of_an_endpoint_reach_its_requests(endpoint: Served, stream: Path) -> None:
    engine = hw.Engine(in_process=True)
    engine.endpoint(endpoint.url, bearer="secret", method="GET", concurrent=1)
    answers_of(engine, stream, query(endpoint.url))
    assert {exchange.method for exchange in endpoint.heard} == {"GET"}
    assert {exchange.headers.get("Authorization") for exchange in endpoint.heard} == {"Bearer secret"}
    with pytest.raises(ValueError, match="no method"):
        engine.endpoint(endpoint.url, method="PUT")


def test_json_says_how_good_an_answer_is_and_stays_a_result(endpoint: Served, stream: Path) -> None:
    text = query(endpoint.url, "OPTION (ACCURACY 1.0, BUDGET 1)")
    answers, summary = answers_of(hw.Engine(in_process=True), stream, text)
    lines = [json.loads(format_answer_json(answer)) for answer in answers]
    for line, answer in zip(lines, answers, strict=True):
        assert 0.0 <= line["quality"]["accuracy"] <= 1.0
        assert line["quality"]["refreshes"] <= 1
        read = parse_query_results(format_answer_json(answer).encode(), format=QueryResultsFormat.JSON)
        assert isinstance(read, QuerySolutions)
        assert len(list(read)) == len(answer.rows)
    alerts = [alert for line in lines for alert in line["quality"]["alerts"]]
    assert alerts[0]["gives_way"] == "accuracy"
    assert alerts[0]["wanted"] == 1.0
    assert len(alerts) == summary.alerts > 0


def test_answers_without_service_say_nothing_of_quality(stream: Path) -> None:
    text = f"PREFIX : <{EX}> SELECT ?who FROM STREAM :mentions [RANGE 4s STEP 2s] WHERE {{ ?who :mentionedIn ?p }}"
    answers, _ = answers_of(hw.Engine(in_process=True), stream, text)
    assert {answer.quality for answer in answers} == {None}
    assert "quality" not in format_answer_json(answers[0])


def test_a_checkpoint_keeps_the_view(endpoint: Served, stream: Path, tmp_path: Path) -> None:
    text = query(endpoint.url, "OPTION (POLICY WST)")
    lines = stream.read_text().splitlines(keepends=True)
    stream.write_text("".join(lines[:7]))

    def engine() -> hw.Engine:
        made = hw.Engine(in_process=True, checkpoint=tmp_path / "checkpoint")
        made.stream(EX + "mentions", stream)
        made.register(text)
        return made

    found: list[Answer] = []
    engine().run(drain=False, on_answer=found.append)
    asked = len(endpoint.heard)
    assert asked > 0
    stream.write_text("".join(lines))
    engine().run(on_answer=found.append)
    assert len(endpoint.heard) == asked, "the second run knew all three"
    expected, _ = answers_of(hw.Engine(in_process=True), stream, query(endpoint.url))
    assert [(a.time, a.rows) for a in found] == [(a.time, a.rows) for a in expected]


def test_spark_gives_the_answers_of_the_runner_in_process(
    spark: SparkSession, endpoint: Served, stream: Path, tmp_path: Path
) -> None:
    text = query(endpoint.url, "OPTION (POLICY LRU, BUDGET 3)")
    expected, _ = answers_of(hw.Engine(in_process=True), stream, text)
    asked = len(endpoint.heard)
    engine = hw.Engine(spark, batch_bytes=700, checkpoint=tmp_path / "checkpoint")
    engine.endpoint(endpoint.url, per_second=1000, burst=10)
    answers, summary = answers_of(engine, stream, text)
    assert [(a.time, a.rows) for a in answers] == [(a.time, a.rows) for a in expected]
    assert any(answer.rows for answer in answers)
    assert summary.batches > 1
    assert len(endpoint.heard) > asked
    qualities = [answer.quality for answer in answers]
    assert all(quality is not None and quality.accuracy > 0.5 for quality in qualities)


def test_the_endpoint_option_of_the_command_line() -> None:
    assert parse_endpoint_option("http://e/sparql") == ("http://e/sparql", {})
    assert parse_endpoint_option("http://e/q?a=1,2,per_second=5, retries=0") == (
        "http://e/q?a=1,2",
        {"per_second": 5.0, "retries": 0},
    )
    for wrong in ("http://e/sparql,speed=5", "http://e/sparql,retries=few"):
        with pytest.raises(typer.BadParameter):
            parse_endpoint_option(wrong)


def test_the_command_prints_quality(endpoint: Served, stream: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from headwater.cli import app

    path = tmp_path / "query.rq"
    path.write_text(query(endpoint.url, "OPTION (BUDGET 2)"))
    arguments = ["run", str(path), "--in-process", "--format", "json", "--stream", f"{EX}mentions={stream}"]
    result = CliRunner(env=dict(os.environ)).invoke(app, [*arguments, "--endpoint", f"{endpoint.url},per_second=500"])
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert lines
    assert all("accuracy" in line["quality"] for line in lines)
