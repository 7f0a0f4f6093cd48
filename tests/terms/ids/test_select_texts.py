"""Texts of some ids alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.ids.term_texts import select_texts, texts_of_mapping

IDS = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.dictionaries(IDS, st.binary(max_size=9), max_size=12), st.data())
def test_what_is_asked_for_is_there_with_its_text(texts: dict[int, bytes], data: st.DataObject) -> None:
    is_wanted = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    found = select_texts(texts_of_mapping(texts), np.array(is_wanted, dtype=np.bool_))
    assert list(found.items()) == [item for item, wanted in zip(texts.items(), is_wanted, strict=True) if wanted]
