"""The error of two terms with one id."""

from __future__ import annotations

from headwater.errors import HeadwaterError
from headwater.terms.model import Term


class HashCollision(HeadwaterError):
    """Two different terms have one 63-bit hash; to mix them up would make answers wrong."""

    def __init__(self, term_id: int, known: Term, other: Term) -> None:
        super().__init__(
            f"the terms {known} and {other} have the same id {term_id}; they cannot be used in one query: "
            "rename one of them in the data"
        )
        self.term_id = term_id
        self.known = known
        self.other = other
