"""Given change rates: how files and graphs are read, what is wrong with them, and what a view does with them."""

from __future__ import annotations

import gzip
import logging
import math
import pickle
from pathlib import Path

import pytest
from pyoxigraph import Quad, Store

from headwater.errors import HeadwaterError, SettingError
from headwater.federation.rate_reading import read_rates_file, read_rates_graph
from headwater.federation.service_settings import ServiceSettings
from headwater.federation.view.change_model import ChangeModel
from headwater.federation.view.given_rates import GivenRates
from headwater.federation.view.lifetime import WindowKey
from headwater.federation.view.local_view import LocalView
from headwater.federation.view.service_quality import estimate_quality
from headwater.terms.model import SECOND, Literal, NamedNode, Variable
from tests.federation.small_world import key, rows

ANNA, BERT = key("anna"), key("bert")
GRAPH = NamedNode("http://example.org/rates")
PER_HOUR = NamedNode("urn:headwater:changesPerHour")


def write(folder: Path, text: str, name: str = "rates.csv") -> str:
    path = folder / name
    path.write_text(text, "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("unit", "seconds"), [("per_second", 1), ("per_minute", 60), ("per_hour", 3600), ("per_day", 86_400)]
)
def test_csv_with_iris_and_any_unit(tmp_path: Path, unit: str, seconds: int) -> None:
    text = f"?user, {unit}\r\nhttp://example.org/anna, 12\r\n\r\n<http://example.org/bert>,0.5\r\n"
    given = read_rates_file(write(tmp_path, text))
    assert given.variables == ("user",)
    assert given.per_second == {ANNA: pytest.approx(12 / seconds), BERT: pytest.approx(0.5 / seconds)}


def test_csv_with_several_variables_and_literals(tmp_path: Path) -> None:
    integer = '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'
    quoted = integer.replace('"', '""')
    given = read_rates_file(
        write(tmp_path, f'per_second,room,user\n2,"{quoted}",http://example.org/anna\n3,hall,x:b\n')
    )
    assert given.variables == ("room", "user")
    assert given.per_second == {(Literal(5), *ANNA): 2.0, (Literal("hall"), NamedNode("x:b")): 3.0}
    rates = given.for_keys((Variable("user"), Variable("other"), Variable("room")))
    assert rates.rate((*ANNA, NamedNode("x:any"), Literal(5))) == 2.0


TURTLE = """@prefix hw: <urn:headwater:> . @prefix : <http://example.org/> .
:anna hw:changesPerHour 12 ; :label "Anna" . :bert hw:changesPerSecond 0.5e0 . :carl hw:changesPerDay 1.5 ."""


def test_rdf_files_and_compressed_ones(tmp_path: Path) -> None:
    expected = {ANNA: 12 / 3600, BERT: 0.5, key("carl"): 1.5 / 86_400}
    assert read_rates_file(write(tmp_path, TURTLE, "rates.ttl")).per_second == pytest.approx(expected)
    (tmp_path / "rates.ttl.gz").write_bytes(gzip.compress(TURTLE.encode()))
    assert read_rates_file(str(tmp_path / "rates.ttl.gz")).per_second == pytest.approx(expected)


def test_a_graph_of_the_linked_data() -> None:
    data = Store()
    data.add(Quad(NamedNode("http://example.org/anna"), PER_HOUR, Literal(36), GRAPH))
    data.add(Quad(NamedNode("http://example.org/bert"), PER_HOUR, Literal(72)))
    assert read_rates_graph(GRAPH, data).per_second == {ANNA: 0.01}
    with pytest.raises(SettingError, match=r"no graph <http://example.org/other>.*a file is named as a text"):
        read_rates_graph(NamedNode("http://example.org/other"), data)


