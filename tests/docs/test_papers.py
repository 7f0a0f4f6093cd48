"""docs/papers.md explains every id of a capability that the code refers to."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
CAPABILITIES = {"CS": 13, "CQ": 9, "OA": 13, "VM": 9}
_ID = re.compile(r"\b(?:CS|CQ|OA|VM)[0-9]+\b")


def explained() -> list[str]:
    text = (PROJECT / "docs" / "papers.md").read_text("utf-8")
    return re.findall(rf"^\| ({_ID.pattern}) \| [^|]+ \| [^|]+ \|$", text, re.MULTILINE)


def test_each_capability_has_one_entry() -> None:
    assert explained() == [f"{paper}{number}" for paper, last in CAPABILITIES.items() for number in range(1, last + 1)]


def test_every_id_in_the_code_has_an_entry() -> None:
    used = {name for path in (PROJECT / "headwater").rglob("*.py") for name in _ID.findall(path.read_text("utf-8"))}
    assert used
    assert used <= set(explained())
