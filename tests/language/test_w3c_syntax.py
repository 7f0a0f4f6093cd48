"""All W3C syntax tests come out right, and every query of an evaluation test parses.

There are no exceptions: where SPARQL 1.1 is stricter than 1.0 the tests of 1.0 happen not to notice.
"""

from __future__ import annotations

from collections import Counter

import pytest

from headwater.language.errors import QueryError
from headwater.language.parser import parse
from tests.language.w3c_manifests import manifest_entries
from tests.shared_data import shared_data

EXPECTED_COUNTS = {
    "sparql10": {"PositiveSyntaxTest": 149, "NegativeSyntaxTest": 50},
    "sparql11": {"PositiveSyntaxTest11": 66, "NegativeSyntaxTest11": 40},
}


@pytest.mark.parametrize("version", ["sparql10", "sparql11"])
def test_every_query_test_parses_or_fails_as_the_manifest_says(version: str) -> None:
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for test in manifest_entries(shared_data("w3c", "sparql", version)):
        counts[test.kind] += 1
        text = test.path.read_bytes().decode()
        try:
            parse(text, base=test.path.as_uri())
            parsed = True
        except QueryError as error:
            parsed = False
            assert 0 <= error.offset <= len(text)
        if parsed != test.must_parse:
            wrong.append(f"{test.kind} {test.path}")
    assert wrong == []
    assert counts["QueryEvaluationTest"] > 200
    assert EXPECTED_COUNTS[version].items() <= counts.items()
