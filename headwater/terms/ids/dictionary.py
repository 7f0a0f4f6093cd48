"""From ids back to terms: inline ids decode themselves, the others are looked up in a `TermDictionary`.

Entries are counted: each `add` (or `put`) takes one reference, each `release` gives one back, and an entry
whose references are all gone is forgotten. A window that drops an element releases its terms, so the
dictionary is as large as what the windows hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headwater.errors import HeadwaterError
from headwater.terms.ids.inline_layout import is_inline
from headwater.terms.ids.term_ids import decode_inline, encode
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


class UnknownTerm(KeyError):
    """A hashed id that the dictionary does not hold (never added, or released)."""

    def __str__(self) -> str:
        return f"no term with the id {self.args[0]} in this dictionary: it was never added, or was released"


class TermDictionary:
    """Hashed ids to terms, reference counted. Inline ids need no entry and are accepted everywhere.

    >>> from headwater.terms.model import NamedNode
    >>> terms = TermDictionary()
    >>> city = terms.add(NamedNode("http://example.org/city"))
    >>> terms.term(city)
    <NamedNode value=http://example.org/city>
    >>> terms.release(city)
    >>> city in terms
    False
    """

    def __init__(self, encode: Callable[[Term], int] = encode) -> None:
        self._encode = encode
        self._terms: dict[int, Term] = {}
        self._references: dict[int, int] = {}

    def add(self, term: Term) -> int:
        """The term's id, with one more reference to its entry."""
        term_id = self._encode(term)
        self.put(term_id, term)
        return term_id

    def put(self, term_id: int, term: Term, references: int = 1) -> None:
        """Add an entry whose id is known, for instance from the dictionary of a chunk."""
        if is_inline(term_id):
            return
        known = self._terms.get(term_id)
        if known is None:
            self._terms[term_id] = term
            self._references[term_id] = references
        elif known != term:
            raise HashCollision(term_id, known, term)
        else:
            self._references[term_id] += references

    def term(self, term_id: int) -> Term:
        """The term of an id; raises `UnknownTerm` where the dictionary does not hold it."""
        if is_inline(term_id):
            return decode_inline(term_id)
        try:
            return self._terms[term_id]
        except KeyError:
            raise UnknownTerm(term_id) from None

    def release(self, term_id: int, references: int = 1) -> None:
        """Give references back; the entry goes with the last one."""
        if is_inline(term_id):
            return
        held = self._references.get(term_id)
        if held is None:
            raise UnknownTerm(term_id)
        if references > held:
            raise ValueError(f"{references} references to the id {term_id} released, but {held} are held")
        if references == held:
            del self._terms[term_id]
            del self._references[term_id]
        else:
            self._references[term_id] = held - references

    def items(self) -> Iterator[tuple[int, Term]]:
        """All entries, in the order in which they came."""
        return iter(self._terms.items())

    def __contains__(self, term_id: int) -> bool:
        return is_inline(term_id) or term_id in self._terms

    def __len__(self) -> int:
        return len(self._terms)
