"""The site: it is built strictly, without a network, and has everything that it should list."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import headwater as hw

PROJECT = Path(__file__).resolve().parents[2]
DECISIONS = PROJECT / "docs" / "decisions"
RECORD = re.compile(
    r"# (?P<number>\d+)\. (?P<title>.+)\n\n\d{4}-\d{2}-\d{2}, (?:accepted|replaced by .+)\n\n"
    r"## Context\n\n(?:.|\n)+\n\n## Decision\n\n(?:.|\n)+\n\n## Consequences\n\n(?:.|\n)+\n"
)


def test_the_site_is_built_without_a_warning_and_asks_nobody_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    nowhere = {name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy")}
    run = subprocess.run(
        command, cwd=PROJECT, env={**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        fetched = re.findall(r'<(?:script|link|img)\b[^>]*(?:src|href)="(https?://[^"]+)"', page.read_text("utf-8"))
        assert not fetched, page.name


def test_the_python_page_has_every_public_name() -> None:
    shown = re.findall(
        r"^::: headwater\.(\w+)$", (PROJECT / "docs/reference/python.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(shown) == sorted(name for name in hw.__all__ if not name.startswith("_"))


def test_each_decision_is_a_record_and_in_the_index() -> None:
    records = sorted(path for path in DECISIONS.glob("*.md") if path.name != "index.md")
    listed = re.findall(r"^- \[(.+)\]\((.+)\)$", (DECISIONS / "index.md").read_text("utf-8"), re.MULTILINE)
    found = []
    for path in records:
        record = RECORD.fullmatch(path.read_text("utf-8"))
        assert record, f"{path.name} has not the form of a record"
        assert path.name.startswith(f"{int(record['number']):04d}-")
        found.append((f"{record['number']}. {record['title']}", path.name))
    assert listed == found
    assert len({name[:4] for _, name in found}) == len(found)
