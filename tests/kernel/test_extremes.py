"""MIN and MAX over many groups and long histories: the heaps find what the definition finds among what is there."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from headwater.kernel.aggregation.extremes import ExtremeAccumulator, order_keys
from headwater.kernel.aggregation.value_heaps import order_for_max, order_for_min
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.ids.term_ids import encode, is_inline
from headwater.terms.model import XSD, Literal, NamedNode, Term
from headwater.values.aggregates import maximum, minimum
from headwater.values.term_order import order_key
from tests.kernel.test_grouping import SPECIAL

GROUPS = 40


def typed(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


def some_integer(source: random.Random) -> Term:
    return typed(str(source.randrange(200)), "integer")


def huge_integer(source: random.Random) -> Term:
    """Integers that are equal as doubles."""
    return typed(str(2**56 + source.randrange(20)), source.choice(["integer", "long"]))


def same_number_otherwise(source: random.Random) -> Term:
    number = source.randrange(4)
    written = {"integer": str(number), "int": str(number), "decimal": f"{number}.0", "double": f"{number}.0E0"}
    datatype = source.choice(list(written))
    return typed(written[datatype], datatype)


def some_time(source: random.Random) -> Term:
    micros, zone = source.randrange(40), source.choice(["", "Z", "+01:00"])
    hour = "01" if zone.startswith("+") else "00"
    fraction = f".{micros // 10:03d}" if zone.startswith("+") else f".{micros:06d}"
    return typed(f"2020-01-01T{hour}:00:00{fraction}{zone}", "dateTime")


def anything(source: random.Random) -> Term | None:
    return source.choice(SPECIAL)


Make = Callable[[random.Random], Term | None]


def ids(vocabulary: Vocabulary, rows: list[tuple[int, Term | None]]) -> tuple[Ints, Ints]:
    groups = np.array([group for group, _ in rows], dtype=np.int64)
    return groups, np.array([vocabulary.id_of(term) for _, term in rows], dtype=np.int64)


@pytest.mark.parametrize("greatest", [False, True], ids=["MIN", "MAX"])
@pytest.mark.parametrize("make", [some_integer, huge_integer, same_number_otherwise, some_time, anything])
def test_after_every_step_of_a_long_history(make: Make, greatest: bool) -> None:
    source = random.Random(7)
    vocabulary = Vocabulary()
    extremes = ExtremeAccumulator(
        vocabulary, (order_for_max if greatest else order_for_min)(vocabulary), is_max=greatest
    )
    extremes.grow(GROUPS)
    present: list[Counter[Term | None]] = [Counter() for _ in range(GROUPS)]
    for step in range(120):
        added = [(source.randrange(GROUPS), make(source)) for _ in range(source.randrange(60))]
        extremes.change(*ids(vocabulary, added), 1)
        for group, term in added:
            present[group][term] += 1
        # Every now and then nearly everything goes, so that the counts are compacted and the heaps made anew.
        leaving = 0.95 if step % 17 == 16 else source.random() * 0.4
        removed = [
            (group, term)
            for group, terms in enumerate(present)
            for term in sorted(terms.elements(), key=str)
            if source.random() < leaving
        ]
        extremes.change(*ids(vocabulary, removed), -1)
        for group, term in removed:
            present[group][term] -= 1
            present[group] = +present[group]
        asked = np.array(sorted({group for group, _ in added + removed}), dtype=np.int64)
        found = [vocabulary.term_of(number) for number in extremes.first_values(asked).tolist()]
        assert found == [(maximum if greatest else minimum)(present[group]) for group in asked.tolist()]


def test_the_keys_follow_the_order_of_sparql() -> None:
    terms = [term for term in SPECIAL if term is not None and is_inline(encode(term))]
    terms += [typed(text, "decimal") for text in ("-0.5", "0.1", "0.10", "900719925474099.1", "-900719925474099.1")]
    keyed = [term for term in terms if term.datatype.value in NUMBERS_AND_TIMES]  # type: ignore[union-attr]
    keys = order_keys(np.array([encode(term) for term in keyed], dtype=np.int64)).tolist()
    for one, key in zip(keyed, keys, strict=True):
        for other, other_key in zip(keyed, keys, strict=True):
            if order_key(one) < order_key(other):
                assert key <= other_key, (one, other)


NUMBERS_AND_TIMES = {XSD + kind for kind in ("integer", "int", "long", "decimal", "float", "double", "dateTime")}


def test_values_that_are_gone_take_no_room() -> None:
    vocabulary = Vocabulary()
    extremes = ExtremeAccumulator(vocabulary, order_for_min(vocabulary), is_max=False)
    extremes.grow(4)
    zero = encode(typed("0", "integer"))
    sizes = []
    for batch in range(60):
        groups = np.arange(1000) % 4
        values = zero + np.arange(1000) + 1000 * batch
        extremes.change(groups, values, 1)
        if batch:
            extremes.change(groups, values - 1000, -1)
        sizes.append(extremes.nbytes)
    assert extremes.first_values(np.arange(4)).tolist() == [zero + 59_000 + i for i in range(4)]
    assert max(sizes[10:]) <= 2 * max(sizes[:5])
