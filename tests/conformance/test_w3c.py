"""The W3C suites through a stream window, and the runner itself on tests made to fail."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

from headwater.conformance.suites import run
from headwater.conformance.w3c import cases, run_case
from headwater.errors import SettingError
from headwater.reference import reference_evaluator as evaluator
from tests.shared_data import shared_data


def test_the_suites_pass() -> None:
    out = StringIO()
    code = run("w3c", shared_data("w3c"), out)
    lines = out.getvalue().splitlines()
    assert code == 0, out.getvalue()
    passed, failed = (int(part.split()[0]) for part in lines[-1].split(", "))
    assert passed + failed == len([case for case in cases(shared_data("w3c")) if case.folder != "sparql11/service"])
    assert failed == 0


def test_the_suites_pass_in_the_form_that_counts_occurrences(monkeypatch: pytest.MonkeyPatch) -> None:
    """The form for bags and timestamp() has to mean the same where nothing comes twice."""
    monkeypatch.setattr(evaluator, "has_timestamps", lambda plan: True)
    evaluations = [case for case in cases(shared_data("w3c")) if case.kind.evaluates]
    failed = [outcome.case.key for outcome in map(run_case, evaluations) if outcome.problem is not None]
    assert failed == []


MANIFEST = """
@prefix : <http://example/manifest#> .
@prefix mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#> .
@prefix qt: <http://www.w3.org/2001/sw/DataAccess/tests/test-query#> .
<> mf:entries ( :right :wrong :broken :bad-syntax ) .
:right a mf:QueryEvaluationTest ; mf:action [ qt:query <q.rq> ; qt:data <d.ttl> ] ; mf:result <right.srx> .
:wrong a mf:QueryEvaluationTest ; mf:action [ qt:query <q.rq> ; qt:data <d.ttl> ] ; mf:result <wrong.srx> .
:broken a mf:QueryEvaluationTest ; mf:action [ qt:query <q.rq> ; qt:data <none.ttl> ] ; mf:result <right.srx> .
:bad-syntax a mf:NegativeSyntaxTest11 ; mf:action <q.rq> .
:not-listed a mf:QueryEvaluationTest ; mf:action [ qt:query <none.rq> ] ; mf:result <right.srx> .
"""
RESULT = """<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="x"/></head>
<results><result><binding name="x"><uri>http://example/{}</uri></binding></result></results></sparql>"""


@pytest.fixture
def small_suite(tmp_path: Path) -> Path:
    folder = tmp_path / "sparql11" / "small"
    folder.mkdir(parents=True)
    (folder / "manifest.ttl").write_text(MANIFEST)
    (folder / "q.rq").write_text("SELECT ?x { ?x <http://example/p> 1 }")
    (folder / "d.ttl").write_text("<http://example/a> <http://example/p> 1 . <http://example/b> <http://example/p> 2 .")
    (folder / "right.srx").write_text(RESULT.format("a"))
    (folder / "wrong.srx").write_text(RESULT.format("b"))
    return tmp_path


def test_failures_are_told_with_what_was_expected(small_suite: Path) -> None:
    out = StringIO()
    assert run("w3c", small_suite, out) == 1
    lines = out.getvalue().splitlines()
    assert lines[0].split() == ["sparql11/small", "1", "passed,", "3", "failed"]
    assert "sparql11/small/wrong: expected [x] <http://example/b>, got [x] <http://example/a>" in lines
    assert any(line.startswith("sparql11/small/broken: FileNotFoundError") for line in lines)
    assert "sparql11/small/bad-syntax: accepted, but it is wrong" in lines
    assert lines[-1] == "1 passed, 3 failed"


def test_a_folder_without_tests_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"no W3C tests below.*expected"):
        run("w3c", tmp_path, StringIO())


def test_an_unknown_suite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are w3c, csrbench"):
        run("w4c", tmp_path, StringIO())
