"""Triples: subjects with their predicate-object lists, blank node property lists, collections, templates."""

from __future__ import annotations

from itertools import pairwise
from typing import NoReturn

from headwater.language.lexer import SourceText, Token
from headwater.language.parser_paths import PATH_STARTS, PathParser
from headwater.language.parser_terms import IRI_STARTS, LITERAL_STARTS, RDF_FIRST, RDF_NIL, RDF_REST
from headwater.language.patterns import Path, PatternTerm, TriplePattern
from headwater.language.stream_clauses import Dialect
from headwater.terms.model import BlankNode, NamedNode, Variable

_NODE_STARTS = IRI_STARTS | LITERAL_STARTS | {"var", "bnode", "[", "("}
_CONDITION_MARKS = frozenset({"=", "!=", "<", ">", "<=", ">=", "&&", "||", "!", "+", "-", "*", "/", ",", "AS"})
_PATH_MARKS = frozenset({"+", "*", "?", "/", "|", "^"})
ITEM_KEYWORDS = (
    "FILTER",
    "OPTIONAL",
    "UNION",
    "MINUS",
    "GRAPH",
    "SERVICE",
    "BIND",
    "VALUES",
    "STREAM",
    "WINDOW",
)
_OUTER_KEYWORDS = ("SELECT", "WHERE", "FROM", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "AGGREGATE")
_TRIPLE_ENDS = frozenset({".", ";", ",", "{", "}", "]", ")", *ITEM_KEYWORDS, *_OUTER_KEYWORDS})
_SHORT_RUN = 5
_CLOSING = {"(": ")", "[": "]"}
_EXPECTED_NODE = ("var", "iri", "pname", "string", "integer", "[", "(")


