"""W3C tests that fail, each with its reason. A test stands here only when the reason is outside Headwater's reach."""

from __future__ import annotations

KNOWN_FAILURES: dict[str, str] = {
    "sparql10/open-world/date-2": (
        "pyoxigraph calls a date without a time zone different from the same date with one; by XML Schema the two "
        "cannot be compared, so that != is an error and the rows d2 and d3 should be absent"
    ),
}
"""From `folder/test` to why it fails."""
