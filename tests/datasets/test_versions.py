"""Data that changes while queries run."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.datasets.views import view_catalog as views
from tests.datasets.versioned_runs import check_case


@pytest.fixture(autouse=True)
def every_view_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views that have to be found again are found in the background, if the version is prepared."""
    monkeypatch.setattr(views, "SLOW_SECONDS", 0.0)


def test_answers_follow_the_versions_of_the_data(tmp_path: Path) -> None:
    with_answers = sum(check_case(number, tmp_path / str(number)) for number in range(30))
    assert with_answers > 8


@pytest.mark.soak
def test_many_answers_follow_the_versions_of_the_data(tmp_path: Path) -> None:
    assert sum(check_case(number, tmp_path / str(number)) for number in range(1000, 4000)) > 1000
