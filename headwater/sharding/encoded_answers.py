"""Answers whose rows are ids, as the stateful step gives them, and how the driver decodes them.

Workers make no terms and do not sort, because the answers of several shards are sorted together. The driver learns the
texts of a whole batch, and makes each term that it needs once.
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


def vocabulary_of(answers: Iterable[Answer]) -> Vocabulary:
    """A vocabulary with the texts of some answers."""
    vocabulary = Vocabulary()
    vocabulary.add_texts(answer.encoded.texts for answer in answers if answer.encoded is not None)
    return vocabulary


def rows_of(answer: Answer, vocabulary: Vocabulary) -> Sequence[Row]:
    """The rows of an answer, in no particular order."""
    return answer.rows if answer.encoded is None else vocabulary.terms_of_rows(answer.encoded.ids)


def decode_ordered_rows(groups: Sequence[Sequence[Answer]], vocabulary: Vocabulary) -> list[list[Row]]:
    """For each group of answers the rows of all of them, in the order that a single answer has."""
    rows_by_group: list[list[Row]] = [[] for _ in groups]
    tables: dict[int, list[tuple[int, Ints]]] = {}
    for place, answers in enumerate(groups):
        encoded = [answer.encoded.ids for answer in answers if answer.encoded is not None]
        if len(encoded) == len(answers):
            tables.setdefault(encoded[0].shape[1], []).append((place, np.concatenate(encoded)))
        else:
            rows_by_group[place] = sorted((row for one in answers for row in rows_of(one, vocabulary)), key=row_text)
    with _without_cycle_collection():
        for alike in tables.values():
            # All at once: most of the work is the same for any number of rows.
            ordered = sort_tables([ids for _, ids in alike], vocabulary)
            for (place, _), rows in zip(alike, ordered, strict=True):
                rows_by_group[place] = rows
    return rows_by_group


@contextmanager
def _without_cycle_collection() -> Iterator[None]:
    """Turns Python's cycle collector off: over many new objects without cycles it takes as long as making them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def decode_answers(answers: Sequence[Answer]) -> list[Answer]:
    """The same answers with their rows as terms, in order."""
    encoded = [place for place, answer in enumerate(answers) if answer.encoded is not None]
    rows = decode_ordered_rows([[answers[place]] for place in encoded], vocabulary_of(answers))
    decoded = list(answers)
    for place, own_rows in zip(encoded, rows, strict=True):
        decoded[place] = replace(answers[place], rows=tuple(own_rows), encoded=None)
    return decoded
