"""Each rule alone: what it makes of a plan (before and after, in a file), and that both plans answer the same."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from headwater.optimizer.optimise import optimise
from headwater.optimizer.rewrites import join_filters, split_filters
from headwater.optimizer.rule import Rule
from headwater.optimizer.rules import ALL_FINISHING
from headwater.optimizer.statistics import PredicateCounts, Statistics
from headwater.terms.model import NamedNode
from tests.optimizer.answers import RULES, answers
from tests.optimizer.fixture_files import FOLDER, Fixture, plans_text, read_fixtures, write_fixtures
from tests.optimizer.random_queries import EX

SEEDS = range(4)
BY_FILE = {rule.rewrite.__name__: rule for rule in RULES}


def counted(**triples: int) -> dict[NamedNode, PredicateCounts]:
    return {NamedNode(EX + name): PredicateCounts(n, max(1, n // 10), max(1, n // 10)) for name, n in triples.items()}


COUNTS = Statistics(
    {None: counted(many=10_000, some=500, few=3), NamedNode(EX + "g1"): counted(many=70_000)},
    {0: counted(many=20), 1: counted(many=20)},
)


def test_every_rule_has_a_file_and_every_file_a_rule() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.txt")) == sorted(BY_FILE)
    assert all(rule.rewrite.__module__.endswith(f".{name}") for name, rule in BY_FILE.items())


@pytest.mark.parametrize("name", BY_FILE)
def test_before_and_after(name: str) -> None:
    rule = BY_FILE[name]
    found = [replace(fixture, expected=made(rule, fixture)) for fixture in read_fixtures(name)]
    if os.environ.get("HEADWATER_REWRITE_FIXTURES"):
        write_fixtures(name, found)
    assert found == read_fixtures(name)
    assert any(fixture.expected.splitlines()[-1] != "unchanged" for fixture in found)


def made(rule: Rule, fixture: Fixture) -> str:
    """The text of both plans, once they gave the same answers over random data."""
    plan = fixture.case(0).plan()
    if rule in RULES[RULES.index(split_filters.RULE) + 1 :] and rule is not join_filters.RULE:
        plan = replace(plan, root=split_filters.split_filters(plan))
    after = replace(plan, root=rule.rewrite(plan, COUNTS))
    for seed in SEEDS:
        case = fixture.case(seed)
        assert answers(case, after) == answers(case, plan), fixture.title
    return plans_text(plan, after)


@pytest.mark.parametrize("name", BY_FILE)
def test_a_rule_has_nothing_to_do_twice(name: str) -> None:
    """All rules together come to an end: what they made, they leave alone."""
    for fixture in read_fixtures(name):
        once = optimise(fixture.case(0).plan(), COUNTS, finishing=ALL_FINISHING).plan
        assert optimise(once, COUNTS, finishing=ALL_FINISHING).plan == once, fixture.title
