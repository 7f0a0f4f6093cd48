"""Texts of some ids alone, and each id once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.ids.term_texts import deduplicate_ids, select_texts, texts_of_mapping

IDS = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.dictionaries(IDS, st.binary(max_size=9), max_size=12), st.lists(IDS, max_size=6), st.data())
def test_what_is_asked_for_is_there_with_its_text(
    texts: dict[int, bytes], others: list[int], data: st.DataObject
) -> None:
    asked = data.draw(st.lists(st.sampled_from([*texts, 0]), max_size=8)) + others
    found = select_texts(texts_of_mapping(texts), np.array(asked, dtype=np.int64))
    offsets = found.offsets.tolist()
    listed = {
        number: found.blob[offsets[place] : offsets[place + 1]].tobytes()
        for place, number in enumerate(found.ids.tolist())
    }
    assert listed == {number: text for number, text in texts.items() if number in asked}


@given(st.lists(st.lists(IDS, min_size=3, max_size=3), max_size=9))
def test_each_id_once_in_order(rows: list[list[int]]) -> None:
    ids = np.array(rows, dtype=np.int64).reshape(len(rows), 3)
    assert deduplicate_ids(ids).tolist() == sorted({number for row in rows for number in row})
