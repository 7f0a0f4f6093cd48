"""N-Quads statements, many at a time: a block is parsed in one go, or line by line where it has errors."""

from __future__ import annotations

from collections.abc import Sequence

from pyoxigraph import DefaultGraph, RdfFormat

from headwater.terms.checking.checked_parsing import parse_quads
from headwater.terms.model import BlankNode, NamedNode, Quad, Term
from headwater.terms.rdf_documents import RdfSyntaxError
from headwater.terms.text_lines import LongLine


def parse_statements(statements: Sequence[bytes]) -> list[Quad | str]:
    """For each statement its quad, or the reason why it is none. A statement holds no line feed."""
    if any(isinstance(statement, LongLine) for statement in statements):
        return [parse_statement(statement) for statement in statements]
    if not statements:
        return []
    block = b"\n".join(statements)
    # A carriage return ends a line for the parser: two statements could hide behind one, so such a block
    # is not parsed in one go. Otherwise the parser itself insists on one statement per line.
    if b"\r" not in block:
        try:
            quads: list[Quad | str] = [*parse_quads(block, RdfFormat.N_QUADS)]
        except SyntaxError:
            pass
        else:
            if len(quads) == len(statements):
                return quads
    return [parse_statement(statement) for statement in statements]


def parse_statement(statement: bytes) -> Quad | str:
    """The quad of one statement, or the reason why it is none."""
    if isinstance(statement, LongLine):
        return statement.reason
    try:
        quads: list[Quad] = parse_quads(statement, RdfFormat.N_QUADS)
    except SyntaxError as error:
        return line_reason(error, statement)
    if len(quads) != 1:
        return f"expected one N-Quads statement, found {len(quads) or 'none'}"
    return quads[0]


def line_reason(error: SyntaxError, line: bytes) -> str:
    """Why a line of N-Triples or N-Quads cannot be read, and at which column."""
    located = RdfSyntaxError.from_parser(error, "")
    if located.column is None:
        return located.reason
    rest = line.decode(errors="replace")[located.column - 1 :]
    if rest.startswith("<<") and not rest.startswith("<<("):
        return f"<< … >> is not supported yet in lines; a triple term is <<( … )>> (column {located.column})"
    return f"{located.reason} (column {located.column})"


def graph_label(graph: Term | DefaultGraph | None) -> str | None:
    """The name of a graph as `Element.graph` holds it: an IRI, `_:label`, or None for the default graph."""
    if isinstance(graph, NamedNode):
        return graph.value
    return str(graph) if isinstance(graph, BlankNode) else None


def graph_term(label: str) -> NamedNode | BlankNode:
    """The name of a graph as a term: the inverse of `graph_label`."""
    return BlankNode(label.removeprefix("_:")) if label.startswith("_:") else NamedNode(label)
