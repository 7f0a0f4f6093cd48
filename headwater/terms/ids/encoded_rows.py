"""Rows of terms as columns of ids, with the texts of the terms that are not inside their ids: how answers travel."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.terms.ids.term_texts import Ints, TermTexts


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """`ids` has a row for each row and a column for each variable. The order of the rows means nothing."""

    ids: Ints
    texts: TermTexts

    def __len__(self) -> int:
        return int(self.ids.shape[0])
