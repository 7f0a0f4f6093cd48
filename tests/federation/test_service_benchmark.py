"""The service benchmark on one seed, few ticks and few accounts: its keys, its tables and its figures."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import service, service_accuracy, service_endpoint, service_latency, service_tables
from benchmarks.reporting import INSTALL
from benchmarks.service_data import Recording, recording
from headwater.terms.model import SECOND
from tests.shared_data import shared_data

KEYS = {"accuracy", "learnt_mean", "bursty_gain_over_wbm", "accuracy_estimate_error", "latency_share_within"}
MINUTES, ACCOUNTS = 6, 80


@pytest.fixture
def short_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    shared_data("acqua")
    whole = recording()
    end = whole.span[0] + MINUTES * 60 * SECOND
    known = {key for _, key, _ in whole.snapshots[:ACCOUNTS]}
    short = Recording(
        tuple(change for change in whole.snapshots if change[0] <= end and change[1] in known),
        tuple(mention for mention in whole.mentions if mention[1] in known),
    )
    monkeypatch.setattr(service_accuracy, "recording", lambda: short)
    monkeypatch.setattr(service_latency, "recording", lambda: short)


@pytest.mark.usefixtures("short_recording")
def test_it_gives_its_keys_tables_and_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec("matplotlib") is None:
        pytest.skip(f"matplotlib is not installed: {INSTALL}")
    monkeypatch.setattr(sys, "argv", ["service", "--quick", "--plots", str(tmp_path)])
    monkeypatch.setattr(service_endpoint, "QUICK_ENTRIES", 200)
    monkeypatch.setattr(service_endpoint, "QUICK_TICKS", 3)
    monkeypatch.setattr(service_endpoint, "QUICK_HASH_TICKS", 2)
    service.main()
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result.keys() >= KEYS
    assert all(len(accuracies) == 3 for accuracies in result["accuracy"].values())
    assert all(0.0 <= share <= 1.0 for accuracies in result["accuracy"].values() for share in accuracies)
    assert 0.0 <= result["latency_share_within"] <= 1.0
    assert result["strategies"].keys() == service_endpoint.STRATEGIES.keys()
    assert result["strategies"]["nested loop"]["accuracy"] == result["strategies"]["hash"]["accuracy"] == 1.0
    text = (tmp_path / "service.md").read_text("utf-8")
    assert text.count("\n| 10 |") == 8
    for name in service_tables.pictures():
        assert (tmp_path / f"{name}.svg").exists()
        assert f"({name}.svg)" in text
