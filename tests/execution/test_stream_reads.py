"""Since when a stream is read for a pattern: all from then on was read, with the texts that the pattern needs."""

from __future__ import annotations

from random import Random

import pytest

from headwater.algebra.wanted_patterns import WantedPattern
from headwater.execution.stream_reads import EVERYTHING, ReadHistory
from headwater.terms.model import NamedNode, Triple

STREAM = "s"
TERMS = [NamedNode(f"urn:{name}") for name in "ab"]
PATTERNS = [EVERYTHING] + [
    WantedPattern(subject, predicate, None, texts)
    for subject in (None, *TERMS)
    for predicate in (None, TERMS[0])
    for texts in ("", "s", "so", "spo")
]


def matches(pattern: WantedPattern, triple: Triple) -> bool:
    places = ((pattern.subject, triple.subject), (pattern.predicate, triple.predicate))
    return all(wanted is None or wanted == there for wanted, there in places)


def check_history(random: Random) -> int:
    """Change the patterns again and again, with elements out of order in between; gives how much was compared."""
    read_for = frozenset(random.sample(PATTERNS, 2))
    history = ReadHistory({STREAM: read_for})
    seen: list[tuple[int, Triple, frozenset[WantedPattern]]] = []
    time = compared = 0
    for _ in range(random.randint(2, 7)):
        for pattern in read_for:
            since = history.since(STREAM, [pattern])
            for instant, triple, patterns in seen:
                if matches(pattern, triple) and (since is None or instant >= since):
                    texts = {place for one in patterns if matches(one, triple) for place in one.texts}
                    readers = [one for one in patterns if matches(one, triple)]
                    assert readers and set(pattern.texts) <= texts, (pattern, since, instant, triple, patterns)
                    compared += 1
        for _ in range(random.randint(0, 6) if read_for else 0):
            time += random.randint(0, 5)
            triple = Triple(random.choice(TERMS), random.choice(TERMS), random.choice(TERMS))
            seen.append((time - random.choice([0, 0, 3, 20]), triple, read_for))
        highest = max((instant for instant, _, _ in seen), default=None)
        read_for = frozenset(random.sample(PATTERNS, random.randint(0, 3)))
        wanted = {STREAM: read_for} if read_for else {}
        history = ReadHistory.from_plain(history.to_plain())
        history = history.continued_with(wanted, {STREAM: None if highest is None else highest + 1})
    return compared


@pytest.mark.parametrize("block", range(4))
def test_what_a_late_query_is_told_was_read(block: int) -> None:
    assert sum(check_history(Random(f"{block} {number}")) for number in range(500)) > 1000


def test_a_pattern_that_nobody_reads_is_an_error() -> None:
    """None would say that it was read since the stream began."""
    with pytest.raises(KeyError):
        ReadHistory({STREAM: frozenset({PATTERNS[3]})}).since(STREAM, [EVERYTHING])
