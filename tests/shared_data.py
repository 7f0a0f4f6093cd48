"""Where the public test data lies; tests that need it skip with a reason where it is absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent


def shared_data(*parts: str) -> Path:
    """The path below the shared data folder, or a skip of the calling test."""
    root = Path(os.environ.get("HEADWATER_SHARED_DATA", PROJECT.parent / "shared" / "data"))
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"no shared data at {path}; set HEADWATER_SHARED_DATA to the folder that holds it")
    return path
