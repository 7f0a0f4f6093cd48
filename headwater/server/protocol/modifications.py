"""Updates that are one DELETE or INSERT with a WHERE clause, which is evaluated like a query, over the whole data set.

    WITH <g> DELETE { ?s :old ?o } INSERT { GRAPH ?h { ?s :new ?o } } USING <h> WHERE { … }

Its solutions fill the templates. So nothing is copied, literals are compared by their values however they are written,
and the limits of queries hold. Updates of several operations are executed by `DataSet.update`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyoxigraph import DefaultGraph

from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.datasets.dataset import DataSet, id_or_none
from headwater.datasets.remote_updates import resolve_iri
from headwater.language.lexer import Token, tokenize
from headwater.language.parser import parse
from headwater.language.patterns import TriplePattern
from headwater.language.query import ConstructQuery
from headwater.server.protocol.data_service import GraphChoice
from headwater.server.protocol.plain_queries import plan_plain_query
from headwater.terms.model import BlankNode, Literal, NamedNode, Quad, Row, Term, Triple, Variable

_GraphTerm = NamedNode | Variable | DefaultGraph
_RESOURCES = (NamedNode, BlankNode)


@dataclass(frozen=True)
class QuadTemplate:
    """Triple patterns, each in the graph that it names."""

    patterns: tuple[tuple[_GraphTerm, TriplePattern], ...] = ()

    def instantiate(self, variables: Sequence[Variable], rows: Sequence[Row]) -> set[Quad]:
        """The statements that solutions make of it; those with a gap or an illegal term are left out.

        Blank nodes are new in each solution.
        """
        places = {variable: place for place, variable in enumerate(variables)}
        scope = uuid.uuid4().hex[:16]
        quads: set[Quad] = set()
        for number, row in enumerate(rows):

            def value(part: object, row: Row = row, number: int = number) -> Term | None:
                if isinstance(part, Variable):
                    place = places.get(part)
                    return None if place is None else row[place]
                if isinstance(part, BlankNode):
                    return BlankNode(f"u{scope}r{number}x{part.value}")
                return part if isinstance(part, NamedNode | Literal | Triple) else None

            for where, pattern in self.patterns:
                graph = where if isinstance(where, DefaultGraph) else value(where)
                subject, predicate, object_ = (
                    value(one) for one in (pattern.subject, pattern.predicate, pattern.object)
                )
                if not isinstance(graph, NamedNode | DefaultGraph) or object_ is None:
                    continue
                if isinstance(subject, _RESOURCES) and isinstance(predicate, NamedNode):
                    quads.add(Quad(subject, predicate, object_, graph))
        return quads


@dataclass(frozen=True)
class Modification:
    """A WHERE clause as the plan of its solutions, and the templates that they fill."""

    plan: QueryPlan
    delete: QuadTemplate
    insert: QuadTemplate

    def changes(self, data: DataSet, rows: Sequence[Row]) -> tuple[list[Quad], list[Quad]]:
        """The statements that are added to a data set and removed from it; insertion comes behind deletion."""
        new = self.insert.instantiate(self.plan.variables, rows)
        old = self.delete.instantiate(self.plan.variables, rows) - new
        added = [quad for quad in new if not _is_there(data, quad)]
        removed = [quad for quad in old if _is_there(data, quad)]
        return added, removed


def _is_there(data: DataSet, quad: Quad) -> bool:
    ids = [id_or_none(one) for one in (quad.graph_name, quad.subject, quad.predicate, quad.object)]
    graph, subject, predicate, object_ = (one for one in ids if one is not None)
    return data.columns.has_statement((graph, subject, predicate, object_))


class _OtherUpdate(Exception):
    """Something that is no single DELETE or INSERT with a WHERE clause."""


def read_modification(text: str, base: str) -> Modification | None:
    """The only operation of an update; None for every other update. The syntax of the text must be right."""
    try:
        return _ModificationReader(text, base).read()
    except _OtherUpdate:
        return None


class _ModificationReader:
    """Reads an update from its tokens; patterns and templates are left to the parser of queries."""

    def __init__(self, text: str, base: str) -> None:
        self._text = text
        self._base = base
        self._tokens = tokenize(text).tokens
        self._place = 0
        self._prologue = f"BASE {NamedNode(base)}"

    def read(self) -> Modification:
        self._read_prologue()
        default: NamedNode | DefaultGraph = DefaultGraph()
        with_graph = self._skip("WITH")
        if with_graph:
            default = self._read_iri()
        delete, insert, using = QuadTemplate(), QuadTemplate(), []
        pattern = ""
        if self._skip("DELETE"):
            is_short = self._skip("WHERE")
            block = self._read_block()
            delete = self._read_template(block, default)
            if is_short:
                pattern = self._text_of(block)
        if not pattern and self._skip("INSERT"):
            insert = self._read_template(self._read_block(), default)
        while not pattern and self._skip("USING"):
            named = "NAMED " if self._skip("NAMED") else ""
            using.append(f"FROM {named}{self._read_iri()}")
        if not pattern:
            if not self._skip("WHERE"):
                raise _OtherUpdate
            pattern = self._text_of(self._read_block())
        self._skip(";")
        if self._key != "end" or not (delete.patterns or insert.patterns):
            raise _OtherUpdate
        query = f"{self._prologue} SELECT * {' '.join(using)} WHERE {pattern}"
        plan = plan_plain_query(query, self._base, GraphChoice())
        if isinstance(default, NamedNode) and not using:
            plan = replace(plan, default_graphs=(default,))
        return Modification(replace(plan, kind=QueryKind.SELECT), delete, insert)

    @property
    def _key(self) -> str:
        return self._tokens[self._place].key

    def _next(self) -> Token:
        token = self._tokens[self._place]
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def _skip(self, key: str) -> bool:
        if self._key != key:
            return False
        self._next()
        return True

    def _read_prologue(self) -> None:
        start = self._tokens[0].start
        end = start
        while self._key in ("PREFIX", "BASE"):
            if self._next().key == "PREFIX":
                self._next()
            end = self._next().end
        self._prologue += " " + self._text[start:end]

    def _read_iri(self) -> NamedNode:
        token = self._next()
        if token.key not in ("iri", "pname"):
            raise _OtherUpdate
        return resolve_iri(self._prologue, self._text[token.start : token.end])

    def _read_block(self) -> list[Token]:
        """The tokens of a block with its brackets."""
        if self._key != "{":
            raise _OtherUpdate
        block: list[Token] = []
        depth = 0
        while self._key not in ("end", "error"):
            block.append(self._next())
            depth += {"{": 1, "}": -1}.get(block[-1].key, 0)
            if depth == 0:
                return block
        raise _OtherUpdate

    def _text_of(self, tokens: Sequence[Token]) -> str:
        return self._text[tokens[0].start : tokens[-1].end] if tokens else ""

    def _read_template(self, block: Sequence[Token], default: NamedNode | DefaultGraph) -> QuadTemplate:
        """The template in a block; `default` is the graph of what stands in no GRAPH."""
        pieces = list(self._pieces(block[1:-1], default))
        counts = [len(self._read_triples(text)) for _, text in pieces]
        # Blank nodes are those of the whole template, so it is read as a whole, too.
        triples = iter(self._read_triples(" . ".join(text for _, text in pieces)))
        return QuadTemplate(
            tuple(
                (graph, next(triples)) for (graph, _), count in zip(pieces, counts, strict=True) for _ in range(count)
            )
        )

    def _pieces(self, tokens: Sequence[Token], default: NamedNode | DefaultGraph) -> Iterator[tuple[_GraphTerm, str]]:
        """The parts of a template that stand in one graph each, without a dot at their ends."""
        plain: list[Token] = []
        index = 0
        while index < len(tokens):
            if tokens[index].key != "GRAPH":
                plain.append(tokens[index])
                index += 1
                continue
            yield from self._piece(plain, default)
            plain = []
            name = tokens[index + 1]
            written = self._text[name.start : name.end]
            graph = Variable(written[1:]) if name.key == "var" else resolve_iri(self._prologue, written)
            end = next(place for place in range(index, len(tokens)) if tokens[place].key == "}")
            yield from self._piece(tokens[index + 3 : end], graph)
            index = end + 1
        yield from self._piece(plain, default)

    def _piece(self, tokens: Sequence[Token], graph: _GraphTerm) -> Iterator[tuple[_GraphTerm, str]]:
        kept = list(tokens)
        while kept and kept[0].key == ".":
            kept.pop(0)
        while kept and kept[-1].key == ".":
            kept.pop()
        if kept:
            yield graph, self._text_of(kept)

    def _read_triples(self, text: str) -> tuple[TriplePattern, ...]:
        parsed = parse(f"{self._prologue} CONSTRUCT {{ {text} }} WHERE {{}}", base=self._base)
        assert isinstance(parsed.form, ConstructQuery)
        return parsed.form.template
