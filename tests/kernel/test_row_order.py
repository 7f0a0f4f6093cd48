"""Rows sorted by ranks of terms are in the order of their texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.model import Row, Term
from headwater.values.ordered_rows import sort_rows
from headwater.values.row_order import row_text

TERMS: st.SearchStrategy[Term | None] = st.one_of(
    st.none(),
    st.sampled_from("abAB").map(lambda c: NamedNode(f"http://ex/{c}")),
    st.sampled_from("ab").map(BlankNode),
    st.text("ab\x01\x1e\x1f\n é", max_size=3).map(Literal),
    st.integers(-3, 12).map(Literal),
)


@given(st.lists(st.tuples(TERMS, TERMS), min_size=1, max_size=60))
def test_ranks_order_rows_as_texts_do(rows: list[Row]) -> None:
    vocabulary = Vocabulary()
    found = sort_rows(vocabulary.ids_of_rows(rows, 2).tolist(), vocabulary.sort_texts)
    assert found == sorted(rows, key=row_text)
