"""`headwater serve`: settings are checked, tokens are made, and the examples can be right."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from headwater.server.access import hash_token
from tests.commands.running import EXAMPLES, headwater


def test_settings_are_checked_with_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "headwater.toml"
    path.write_text("[server]\nport = 8080\n")
    found = headwater("serve", "--config", str(path), "--check")
    assert (found.exit_code, found.stdout) == (0, f"{path}: right\n")
    path.write_text("[server]\nport = 'x'\n")
    found = headwater("serve", "--config", str(path), "--check")
    assert found.exit_code == 2
    assert "line 2, column 8" in " ".join(found.stderr.split())


def test_it_listens_at_no_other_address_without_tokens() -> None:
    found = headwater("serve", "--host", "0.0.0.0", "--check")
    assert found.exit_code == 2
    assert "loopback only" in " ".join(found.stderr.split())


def test_a_token_is_made_that_the_settings_do_not_have() -> None:
    found = headwater("serve", "--make-token", "dashboard", "--scope", "read", "--scope", "feed")
    assert found.exit_code == 0
    [table] = tomllib.loads(found.stdout)["tokens"]
    secret = re.search(r"hw_\S+", found.stderr)
    assert secret is not None
    assert table == {"name": "dashboard", "hash": hash_token(secret[0]), "scopes": ["read", "feed"]}
    assert headwater("serve", "--make-token", "x", "--scope", "sing").exit_code == 2
    assert headwater("serve", "--scope", "read").exit_code == 2


@pytest.mark.parametrize("path", sorted((EXAMPLES / "server").glob("*.toml")), ids=lambda path: path.name)
def test_the_settings_of_the_examples_can_be_right(path: Path) -> None:
    assert headwater("serve", "--config", str(path), "--check").exit_code == 0
