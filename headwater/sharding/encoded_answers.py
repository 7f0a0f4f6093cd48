"""Answers whose rows are still ids, as the stateful step gives them: what the driver makes of them.

Workers make no terms and put nothing in order, because the answers of several shards are put in order together. The
driver learns the texts of a whole batch, and makes each term that it needs once.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from headwater.execution.answers import Answer
from headwater.kernel.columns.ordered_rows import sort_tables
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.model import Row
from headwater.values.row_order import row_text


def learned(answers: Iterable[Answer]) -> Vocabulary:
    """The terms of some answers."""
    vocabulary = Vocabulary()
    vocabulary.add_texts(answer.encoded.texts for answer in answers if answer.encoded is not None)
    return vocabulary


def rows_of(answer: Answer, vocabulary: Vocabulary) -> Sequence[Row]:
    """The rows, in no order that could be relied on."""
    return answer.rows if answer.encoded is None else vocabulary.terms_of_rows(answer.encoded.ids)


def rows_of_each(groups: Sequence[Sequence[Answer]], vocabulary: Vocabulary) -> list[list[Row]]:
    """For each of some groups of answers their rows together, ordered as those of a single answer are."""
    found: list[list[Row]] = [[] for _ in groups]
    tables: dict[int, list[tuple[int, Ints]]] = {}
    for place, answers in enumerate(groups):
        encoded = [answer.encoded.ids for answer in answers if answer.encoded is not None]
        if len(encoded) == len(answers):
            tables.setdefault(encoded[0].shape[1], []).append((place, np.concatenate(encoded)))
        else:
            found[place] = sorted((row for one in answers for row in rows_of(one, vocabulary)), key=row_text)
    with _no_search_for_cycles():
        for alike in tables.values():
            # All at once: most of the work is the same for any number of rows.
            ordered = sort_tables([ids for _, ids in alike], vocabulary)
            for (place, _), rows in zip(alike, ordered, strict=True):
                found[place] = rows
    return found


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """For making many objects without cycles: looking for cycles among them takes as long as making them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def all_with_rows(answers: Sequence[Answer]) -> list[Answer]:
    """The same answers with their rows as terms, in order."""
    encoded = [place for place, answer in enumerate(answers) if answer.encoded is not None]
    rows = rows_of_each([[answers[place]] for place in encoded], learned(answers))
    made = list(answers)
    for place, mine in zip(encoded, rows, strict=True):
        made[place] = replace(answers[place], rows=tuple(mine), encoded=None)
    return made
