"""`headwater check`: says how a query was understood, or where it is wrong; and does it at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.running import EXAMPLES, PROJECT, environment, headwater

RIGHT = {
    "cars-per-district": (
        "C-SPARQL SELECT registered as query CarsPerDistrict; windows <http://city/tollgates> [RANGE 10m STEP 5m]; "
        "evaluated every 5m; emits RSTREAM"
    ),
    "district-stream": (
        "C-SPARQL CONSTRUCT registered as stream EnteringCars; windows <http://city/tollgates> [RANGE 10m STEP 5m]; "
        "evaluated every 5m; emits RSTREAM"
    ),
    "busy-districts": (
        "RSP-QL SELECT registered as stream BusyDistricts; windows <EnteringCars> [RANGE 5m TUMBLING]; "
        "evaluated each time a window closes; emits RSTREAM"
    ),
    "across-town": (
        "CQELS-QL SELECT; windows <http://city/cameras> [NOW], <http://city/tollgates> [RANGE 5m]; "
        "evaluated at each instant at which something enters or leaves; emits ISTREAM"
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_query_is_described(name: str) -> None:
    path = EXAMPLES / f"{name}.rq"
    result = headwater("check", path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"ok: {path}: {RIGHT[name]}\n"


def test_every_example_is_described_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.rq")} == set(RIGHT)


def test_a_query_over_static_data_alone_has_no_window() -> None:
    result = headwater("check", "-", stdin="SELECT ?s WHERE { ?s ?p ?o }")
    assert (result.exit_code, result.stdout) == (
        0,
        "ok: stdin: RSP-QL SELECT; no window: answered once, from static data\n",
    )


def test_a_wrong_query_shows_where_and_what_was_expected(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.rq"
    wrong.write_text("SELECT ?car\nFROM STREAM <http://city/gates> [RANGE 10m SETP 1m]\nWHERE { ?gate ?sees ?car }\n")
    result = headwater("check", wrong)
    assert (result.exit_code, result.stdout) == (2, "")
    place, source, caret, *rest = result.stderr.splitlines()
    assert place.startswith(f"{wrong}: line 2, column 44: ")
    assert source == "FROM STREAM <http://city/gates> [RANGE 10m SETP 1m]"
    assert caret == " " * source.index("SETP") + "^"
    assert rest[0].startswith("expected ")
    assert "STEP" in rest[0]


def test_all_files_are_checked_although_one_is_wrong(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.rq"
    wrong.write_text("SELECT ?s WHERE { ?s ?p ?o")
    result = headwater("check", wrong, EXAMPLES / "across-town.rq", tmp_path / "missing.rq")
    assert result.exit_code == 2
    assert result.stdout.startswith("ok: ")
    assert f"{wrong}: line 1, column " in result.stderr
    assert f"{tmp_path / 'missing.rq'}: No such file or directory" in result.stderr


def test_the_dialect_can_be_given() -> None:
    result = headwater("check", "-", "--dialect", "cqels", stdin="SELECT ?s WHERE { ?s ?p ?o }")
    assert "CQELS-QL SELECT" in result.stdout


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    binary = tmp_path / "binary.rq"
    binary.write_bytes(b"\xff\xfe\x00S")
    result = headwater("check", binary)
    assert result.exit_code == 2
    assert "not UTF-8" in result.stderr


def test_without_a_query_the_usage_is_shown() -> None:
    assert headwater("check").exit_code == 2


def test_checking_does_not_wait_for_spark() -> None:
    script = (
        "import sys, runpy\n"
        "sys.argv = ['headwater', 'check', 'examples/across-town.rq']\n"
        "try:\n    runpy.run_module('headwater', run_name='__main__')\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print(sorted({'pyspark', 'pandas', 'pyarrow', 'httpx'} & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, env=environment(), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "[]"
