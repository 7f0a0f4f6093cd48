"""Property paths (SPARQL 1.1, section 9), in the places where a predicate may stand."""

from __future__ import annotations

from headwater.language.expressions import combine_chain
from headwater.language.parser_expressions import ExpressionParser
from headwater.language.parser_terms import IRI_STARTS, NUMBER_KEYS, RDF_TYPE
from headwater.language.patterns import (
    Alternative,
    Inverse,
    Link,
    NegatedSet,
    OneOrMore,
    Path,
    Sequence,
    ZeroOrMore,
    ZeroOrOne,
)
from headwater.terms.model import NamedNode, Variable

PATH_STARTS = frozenset({"iri", "pname", "^", "!", "("})
VERB_KEYS = PATH_STARTS | {"var"}


class PathParser(ExpressionParser):
    """Reads predicates: a variable, an IRI, `a` or a path."""

    def is_at_verb(self) -> bool:
        """Whether a predicate can begin here."""
        return self.token.key in VERB_KEYS or self.token.text == "a"

    def verb(self) -> NamedNode | Variable | Path:
        """The predicate of a triple pattern; a path of a single IRI is that IRI."""
        if self.token.key == "var":
            return self.variable()
        path = self._alternative()
        return path.predicate if isinstance(path, Link) else path

    def simple_verb(self) -> NamedNode | Variable:
        """The predicate of a template's triple, where paths cannot stand."""
        if self.token.text == "a":
            self.advance()
            return RDF_TYPE
        if not self.is_at_verb():
            self.raise_unexpected("var", "iri", "pname", "a", hint=self.term_hint())
        return self.variable_or_iri()

    def _alternative(self) -> Path:
        paths = [self._sequence()]
        while self.accept("|"):
            paths.append(self._sequence())
        return combine_chain(Alternative, paths)

    def _sequence(self) -> Path:
        paths = [self._step()]
        while self.accept("/"):
            paths.append(self._step())
        return combine_chain(Sequence, paths)

    def _step(self) -> Path:
        if self.accept("^"):
            return Inverse(self._path_with_repetition())
        return self._path_with_repetition()

    def _path_with_repetition(self) -> Path:
        path = self._primary_path()
        key = self.token.key
        if key == "*":
            self.advance()
            return ZeroOrMore(path)
        if key == "?":
            self.advance()
            return ZeroOrOne(path)
        if key == "+" and not (self.peek().key in NUMBER_KEYS and self.is_touching_next()):
            self.advance()
            return OneOrMore(path)
        return path

    def _primary_path(self) -> Path:
        key = self.token.key
        if key in IRI_STARTS or key == "<":
            return Link(self.iri())
        if self.token.text == "a":
            self.advance()
            return Link(RDF_TYPE)
        if key == "!":
            self.advance()
            return self._negated_set()
        if key == "(":
            self.advance()
            with self.enter_brackets():
                path = self._alternative()
            self.expect(")")
            return path
        self.raise_unexpected("var", "iri", "pname", "a", "^", "!", "(", hint=self.term_hint())

    def _negated_set(self) -> NegatedSet:
        forward: list[NamedNode] = []
        inverse: list[NamedNode] = []
        if not self.accept("("):
            self._negated_member(forward, inverse)
        elif not self.accept(")"):
            self._negated_member(forward, inverse)
            while self.accept("|"):
                self._negated_member(forward, inverse)
            self.close(")", "|")
        return NegatedSet(tuple(forward), tuple(inverse))

    def _negated_member(self, forward: list[NamedNode], inverse: list[NamedNode]) -> None:
        chosen = inverse if self.accept("^") else forward
        if self.token.text == "a":
            self.advance()
            chosen.append(RDF_TYPE)
        else:
            chosen.append(self.iri())
