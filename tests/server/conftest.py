"""A server that the tests of a module share: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.serving import Server, serving

SETTINGS = """
[http]
body_bytes = 400_000
queries = 30
streams = 30
waiting_events = 20
subscriptions = 40
preview_seconds = 5

[egress]
allow = ["http://127.0.0.1:1/"]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server"), SETTINGS) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
