"""What the documents show is what happens; `python -m tests.commands.documents README.md` writes the truth into one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.commands.documents import Shown, renewed, shown_in
from tests.commands.running import EXAMPLES, PROJECT

SHOWING = ("datasets.md", "operation.md")
DOCUMENTS = (PROJECT / "README.md", EXAMPLES / "README.md", *((PROJECT / "docs" / name) for name in SHOWING))
SHOWN = [(document, shown) for document in DOCUMENTS for shown in shown_in(document)]


@pytest.mark.parametrize(
    ("document", "shown"),
    SHOWN,
    ids=[f"{document.parent.name}-{number}" for number, (document, _) in enumerate(SHOWN)],
)
def test_what_is_shown_is_what_happens(document: Path, shown: Shown) -> None:
    assert shown.run() == shown.output


def test_the_documents_show_something() -> None:
    assert [len(shown_in(document)) for document in DOCUMENTS] == [2, 5, 1, 1]
    assert all(shown.output for _, shown in SHOWN)


def test_the_first_query_of_the_readme_is_that_of_the_file() -> None:
    readme = (PROJECT / "README.md").read_text("utf-8")
    (query,) = re.findall(r"^```sparql\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    file = (EXAMPLES / "cars-per-district.rq").read_text("utf-8")
    assert query == "".join(line for line in file.splitlines(keepends=True) if not line.startswith("#"))


def test_the_links_of_the_documents_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_renewing_replaces_only_the_output() -> None:
    text = "before\n```console\n$ printf 'a\\n'\nold\n```\n\n```python\nprint(1 + 1)\n```\n\n```text\n3\n```\nafter\n"
    assert renewed(text) == text.replace("old", "a").replace("3\n", "2\n")
