"""The changes that a SPARQL Update makes, evaluated on a copy of the statements that it can touch.

INSERT DATA and DELETE DATA list their statements, which are read as TriG: so their literals keep their lexical forms.
Every other update is executed by pyoxigraph on a store with the copy; the difference before and after is the change.
What it asks of the network, LOAD and SERVICE, is brought in before (`remote_updates`): pyoxigraph sends nothing.
"""

from __future__ import annotations

import re
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from pyoxigraph import RdfFormat, Store

from headwater.algebra.wanted_patterns import WantedPattern
from headwater.datasets.errors import DataSetError, UpdateSyntaxError
from headwater.datasets.graph_operations import evaluate_graph_operations, read_graph_operations
from headwater.datasets.remote_updates import (
    bring_in_remote_data,
    may_have_remote_call,
    resolve_iri,
    without_remote_calls,
)
from headwater.datasets.update_patterns import patterns_of
from headwater.errors import HeadwaterError
from headwater.language.errors import QueryError
from headwater.terms.checking.checked_parsing import parse_quads
from headwater.terms.checking.query_texts import check_update
from headwater.terms.model import NamedNode, Quad
from headwater.terms.rdf_documents import BlankNodeNames
from headwater.terms.stored_forms import restore_term, to_stored_quad
from headwater.values.query_guard import current_guard
from headwater.values.query_limits import LimitError

if TYPE_CHECKING:
    from headwater.datasets.dataset import DataSet

_DATA = re.compile(
    r"""(?P<prologue>(?:\s*(?:PREFIX\s+[^\s:]*:\s*<[^>]*>|BASE\s*<[^>]*>))*)\s*
        (?P<what>INSERT|DELETE)\s+DATA\s*\{(?P<block>.*)\}\s*""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_FIRST_LINE = re.compile(r"(error at 1:)(\d+)")
LARGEST_COPY = 2_000_000
"""How many statements may be copied for an update."""


def evaluate_update(data: DataSet, text: str, base_iri: str | None = None) -> tuple[list[Quad], list[Quad]]:
    """The statements that an update adds and removes.

    A `DataSetError` if it is wrong; a `QueryError` if it is nested too deeply for pyoxigraph.
    """
    # Everything below reads the same text, so the base stands in it.
    base = "" if base_iri is None else f"BASE {NamedNode(base_iri)} "
    try:
        return _evaluate(data, base + text)
    except UpdateSyntaxError as error:
        raise UpdateSyntaxError(_without_base(str(error), len(base))) from None


def check_update_syntax(text: str, base_iri: str | None = None) -> None:
    """Raise an `UpdateSyntaxError` for an update that is wrong anywhere; nothing is done, and nobody is asked."""
    base = "" if base_iri is None else f"BASE {NamedNode(base_iri)} "
    try:
        check_update(text)
        _check_syntax(base + text)
    except SyntaxError as error:
        message = _without_base(str(error), len(base))
        raise UpdateSyntaxError(f"the update was not done, and nothing is changed: {message}") from None


def _without_base(message: str, length: int) -> str:
    """The message of an error with the columns of its first line as they are without so many characters before it."""
    return _FIRST_LINE.sub(lambda match: f"{match[1]}{int(match[2]) - length}", message)


def _evaluate(data: DataSet, text: str) -> tuple[list[Quad], list[Quad]]:
    try:
        check_update(text)
    except SyntaxError as error:
        raise QueryError(f"the update was not done, and nothing is changed: {error}", text, 0) from None
    listed = _parse_data_block(text)
    if listed is not None:
        return listed
    try:
        operations = read_graph_operations(text, resolve_iri)
        if operations is not None:
            return evaluate_graph_operations(data, operations)
        if may_have_remote_call(text):
            _check_syntax(text)
        update = bring_in_remote_data(text, data.remote)
    except SyntaxError as error:
        raise UpdateSyntaxError(f"the update was not done, and nothing is changed: {error}") from None
    except (HeadwaterError, OSError) as error:
        raise DataSetError(f"the update was not done, and nothing is changed: {error}") from None
    before = _copy_statements(data, patterns_of(update.text))
    store = Store()
    store.bulk_extend(before)
    try:
        # In a thread of its own, because it cannot be interrupted when its time is up.
        current_guard().call(lambda: store.update(update.text, custom_functions=dict(update.functions)))
    except LimitError:
        raise
    except SyntaxError as error:
        raise UpdateSyntaxError(f"the update was not done, and nothing is changed: {error}") from None
    except (ValueError, OSError, RuntimeError) as error:
        raise DataSetError(f"the update was not done, and nothing is changed: {error}") from None
    after = set(store)
    return [_original_quad(quad) for quad in after - before], [_original_quad(quad) for quad in before - after]


def _check_syntax(text: str) -> None:
    """Raise a `SyntaxError` for an update that is wrong anywhere, before an address in it is asked."""
    local = without_remote_calls(text)
    if not may_have_remote_call(local):
        store = Store()
        # What it does without data is no mistake of its writer.
        with suppress(RuntimeError, ValueError, OSError):
            store.update(local)


def _copy_statements(data: DataSet, patterns: frozenset[WantedPattern] | None) -> set[Quad]:
    """The statements that match some patterns, or all if there are none, in their stored forms."""
    everything = [WantedPattern(None, None, None)]
    quads: set[Quad] = set()
    for one in everything if patterns is None else patterns:
        for quad in data.quads(one.subject, one.predicate, one.object):
            quads.add(to_stored_quad(quad))
            if len(quads) > LARGEST_COPY:
                raise DataSetError(
                    f"nothing is changed: the update looks through more than {LARGEST_COPY:,} statements. Name more "
                    "predicates or resources in it, or use INSERT DATA and DELETE DATA, insert(…) and remove(…)"
                )
    return quads


def _parse_data_block(text: str) -> tuple[list[Quad], list[Quad]] | None:
    """Parse INSERT DATA or DELETE DATA into what is added and removed; None for any other update."""
    match = _DATA.fullmatch(text)
    if match is None:
        return None
    block = match["block"].rstrip()
    # A block may end without its last dot.
    document = f"{match['prologue']}\n{block}{'' if block.endswith(('.', '}')) or not block else ' .'}"
    rename = BlankNodeNames(uuid.uuid4().hex)
    try:
        quads = [rename.quad(quad) for quad in parse_quads(document.encode(), RdfFormat.TRIG)]
    except SyntaxError:
        return None
    return (quads, []) if match["what"].upper() == "INSERT" else ([], quads)


def _original_quad(quad: Quad) -> Quad:
    written = restore_term(quad.object)
    return quad if written is quad.object else Quad(quad.subject, quad.predicate, written, quad.graph_name)
