"""Answers whose rows are still ids, as the stateful step gives them: what the driver makes of them.

Workers make no terms and put nothing in order, because the answers of several shards are put in order together. The
driver learns the texts of a whole batch, and makes each term that it needs once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from headwater.kernel.row_order import rows_in_order
from headwater.kernel.vocabulary import Vocabulary
from headwater.reference import Answer
from headwater.reference.ordering import row_text
from headwater.terms.model import Row


def learned(answers: Iterable[Answer]) -> Vocabulary:
    """The terms of some answers."""
    vocabulary = Vocabulary()
    vocabulary.learn(answer.encoded.texts for answer in answers if answer.encoded is not None)
    return vocabulary


def rows_of(answer: Answer, vocabulary: Vocabulary) -> Sequence[Row]:
    """The rows, in no order that could be relied on."""
    return answer.rows if answer.encoded is None else vocabulary.terms_of(answer.encoded.ids)


def rows_of_all(answers: Sequence[Answer], vocabulary: Vocabulary) -> list[Row]:
    """The rows of some answers together, ordered as those of a single one are."""
    encoded = [answer.encoded for answer in answers if answer.encoded is not None]
    if len(encoded) == len(answers):
        return rows_in_order(np.concatenate([one.ids for one in encoded]), vocabulary)
    return sorted((row for answer in answers for row in rows_of(answer, vocabulary)), key=row_text)


def all_with_rows(answers: Sequence[Answer]) -> list[Answer]:
    """The same answers with their rows as terms, in order."""
    vocabulary = learned(answers)
    return [
        answer
        if answer.encoded is None
        else replace(answer, rows=tuple(rows_of_all([answer], vocabulary)), encoded=None)
        for answer in answers
    ]
