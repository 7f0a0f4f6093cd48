"""Texts by ids, compared with a dictionary."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from headwater.kernel.columns.text_table import TextTable
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.ids.hash_collisions import HashCollision
from headwater.terms.ids.term_ids import encode
from headwater.terms.ids.term_texts import TermKind, texts_of_mapping
from headwater.terms.model import Literal, NamedNode


def a_text(number: int) -> bytes:
    return (b"<urn:%d>", b"_:b%d", b'"%d"')[number % 3] % number + b" " * (number % 40)


def test_it_is_a_dictionary_that_forgets_what_is_not_marked() -> None:
    random = Random(5)
    table, known = TextTable(), dict[int, bytes]()
    for _ in range(60):
        # Ids whose low bits are alike, so that they want the same slots.
        numbers = [random.randrange(4000) << random.choice((0, 16, 40)) for _ in range(random.choice((0, 3, 500)))]
        new = {number: a_text(number) for number in numbers}
        known |= new
        table.add(texts_of_mapping(new))
        assert len(table) == len(known)
        asked = np.array([*known, *range(-3, 50)], dtype=np.int64)
        places = table.places(asked)
        found = dict(table.texts_at(places[places >= 0]).items())
        assert found == known
        for number in (*numbers[:5], -7, 4001):
            assert table.get(number) == known.get(number) and (number in table) == (number in known)
        if random.randrange(3) == 0:
            kept = {number: text for number, text in known.items() if random.randrange(2)}
            marks = table.start_marking()
            marks.mark(np.array([*kept, 4002, -5], dtype=np.int64))
            table.keep_used(marks)
            known = kept
    assert table.kinds_at(table.places(np.array(list(known)))).tolist() == [
        (TermKind.IRI, TermKind.BLANK, TermKind.LITERAL)[number % 3] for number in known
    ]


@pytest.mark.parametrize("other", [b"<urn:b>", b"<urn:longer>", b"<u:a>"])
def test_two_texts_with_one_id_are_an_error(other: bytes) -> None:
    table = TextTable()
    table.add(texts_of_mapping({3: b"<urn:a>", 4: b"<urn:c>"}))
    table.add(texts_of_mapping({4: b"<urn:c>", 3: b"<urn:a>"}))
    with pytest.raises(HashCollision):
        table.add(texts_of_mapping({4: b"<urn:c>", 3: other}))


def test_encoded_rows_have_texts_from_wherever_they_are() -> None:
    outside, made, came = (NamedNode(f"urn:{name}") for name in ("outside", "made", "came"))
    vocabulary = Vocabulary(lambda number: b"<urn:outside>" if number == encode(outside) else None)
    vocabulary.add_texts([texts_of_mapping({encode(came): b"<urn:came>"})])
    row = [encode(outside), vocabulary.id_of(made), encode(came), vocabulary.id_of(Literal(1))]
    texts = vocabulary.encode_rows(np.array([row, row], dtype=np.int64)).texts
    assert dict(texts.items()) == {row[0]: b"<urn:outside>", row[1]: b"<urn:made>", row[2]: b"<urn:came>"}
    vocabulary.sweep([np.array([row[2]])])
    assert vocabulary.term_of(row[2]) == came
    assert row[1] not in vocabulary._terms
