"""Variables, IRIs, prefixed names, literals and blank nodes."""

from __future__ import annotations

import re

from headwater.language.iris import DEFAULT_BASE, is_absolute, resolve_iri
from headwater.language.lexer import RDF_12, SourceText, Token
from headwater.language.parser_base import ParserBase
from headwater.language.stream_clauses import Dialect
from headwater.terms.model import RDF, XSD, BlankNode, Literal, NamedNode, Variable

RDF_TYPE = NamedNode(RDF + "type")
RDF_FIRST = NamedNode(RDF + "first")
RDF_REST = NamedNode(RDF + "rest")
RDF_NIL = NamedNode(RDF + "nil")
XSD_BOOLEAN = NamedNode(XSD + "boolean")

IRI_STARTS = frozenset({"iri", "pname"})
NUMBER_KEYS = frozenset({"integer", "decimal", "double"})
LITERAL_STARTS = frozenset({"string", "integer", "decimal", "double", "TRUE", "FALSE"})
_NUMBER_TYPES = {kind: NamedNode(XSD + kind) for kind in NUMBER_KEYS}
_STRING_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", "\\": "\\", '"': '"', "'": "'"}
_LOCAL_ESCAPE = re.compile(r"\\(.)")


class TermParser(ParserBase):
    """Reads single terms; knows the prefixes, the base and the blank nodes of the query."""

    def __init__(self, source: SourceText, dialect: Dialect, is_streaming: bool, base: str | None) -> None:
        super().__init__(source, dialect, is_streaming)
        self.base = base
        self.prefixes: dict[str, str] = {}
        self.made_blank_nodes = 0
        self._variables: dict[str, Variable] = {}
        self._iris: dict[str, NamedNode] = {}
        self._taken_labels: frozenset[str] | None = None

    def variable(self) -> Variable:
        """`?name` or `$name`; a hyphen that the lexer let through becomes an underscore."""
        if self.token.key != "var":
            hint = f"; did you mean ?{self.token.text}?" if self.token.is_word else ""
            self.raise_unexpected("var", hint=hint)
        name = self.advance().text[1:]
        known = self._variables.get(name)
        if known is None:
            known = self._variables[name] = Variable(name.replace("-", "_"))
        return known

    def iri(self) -> NamedNode:
        """`<iri>` or a prefixed name."""
        if self.token.key not in IRI_STARTS:
            if self.token.key == "<":
                if self.text.startswith("<<", self.token.start):
                    self.fail(f"<<…>> {RDF_12}: write plain triples")
                self.fail("this < begins no IRI: an IRI has no blanks, quotes or braces and ends with >")
            word = self.token.text
            hint = f": a bare word is no IRI; did you mean <{word}> or :{word}?" if self.token.is_word else ""
            self.raise_unexpected("iri", "pname", hint=hint)
        token = self.advance()
        return self.resolve_token(token)

    def resolve_token(self, token: Token) -> NamedNode:
        """The IRI that an `iri` or `pname` token stands for."""
        known = self._iris.get(token.text)
        if known is None:
            known = self._iris[token.text] = self._named_node(token)
        return known

    def _named_node(self, token: Token) -> NamedNode:
        try:
            return NamedNode(self.iri_text(token))
        except ValueError as problem:
            self.fail(f"{token.text} is not a valid IRI: {problem}", token)

    def iri_text(self, token: Token) -> str:
        """The absolute IRI of a token, as a string."""
        if token.key == "iri":
            written = token.text[1:-1]
            return written if is_absolute(written) else resolve_iri(self.base or DEFAULT_BASE, written)
        prefix, _, local = token.text.partition(":")
        namespace = self.prefixes.get(prefix)
        if namespace is None:
            self.fail(
                f"the prefix {prefix}: is not declared; write PREFIX {prefix}: <…> before its first use",
                token,
            )
        return namespace + (_LOCAL_ESCAPE.sub(r"\1", local) if "\\" in local else local)

    def variable_or_iri(self) -> Variable | NamedNode:
        """`?name`, `<iri>` or a prefixed name."""
        if self.token.key == "var":
            return self.variable()
        if self.token.key not in IRI_STARTS and self.token.key != "<":
            self.raise_unexpected("var", "iri", "pname", hint=self.term_hint())
        return self.iri()

    def forget_iris(self) -> None:
        """Called when a prefix or the base changes: the same text may now mean another IRI."""
        self._iris.clear()

    def literal(self) -> Literal:
        """A string with its language or datatype, a number with its sign, or a boolean."""
        key = self.token.key
        if key == "string":
            return self._string_literal()
        if key in ("TRUE", "FALSE"):
            self.advance()
            return Literal(key.lower(), datatype=XSD_BOOLEAN)
        sign = ""
        if key in ("+", "-"):
            sign = self.advance().text
        token = self.expect("integer", "decimal", "double")
        return Literal(sign + token.text, datatype=_NUMBER_TYPES[token.key])

    def is_at_signed_number(self) -> bool:
        """Whether a sign stands here that touches the number after it."""
        return self.token.key in ("+", "-") and self.peek().key in NUMBER_KEYS and self.is_touching_next()

    def _string_literal(self) -> Literal:
        token = self.token
        value = self.string()
        if self.token.key == "langtag":
            tag = self.advance()
            try:
                return Literal(value, language=tag.text[1:])
            except ValueError as problem:
                self.fail(f"{tag.text} is not a valid language tag: {problem}", tag)
        if self.token.key == "^^":
            if self.peek().key in IRI_STARTS:
                self.advance()
                return Literal(value, datatype=self.iri())
            if self.dialect is not Dialect.CSPARQL:
                self.advance()
                self.raise_unexpected("iri", "pname", hint=f" as the datatype of {token.text}")
        return Literal(value)

    def string(self) -> str:
        """The characters of a string, escapes resolved."""
        token = self.expect("string")
        written = token.text
        if written[:2] == "``" or (written[:2] == "''" and written[:3] != "'''" and len(written) > 2):
            return written[2:-2]
        width = 3 if written[:3] in ('"""', "'''") else 1
        inner = written[width:-width]
        if "\\" not in inner:
            return inner
        for escape in _STRING_ESCAPE.finditer(inner):
            if escape[1] not in _ESCAPES:
                self.fail(f"{escape[0]} is no escape of SPARQL", token.start + width + escape.start())
        return _STRING_ESCAPE.sub(lambda escape: _ESCAPES[escape[1]], inner)

    def new_blank_node(self) -> BlankNode:
        """A blank node for `[]` or a list cell, with a label that the text does not use."""
        if self._taken_labels is None:
            self._taken_labels = frozenset(token.text[2:] for token in self.tokens if token.key == "bnode")
        while True:
            label = f"b{self.made_blank_nodes}"
            self.made_blank_nodes += 1
            if label not in self._taken_labels:
                return BlankNode(label)

    def term_hint(self) -> str:
        """What to write in place of a bare word where a term should stand."""
        if not self.token.is_word:
            return ""
        return f": a bare word is no term; did you mean ?{self.token.text}, :{self.token.text} or a string?"
