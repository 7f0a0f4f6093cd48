"""Before and after, one file per rule: `tests/optimizer/fixtures/RULE.txt`.

    # the title of a case
    SELECT … the query, in one line; prefix and windows are added
    before
      the plan
    after
      the plan when the rule alone was applied, or the word `unchanged` in place of `after`

`HEADWATER_REWRITE_FIXTURES=1` makes the test write the files anew; the difference is then for people to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headwater.algebra.plan import QueryPlan
from headwater.explain.plan_text import plan_lines
from headwater.windows.settings import Content
from tests.optimizer.random_queries import PREFIXES, Case, Maker
from tests.optimizer.traps import MERGED, WINDOWS

FOLDER = Path(__file__).parent / "fixtures"


@dataclass(frozen=True)
class Fixture:
    """A case as the file has it: its expected text is empty where it was never written."""

    title: str
    query: str
    expected: str

    def case(self, seed: int) -> Case:
        """The query over random data."""
        maker = Maker(seed)
        made = maker.case()
        head, where, tail = self.query.partition("WHERE")
        source = MERGED if "AGGREGATE" in tail else WINDOWS
        text = f"{PREFIXES}{head}{source} {where}{tail}"
        return Case(seed, text, Content.BAG if seed % 2 else Content.SET, made.static, made.elements)


def read_fixtures(rule: str) -> list[Fixture]:
    blocks = (FOLDER / f"{rule}.txt").read_text("utf-8").strip().split("\n\n")
    found = []
    for block in blocks:
        title, query, *expected = block.splitlines()
        found.append(Fixture(title.removeprefix("# "), query, "\n".join(expected)))
    return found


def write_fixtures(rule: str, fixtures: list[Fixture]) -> None:
    blocks = (f"# {one.title}\n{one.query}\n{one.expected}" for one in fixtures)
    (FOLDER / f"{rule}.txt").write_text("\n\n".join(blocks) + "\n", "utf-8")


def plans_text(before: QueryPlan, after: QueryPlan) -> str:
    """Both plans as the file has them."""
    lines = ["before", *(f"  {line}" for line in plan_lines(before))]
    if before == after:
        return "\n".join([*lines, "unchanged"])
    return "\n".join([*lines, "after", *(f"  {line}" for line in plan_lines(after))])
