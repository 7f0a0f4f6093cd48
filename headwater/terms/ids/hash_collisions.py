"""The error of two terms with one id."""

from __future__ import annotations

from headwater.errors import HeadwaterError
from headwater.terms.model import Term


class HashCollision(HeadwaterError):
    """Two different terms have one 63-bit hash; to mix them up would make answers wrong.

    `known` and `other` are None where the term is not known.
    """

    def __init__(self, term_id: int, known: Term | None, other: Term | None) -> None:
        first = "a term that is in use" if known is None else f"the term {known}"
        second = "another one" if other is None else str(other)
        super().__init__(
            f"{first} and {second} have the same id {term_id} by chance; they cannot be used in one query: "
            "rename one of them in the data"
        )
        self.term_id = term_id
        self.known = known
        self.other = other