class TriplesParser(PathParser):
    """Reads triples into `triples`, the list of the pattern or template that is being read."""

    def __init__(self, source: SourceText, dialect: Dialect, is_streaming: bool, base: str | None) -> None:
        super().__init__(source, dialect, is_streaming, base)
        self.triples: list[TriplePattern] = []
        self.in_template = False
        self.basic_pattern = 0
        self._basic_patterns = 0
        self._label_homes: dict[str, int] = {}
        self._list_opening: Token | None = None
        self._triple_begin: Token | None = None

    def new_basic_pattern(self) -> None:
        """Ends the basic graph pattern that triples belonged to: blank node labels do not reach beyond it."""
        self._basic_patterns += 1
        self.basic_pattern = self._basic_patterns

    def is_at_node(self) -> bool:
        """Whether a term, `[` or `(` stands here, so that a triple can begin."""
        return self.token.key in _NODE_STARTS or self.token.key == "<" or self.is_at_signed_number()

    def triples_template(self) -> tuple[TriplePattern, ...]:
        """`{ triples }` of CONSTRUCT: no paths, no filters."""
        opening = self.expect("{")
        if self.token.key in ITEM_KEYWORDS or self.token.key == "{":
            self.fail(f"a template holds triples only, not {self.token.text}", opening)
        around, self.triples, self.in_template = self.triples, [], True
        while self.token.key != "}":
            if not self.is_at_node():
                self.raise_unexpected("}", *_EXPECTED_NODE, hint=self.term_hint())
            self.triples_of_subject()
            if not self.accept("."):
                break
        self.close("}", ".", ";", ",")
        read, self.triples, self.in_template = self.triples, around, False
        return tuple(read)

    def triples_of_subject(self) -> None:
        """One subject with its predicates and objects."""
        begin = self.index
        subject_token = self.token
        needs_predicate = subject_token.key not in _CLOSING or self.peek().key == _CLOSING[subject_token.key]
        subject = self._graph_node()
        if needs_predicate and not self.is_at_verb():
            if self.token.key in _TRIPLE_ENDS:
                self.fail("this triple has no predicate and no object", subject_token)
            if subject_token.key in IRI_STARTS and (self.token.key in LITERAL_STARTS or self.token.key == "["):
                self.fail("here a subject is missing, or a ; in place of the full stop before", subject_token)
            self.raise_unexpected("a predicate", hint=self.term_hint())
        if needs_predicate or self.is_at_verb():
            self._predicates_and_objects(subject, begin)
        elif self.token.key in _PATH_MARKS:
            self.fail("a path stands between a subject and an object", subject_token)

    def _predicates_and_objects(self, subject: PatternTerm, blamed: int) -> None:
        while True:
            if self.token.key == "(" and self.peek().key not in PATH_STARTS and self.peek().text != "a":
                self.fail("a list cannot be a predicate; is there a term missing?", self.tokens[blamed])
            verb = self.simple_verb() if self.in_template else self.verb()
            self._objects(subject, verb, blamed)
            if self.token.key in _NODE_STARTS or self.token.key in _PATH_MARKS:
                self._too_many_terms(blamed)
            if self.token.key != ";":
                return
            while self.accept(";"):
                pass
            if not self.is_at_verb():
                return
            blamed = self.index

    def _objects(self, subject: PatternTerm, verb: NamedNode | Variable | Path, blamed: int) -> None:
        while True:
            if self.token.key in _TRIPLE_ENDS:
                self.fail("this triple has no object", self.tokens[blamed], ("an object",))
            if self.token.key in ("!", "^") or self.token.text == "a":
                self.fail("there is a term too many before the predicate", self.tokens[blamed])
            place = len(self.triples)
            around, self._triple_begin = self._triple_begin, self.tokens[blamed]
            value = self._graph_node()
            self._triple_begin = around
            self.triples.insert(place, TriplePattern(subject, verb, value))
            if not self.accept(","):
                return

    def _too_many_terms(self, blamed: int) -> NoReturn:
        """A term where the triple should be over: a full stop is missing, or there is a term too many.

        Points at the second of two equal neighbours if there are such, at the beginning if one term is too many,
        else at the term before which the full stop is missing.
        """
        extra = self.index
        run = self.tokens[blamed : extra + 1]
        if len(run) <= _SHORT_RUN:
            for first, second in pairwise(run):
                if first.text == second.text:
                    self.fail(f"{second.text} stands here twice", second)
        if self.token.key == "(" and self._is_like_condition(extra):
            self.fail("a condition cannot stand here; did you mean FILTER (…)?", self.token, (".", "FILTER"))
        if self._nodes_from(extra) <= 1:
            self.fail("a triple has three parts, but here stands one more", self.tokens[blamed], (".", ";", ","))
        self.raise_unexpected(".", ";", ",", "}")

    def _nodes_from(self, index: int) -> int:
        """How many terms stand one after the other from the token `index` on."""
        count = 0
        while self.tokens[index].key in _NODE_STARTS or self.tokens[index].text == "a":
            count += 1
            index = self._after(index)
        return count

    def _after(self, index: int) -> int:
        """The index after a token, or after the whole bracket where it opens one."""
        depth = 0
        while True:
            key = self.tokens[index].key
            if key in ("end", "error"):
                return index
            depth += (key in _CLOSING) - (key in (")", "]"))
            index += 1
            if depth <= 0:
                return index

    def _is_like_condition(self, index: int) -> bool:
        inside = self.tokens[index : self._after(index)]
        return any(token.key in _CONDITION_MARKS or token.is_word for token in inside)

    def _graph_node(self) -> PatternTerm:
        """A term, `[ … ]` or `( … )`; what stands inside goes to `triples`."""
        key = self.token.key
        if key == "var":
            return self.variable()
        if key in IRI_STARTS or (key == "<" and self._list_opening is None):
            return self.iri()
        if key in LITERAL_STARTS or self.is_at_signed_number():
            return self.literal()
        if key == "bnode":
            return self._labelled_blank_node()
        if key == "[":
            return self._blank_node_properties()
        if key == "(":
            return self._collection()
        self._no_node()

    def _no_node(self) -> NoReturn:
        opening = self._list_opening
        if opening is not None and self.token.key in _PATH_MARKS:
            self.fail("a list holds terms only", self._triple_begin or opening)
        if opening is not None and (self.token.key in _CONDITION_MARKS or self.token.is_word):
            self.fail("this ( begins no list of terms; did you mean FILTER (…)?", opening, ("FILTER",))
        self.raise_unexpected(*_EXPECTED_NODE, hint=self.term_hint())

    def _labelled_blank_node(self) -> BlankNode:
        token = self.advance()
        label = token.text[2:]
        if not self.in_template:
            home = self._label_homes.setdefault(label, self.basic_pattern)
            if home != self.basic_pattern:
                self.fail(
                    f"{token.text} was used in another basic graph pattern already; a variable can reach across",
                    token,
                )
        return BlankNode(label)

    def _blank_node_properties(self) -> BlankNode:
        self.advance()
        node = self.new_blank_node()
        if self.accept("]"):
            return node
        if not self.is_at_verb():
            self.raise_unexpected("]", "a predicate", hint=self.term_hint())
        with self.enter_brackets():
            self._predicates_and_objects(node, self.index)
        self.close("]", ";", ",")
        return node

    def _collection(self) -> NamedNode | BlankNode:
        opening = self.advance()
        if self.accept(")"):
            return RDF_NIL
        outermost = self._list_opening is None
        if outermost:
            self._list_opening = opening
        with self.enter_brackets():
            head = cell = self.new_blank_node()
            self.triples.append(TriplePattern(cell, RDF_FIRST, self._graph_node()))
            while self.token.key != ")":
                following = self.new_blank_node()
                self.triples.append(TriplePattern(cell, RDF_REST, following))
                cell = following
                self.triples.append(TriplePattern(cell, RDF_FIRST, self._graph_node()))
        self.advance()
        self.triples.append(TriplePattern(cell, RDF_REST, RDF_NIL))
        if outermost:
            self._list_opening = None
        return head