HEADER = "user,per_hour\n"
A = "http://example.org/anna"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.csv", "", "needs a header.*it has none"),
        ("r.csv", "user,rate\nx:a,1\n", "needs a header.*it has user,rate"),
        ("r.csv", "per_hour\n1\n", "needs a header"),
        ("r.csv", "user,user,per_hour\n", "needs a header"),
        ("r.csv", "user,per_hour,per_day\n", "needs a header"),
        ("r.csv", HEADER, "no line below its header"),
        ("r.csv", HEADER + f"{A},0\n", "above zero, not 0 in line 2"),
        ("r.csv", HEADER + f"x:b,1\n{A},-2.5\n", "above zero, not -2.5 in line 3"),
        ("r.csv", HEADER + f"{A},nan\n", "above zero, not nan"),
        ("r.csv", HEADER + f"{A},inf\n", "above zero, not inf"),
        ("r.csv", HEADER + f"{A},often\n", "a number, not 'often' in line 2"),
        ("r.csv", HEADER + f"{A},\n", "a number, not '' in line 2"),
        ("r.csv", HEADER + f"{A}\n", "1 cells in line 2, and 2 in its header"),
        ("r.csv", HEADER + f"{A},1\n{A},2\n", "two rates for <http://example.org/anna>: in line 2 and in line 3"),
        ("r.csv", HEADER + ",1\n", "no entity in line 2"),
        ("r.csv", HEADER + "<x:a,1\n", "no term in line 2"),
        ("r.csv", HEADER + '"x:a,1\n', "cannot be read"),
        ("r.ttl", "<x:a> <urn:headwater:changesPerHour> 12", r"r\.ttl:1:"),
        ("r.ttl", "<x:a> <x:label> 'a' .", "gives no change rates: it needs statements such as"),
        ("r.ttl", "<x:a> <urn:headwater:changesPerYear> 1 .", "none of urn:headwater:changesPerSecond"),
        ("r.ttl", "<x:a> <urn:headwater:changesPerHour> 0 .", "above zero, not 0"),
        ("r.ttl", "<x:a> <urn:headwater:changesPerHour> -1 .", "above zero, not -1"),
        ("r.ttl", "<x:a> <urn:headwater:changesPerHour> '12' .", "a number, not"),
        ("r.ttl", "<x:a> <urn:headwater:changesPerHour> <x:b> .", "a number, not"),
        ("r.ttl", "<x:a> <urn:headwater:changesPerHour> 1, 2 .", "two rates for <x:a>"),
        ("r.ttl", "[] <urn:headwater:changesPerHour> 1 .", "only IRIs"),
        ("r.txt", "", "txt"),
    ],
)
def test_errors_say_what_is_wrong_and_where(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(HeadwaterError, match=message):
        read_rates_file(write(tmp_path, text, name))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"there is no file .*rates\.csv with change rates$"):
        read_rates_file(str(tmp_path / "rates.csv"))
    with pytest.raises(SettingError, match=r"a graph is named as an IRI, <http://example.org/rates.ttl>"):
        read_rates_file("http://example.org/rates.ttl")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(SettingError, match="cannot be read"):
        read_rates_file(str(tmp_path / "folder.csv"))
    (tmp_path / "bytes.csv").write_bytes(b"user,per_hour\n\xff,1\n")
    with pytest.raises(SettingError, match="cannot be read"):
        read_rates_file(str(tmp_path / "bytes.csv"))
    (tmp_path / "broken.csv.gz").write_bytes(b"user,per_hour\n")
    with pytest.raises(SettingError, match="cannot be read"):
        read_rates_file(str(tmp_path / "broken.csv.gz"))


def test_rates_must_be_by_variables_of_the_keys() -> None:
    user, room = Variable("user"), Variable("room")
    of_terms = GivenRates("rates.ttl", None, {ANNA: 1.0})
    assert of_terms.for_keys((user,)).rate(ANNA) == 1.0
    with pytest.raises(SettingError, match=r"the keys of this SERVICE are \?user \?room: give rates in a CSV file"):
        of_terms.for_keys((user, room))
    with pytest.raises(SettingError, match="are no variable"):
        of_terms.for_keys(())
    with pytest.raises(SettingError, match=r"by \?usr, but the keys of this SERVICE are \?user"):
        GivenRates("rates.csv", ("usr",), {}).for_keys((user,))


def test_an_unknown_key_has_the_median_and_the_log_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    rates = GivenRates("rates.csv", None, {ANNA: 1.0, BERT: 9.0, key("carl"): 2.0}).for_keys((Variable("user"),))
    with caplog.at_level(logging.WARNING):
        assert rates.rate(key("dora")) == rates.rate(key("emil")) == 2.0
    (record,) = caplog.records
    assert "no rate for <http://example.org/dora>" in record.getMessage()
    assert "one change in 0.5 s" in record.getMessage()


def test_a_view_with_given_rates_learns_none_and_estimates_from_them() -> None:
    rates = GivenRates("rates.csv", None, {ANNA: 0.1, BERT: 0.001}).for_keys((Variable("user"),))
    view = LocalView(ChangeModel(SECOND), given_rates=rates)
    for second in range(0, 50, 5):
        # Anna changes at each refresh and Bert never does: what is given holds all the same.
        view.store(ANNA, rows("anna", second), second * SECOND)
        view.store(BERT, rows("bert", 0), second * SECOND)
    entries = list(view)
    assert [entry.belief for entry in entries] == [None, None]
    assert [view.change_rate(entry) for entry in entries] == [0.1, 0.001]
    stale = view.staleness(entries, 55 * SECOND)
    assert stale == pytest.approx([1 - math.exp(-1.0), 1 - math.exp(-0.01)])
    estimate = estimate_quality(view, [WindowKey(ANNA), WindowKey(BERT)], 55 * SECOND)
    assert estimate.accuracy == pytest.approx((math.exp(-1.0) + math.exp(-0.01)) / 2)


def test_rates_travel_to_workers_with_the_settings() -> None:
    given = GivenRates("rates", ("user",), {ANNA: 1.0, (Literal("text"),): 0.5})
    settings = ServiceSettings(rates=((GRAPH, given), ("rates.csv", given)))
    assert pickle.loads(pickle.dumps(settings)) == settings
