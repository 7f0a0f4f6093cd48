"""Each rule keeps the answers of a query made against it, and would not without its side condition."""

from __future__ import annotations

from importlib import import_module

import pytest

from headwater.optimizer.optimise import optimise
from headwater.optimizer.rules import ALL_FINISHING
from headwater.optimizer.statistics import Statistics
from tests.optimizer.answers import answers
from tests.optimizer.traps import TRAPS, Trap

IDS = [f"{trap.condition}: {trap.title}" for trap in TRAPS]


@pytest.mark.parametrize("trap", TRAPS, ids=IDS)
def test_the_answers_stay(trap: Trap) -> None:
    case = trap.case()
    plan = case.plan()
    expected = answers(case, plan)
    assert expected
    assert answers(case, optimise(plan, Statistics(), finishing=ALL_FINISHING).plan) == expected


@pytest.mark.parametrize("trap", TRAPS, ids=IDS)
def test_without_its_condition_the_rule_is_wrong(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    case = trap.case()
    plan = case.plan()
    expected = answers(case, plan)
    monkeypatch.setattr(import_module(f"headwater.optimizer.{trap.module}"), trap.condition, trap.broken)
    assert answers(case, optimise(plan, Statistics(), finishing=ALL_FINISHING).plan) != expected
