"""The terms of a statement, for compiled code: where each ends, and its id."""

from __future__ import annotations

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.scanning.ascii_bytes import LESS_THAN, QUOTE, SPACE, TAB, UNDERSCORE
from headwater.terms.scanning.byte_hashes import hash_and_check_of
from headwater.terms.scanning.iri_ends import UNSURE_END, iri_end, label_end
from headwater.terms.scanning.literals import scan_literal
from headwater.terms.scanning.memory import byte_at


@compiled
def skip_blanks(at):  # type: ignore[no-untyped-def]
    """The address of the next byte that is neither a space nor a tab."""
    while byte_at(at) == SPACE or byte_at(at) == TAB:
        at += 1
    return at


@compiled
def node_end(start):  # type: ignore[no-untyped-def]
    """The end of an IRI or a blank node."""
    first = byte_at(start)
    if first == LESS_THAN:
        return iri_end(start)
    return label_end(start) if first == UNDERSCORE else np.int64(UNSURE_END)


@compiled
def scan_term(start, wanted):  # type: ignore[no-untyped-def]
    """The end of a term, its id (0 where a hash is not wanted), length and check of its canonical text."""
    if byte_at(start) == QUOTE:
        return scan_literal(start, wanted)
    end = node_end(start)
    if end == UNSURE_END:
        return end, np.int64(0), np.int64(0), np.uint32(0)
    found, check = hash_and_check_of(start, end - start) if wanted else (np.int64(0), np.uint32(0))
    return end, found, end - start, check
