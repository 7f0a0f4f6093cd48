"""Patterns: what they keep and whose texts they want, against the obvious definition."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.ids.term_ids import encode
from headwater.terms.model import Element, NamedNode
from headwater.terms.scanning.pattern_tables import ANY, ScanPattern, ScanPatterns
from headwater.terms.scanning.scanner import scan
from headwater.terms.tnq import read_tnq
from tests.terms.scanning.comparing import timed, triple_ids
from tests.terms.scanning.line_strategies import texts

PLACES = ("s", "p", "o")
few_ids = st.sampled_from([ANY, 0, 1, 2, -(2**63) + 5, 2**62])
places = st.sets(st.sampled_from(PLACES)).map(lambda chosen: "".join(sorted(chosen)))
patterns = st.builds(ScanPattern, few_ids, few_ids, few_ids, places)


def slow_mark(triple: list[int], wanted: list[ScanPattern]) -> int:
    """The definition."""
    mark = 0
    for pattern in wanted:
        ids = (pattern.subject, pattern.predicate, pattern.object)
        if all(part in (ANY, term_id) for part, term_id in zip(ids, triple, strict=True)):
            mark |= 8 | sum(1 << place for place, name in enumerate(PLACES) if name in pattern.texts)
    return mark


@given(st.lists(patterns, max_size=8), st.lists(st.tuples(few_ids, few_ids, few_ids), max_size=20))
def test_marks(wanted: list[ScanPattern], triples: list[tuple[int, int, int]]) -> None:
    rows = np.array(triples, dtype=np.int64).reshape(len(triples), 3)
    assert ScanPatterns(wanted).mark_triples(rows).tolist() == [slow_mark(list(triple), wanted) for triple in triples]


@given(texts, st.data())
def test_a_scan_keeps_what_matches(text: bytes, data: st.DataObject) -> None:
    elements = list(read_tnq(text, "s"))
    ids = triple_ids(elements)
    known = st.sampled_from(sorted({term_id for triple in ids for term_id in triple}) or [0])
    part = st.one_of(st.just(ANY), known)
    wanted = data.draw(st.lists(st.builds(ScanPattern, part, part, part, places), max_size=4))
    scanned = scan(text, source="s", patterns=ScanPatterns(wanted), texts="")
    marks = [slow_mark(triple, wanted) for triple in ids]
    assert scanned.triples.tolist() == [triple for triple, mark in zip(ids, marks, strict=True) if mark]
    assert scanned.marks.tolist() == [mark for mark in marks if mark]
    whole = scan(text, source="s")
    assert scanned.bad == whole.bad
    for column in ("element_times", "element_graphs", "element_positions", "element_sizes"):
        assert getattr(scanned, column).tolist() == getattr(whole, column).tolist()
    kept = [[bool(slow_mark(triple, wanted)) for triple in triple_ids([e])] for e in elements if isinstance(e, Element)]
    assert np.diff(scanned.element_rows).tolist() == [sum(element) for element in kept]
    expected = {
        term_id
        for triple, mark in zip(ids, marks, strict=True)
        for place, term_id in enumerate(triple)
        if mark >> place & 1 and term_id >= 0
    }
    assert set(scanned.texts().ids.tolist()) == expected


def test_many_patterns_that_differ_in_a_constant() -> None:
    predicate = encode(NamedNode("a:p"))
    wanted = ScanPatterns(
        [ScanPattern(predicate=predicate, object=encode(NamedNode(f"a:{n}")), texts="s") for n in range(2_000)]
    )
    text = timed(*(f"<a:s{n}> <a:p> <a:{n}> ." for n in range(0, 4_000, 7)), "<a:s> <a:q> <a:7> .")
    scanned = scan(text, patterns=wanted)
    assert len(scanned) == len(range(0, 2_000, 7))
    assert len(scanned.texts()) == len(scanned)
    assert scanned.element_sizes.sum() == len(range(0, 4_000, 7)) + 1


def test_patterns_travel_to_other_processes() -> None:
    wanted = ScanPatterns([ScanPattern(predicate=encode(NamedNode("a:p")), texts="o")])
    text = timed("<a:s> <a:p> <a:o> .", "<a:s> <a:q> <a:o> .")
    assert scan(text, patterns=pickle.loads(pickle.dumps(wanted))).marks.tolist() == [12]


def test_no_patterns_keep_nothing_but_elements() -> None:
    scanned = scan(timed("<a:s> <a:p> <a:o> ."), patterns=ScanPatterns([]))
    assert (len(scanned), scanned.element_times.tolist(), scanned.element_rows.tolist()) == (0, [1_000_000], [0, 0])


def test_no_texts_need_no_spans() -> None:
    scanned = scan(timed("<a:s> <a:p> <a:o> ."), patterns=ScanPatterns([ScanPattern(texts="")]), texts="")
    assert (len(scanned), len(scanned.spans), len(scanned.texts())) == (1, 0, 0)


def test_an_unknown_place_is_refused() -> None:
    with pytest.raises(ValueError, match="s, p and o"):
        ScanPatterns([ScanPattern(texts="x")])
