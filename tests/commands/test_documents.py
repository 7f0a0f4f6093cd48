"""What the documents show is what happens; `python -m tests.commands.documents README.md` writes the truth into one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headwater.commands.settings_file import FileSettings, read_settings
from headwater.language.errors import QueryError
from headwater.server.server_settings import ServerSettings, read_server_settings
from tests.commands.documents import Block, blocks_of, folder, renewed
from tests.commands.running import EXAMPLES, PROJECT

DOCUMENTS = (PROJECT / "README.md", EXAMPLES / "README.md", *sorted((PROJECT / "docs").rglob("*.md")))
SHOWING = [path for path in DOCUMENTS if any(block.is_executed for block in blocks_of(path))]
LANGUAGES = {"console", "csv", "json", "python", "sh", "sparql", "template", "text", "toml", "turtle"}
MOST_NOT_EXECUTED = 9


def name_of(path: Path) -> str:
    return str(path.relative_to(PROJECT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_what_is_shown_is_what_happens(document: Path) -> None:
    with folder() as place:
        for block in blocks_of(document):
            assert place.use(block) == block.output if block.is_executed else place.use(block) is not None


def test_the_documents_show_something() -> None:
    names = {name_of(path) for path in SHOWING}
    assert {"README.md", "examples/README.md", "docs/tutorial.md", "docs/how-to/checkpoints.md"} <= names
    consoles = [block for path in SHOWING for block in blocks_of(path) if block.language == "console"]
    assert all(block.output for block in consoles if block.is_executed)


def is_run_elsewhere(block: Block) -> bool:
    """Whether the reason of a block names the tests that run what it shows; those tests must be there."""
    named = re.findall(r"tests/[\w/]+\.py", block.reason or "")
    assert all((PROJECT / name).exists() for name in named), block.reason
    return bool(named)


def test_few_blocks_are_not_executed_and_each_says_why() -> None:
    blocks = [block for path in DOCUMENTS for block in blocks_of(path)]
    left_out = [block for block in blocks if block.reason is not None]
    assert all(block.reason for block in blocks if block.language == "sh"), "use console for what can be executed"
    assert len([block for block in left_out if not is_run_elsewhere(block)]) <= MOST_NOT_EXECUTED
    shown = "".join(path.read_text("utf-8") for path in DOCUMENTS)
    assert shown.count("<!-- not executed") == len(left_out)


def test_every_fence_is_a_block_of_a_known_language() -> None:
    for document in DOCUMENTS:
        text = document.read_text("utf-8")
        fences = re.findall(r"^```.*$", text, re.MULTILINE)
        blocks = blocks_of(document)
        assert len(fences) == 2 * sum(2 if block.printed is not None else 1 for block in blocks), name_of(document)
        assert {block.language for block in blocks} <= LANGUAGES, name_of(document)


def test_the_first_query_of_the_readme_is_that_of_the_file() -> None:
    (query,) = [block.body for block in blocks_of(PROJECT / "README.md") if block.language == "sparql"]
    file = (EXAMPLES / "cars-per-district.rq").read_text("utf-8")
    assert query == "".join(line for line in file.splitlines(keepends=True) if not line.startswith("#"))


def test_the_links_of_the_documents_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{name_of(document)} links to {target}"


def test_renewing_replaces_only_the_output() -> None:
    text = "before\n```console\n$ printf 'a\\n'\nold\n```\n\n```python\nprint(1 + 1)\n```\n\n```text\n3\n```\nafter\n"
    assert renewed(text) == text.replace("old", "a").replace("3\n", "2\n")


def test_blocks_with_a_title_are_files_for_those_behind_them() -> None:
    text = '```json title="a/b.json"\n[1]\n```\n\n```console\n$ cat a/b.json\n[2]\n```\n\n```python\nx = 3\n```\n'
    more = "\n```python\nprint(x)\n```\n\n```text\nold\n```\n"
    assert renewed(text + more) == (text + more).replace("[2]", "[1]").replace("old", "3")


def test_what_is_marked_is_left_alone(tmp_path: Path) -> None:
    text = "<!-- not executed: needs a broker -->\n```console\n$ false\nwell\n```\n"
    (tmp_path / "page.md").write_text(text)
    assert blocks_of(tmp_path / "page.md") == [Block("console", "$ false\nwell\n", reason="needs a broker")]
    assert renewed(text) == text


def test_a_wrong_query_is_found() -> None:
    with folder() as place, pytest.raises(QueryError):
        place.use(Block("sparql", "SELECT ?x WHERE { ?x\n"))


def test_settings_files_that_are_shown_are_read(tmp_path: Path) -> None:
    shown = [block.body for document in DOCUMENTS for block in blocks_of(document) if block.language == "toml"]
    assert shown
    for text in shown:
        path = tmp_path / "headwater.toml"
        path.write_text(text)
        if "[server]" in text:
            assert read_server_settings(path, {}) != ServerSettings()
        else:
            assert read_settings(path) != FileSettings()
