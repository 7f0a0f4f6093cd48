"""What a SPARQL Update changes: found on a copy of the statements that it can touch, so that it is all or nothing.

INSERT DATA and DELETE DATA say their statements themselves, as TriG writes them; their literals stay as they are
written. Everything else is done by pyoxigraph on a store with the data, and what is different afterwards is the change.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

from pyoxigraph import RdfFormat, Store, parse

from headwater.algebra.wanted_patterns import WantedPattern
from headwater.datasets.errors import DataSetError
from headwater.datasets.update_patterns import patterns_of
from headwater.terms.model import Quad
from headwater.terms.rdf_documents import BlankNodeNames
from headwater.terms.stored_forms import original, stored_quad

if TYPE_CHECKING:
    from headwater.datasets.dataset import DataSet

_DATA = re.compile(
    r"""(?P<prologue>(?:\s*(?:PREFIX\s+[^\s:]*:\s*<[^>]*>|BASE\s*<[^>]*>))*)\s*
        (?P<what>INSERT|DELETE)\s+DATA\s*\{(?P<block>.*)\}\s*""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
LARGEST_COPY = 2_000_000
"""How many statements an update may look through."""


def changes_of(data: DataSet, text: str) -> tuple[list[Quad], list[Quad]]:
    """What an update adds and removes; a `DataSetError` where it is wrong, and then it does nothing."""
    plain = _data_block(text)
    if plain is not None:
        return plain
    before = _copy(data, patterns_of(text))
    store = Store()
    store.bulk_extend(before)
    try:
        store.update(text)
    except (SyntaxError, ValueError, OSError, RuntimeError) as error:
        raise DataSetError(f"the update was not done, and nothing is changed: {error}") from None
    after = set(store)
    return [_original(quad) for quad in after - before], [_original(quad) for quad in before - after]


def _copy(data: DataSet, patterns: frozenset[WantedPattern] | None) -> set[Quad]:
    """The statements that matter to an update, as a store has to see them."""
    everything = [WantedPattern(None, None, None)]
    found: set[Quad] = set()
    for one in everything if patterns is None else patterns:
        for quad in data.quads(one.subject, one.predicate, one.object):
            found.add(stored_quad(quad))
            if len(found) > LARGEST_COPY:
                raise DataSetError(
                    f"nothing is changed: the update looks through more than {LARGEST_COPY:,} statements. Name more "
                    "predicates or resources in it, or use INSERT DATA and DELETE DATA, insert(…) and remove(…)"
                )
    return found


def _data_block(text: str) -> tuple[list[Quad], list[Quad]] | None:
    """The statements of INSERT DATA or DELETE DATA; None for any other update."""
    found = _DATA.fullmatch(text)
    if found is None:
        return None
    block = found["block"].rstrip()
    # A block may end without its last dot.
    document = f"{found['prologue']}\n{block}{'' if block.endswith(('.', '}')) or not block else ' .'}"
    rename = BlankNodeNames(uuid.uuid4().hex)
    try:
        quads = [rename.quad(quad) for quad in parse(document, format=RdfFormat.TRIG)]
    except SyntaxError:
        return None
    return (quads, []) if found["what"].upper() == "INSERT" else ([], quads)


def _original(quad: Quad) -> Quad:
    written = original(quad.object)
    return quad if written is quad.object else Quad(quad.subject, quad.predicate, written, quad.graph_name)
