"""Group graph patterns: everything that may stand between braces, CQELS-QL's STREAM and RSP-QL's WINDOW included."""

from __future__ import annotations

from abc import abstractmethod
from typing import NoReturn

from headwater.language.lexer import Token
from headwater.language.parser_base import suggest_keyword
from headwater.language.parser_services import ServiceParser
from headwater.language.parser_terms import IRI_STARTS, LITERAL_STARTS
from headwater.language.parser_triples import ITEM_KEYWORDS
from headwater.language.patterns import (
    BindItem,
    FilterItem,
    GraphPattern,
    GroupItem,
    GroupPattern,
    InlineData,
    MinusPattern,
    OptionalPattern,
    StreamPattern,
    SubSelect,
    TriplePattern,
    TriplesBlock,
    UnionPattern,
    WindowPattern,
)
from headwater.language.query import SelectQuery
from headwater.terms.model import Literal, NamedNode, Variable

_MISPLACED = {
    "GROUP": "GROUP BY belongs after the closing }",
    "GROUPBY": "GROUP BY is two words and belongs after the closing }",
    "ORDER": "ORDER BY belongs after the closing }",
    "ORDERBY": "ORDER BY is two words and belongs after the closing }",
    "HAVING": "HAVING belongs after the closing }",
    "LIMIT": "LIMIT belongs after the closing }",
    "OFFSET": "OFFSET belongs after the closing }",
    "AGGREGATE": "AGGREGATE belongs after the closing }",
    "FROM": "FROM belongs before WHERE",
    "SELECT": "a sub-query needs braces of its own: { SELECT … }",
    "CONSTRUCT": "only SELECT can be a sub-query",
}


class PatternParser(ServiceParser):
    """Reads group graph patterns."""

    @abstractmethod
    def sub_select(self) -> SelectQuery:
        """`SELECT …` inside braces."""

    def group_pattern(self) -> GroupPattern:
        """`{ … }`."""
        self.expect("{")
        self.new_basic_pattern()
        with self.enter_brackets():
            if self.token.key == "SELECT":
                around, self.triples = self.triples, []
                items: tuple[GroupItem, ...] = (SubSelect(self.sub_select()),)
                self.triples = around
                self.expect("}")
            else:
                items = self._items()
        self.new_basic_pattern()
        return GroupPattern(items)

    def _items(self) -> tuple[GroupItem, ...]:
        """The items of a group and its closing brace."""
        items: list[GroupItem] = []
        token = self.token
        while True:
            previous, token = token, self.token
            if token.key == "}":
                self.advance()
                return tuple(items)
            if token.key == "FILTER":
                items.append(self._filter())
                self.accept(".")
            elif self.is_at_node():
                items.append(self._triples_block())
            else:
                if token.key == "UNION" and previous.key in (
                    "OPTIONAL",
                    "MINUS",
                    "GRAPH",
                    "SERVICE",
                    "STREAM",
                    "WINDOW",
                ):
                    self.fail(f"{previous.text} {{ … }} is no branch of UNION without braces around it", previous)
                items.append(self._other_item(token))
                self.new_basic_pattern()
                self.accept(".")

    def _triples_block(self) -> TriplesBlock:
        around: list[TriplePattern] = self.triples
        self.triples = []
        self.triples_of_subject()
        while self.accept("."):
            if not self.is_at_node():
                break
            self.triples_of_subject()
        read, self.triples = self.triples, around
        return TriplesBlock(tuple(read))

    def _other_item(self, token: Token) -> GroupItem:
        """An item of a group that is neither triples nor a filter."""
        key = token.key
        if key == "{":
            return self._group_or_union()
        if key == "OPTIONAL":
            self.advance()
            return OptionalPattern(self.group_pattern())
        if key == "GRAPH":
            return GraphPattern(self.group_name(), self.group_pattern(), at=token.start)
        if key == "STREAM":
            return self._stream()
        if key == "WINDOW":
            return WindowPattern(self.group_name(), self.group_pattern(), at=token.start)
        if key == "BIND":
            return self._bind()
        if key == "VALUES":
            return self.inline_data()
        if key == "MINUS":
            self.advance()
            return MinusPattern(self.group_pattern())
        if key == "SERVICE":
            return self.service(token)
        self._no_item()

    def _no_item(self) -> NoReturn:
        token = self.token
        if token.key in _MISPLACED:
            self.fail(f"{token.text} cannot stand here: {_MISPLACED[token.key]}")
        if token.key == "UNION":
            self.fail("UNION stands between two groups: { … } UNION { … }")
        hint = suggest_keyword(token, ITEM_KEYWORDS) or self.term_hint()
        self.raise_unexpected("a triple", *ITEM_KEYWORDS, "{", "}", hint=hint)

    def _group_or_union(self) -> GroupItem:
        first = self.group_pattern()
        if self.token.key != "UNION":
            return first
        branches = [first]
        while self.accept("UNION"):
            branches.append(self.group_pattern())
        return UnionPattern(tuple(branches))

    def _filter(self) -> FilterItem:
        basic_pattern = self.basic_pattern
        keyword = self.advance()
        if self.token.key == "(" and self.has_as(self.index):
            self.fail("FILTER names no value; did you mean BIND(… AS ?name)?", keyword, ("BIND",))
        condition = self.constraint("FILTER")
        # A FILTER does not end the basic graph pattern around it, even if it has a pattern of its own.
        self.basic_pattern = basic_pattern
        return FilterItem(condition)

    def has_as(self, index: int) -> bool:
        """Whether the bracket that opens here holds `… AS ?v` at its outermost level."""
        depth = 0
        for place in range(index, len(self.tokens)):
            key = self.tokens[place].key
            if key in ("(", "{", "["):
                depth += 1
            elif key in (")", "}", "]"):
                depth -= 1
                if depth == 0:
                    return False
            elif key == "AS" and depth == 1:
                return True
        return False

    def _bind(self) -> BindItem:
        keyword = self.advance()
        self.expect("(")
        expression = self.expression()
        if self.token.key == ")":
            self.fail("BIND needs a name for its value: BIND(expression AS ?name)", keyword, ("AS",))
        self.expect("AS")
        at = self.token.start
        variable = self.variable()
        self.expect(")")
        return BindItem(expression, variable, at=at)

    def _stream(self) -> StreamPattern:
        """`STREAM name [window] {…}`, or with the window first, as the grammar of the CQELS paper has it."""
        keyword = self.advance()
        if self.token.key == "[":
            opening = self.token
            window = self.window()
            if self.token.key != "var" and self.token.key not in IRI_STARTS:
                self.fail("STREAM has no name: write STREAM <iri> [window] { … }", opening, ("an IRI", "a variable"))
            name = self.variable_or_iri()
        else:
            name_token = self.token
            name = self.variable_or_iri()
            if self.token.key == "{":
                self.fail(
                    "this stream has no window: write [RANGE 10s], [TRIPLES 100], [NOW] or [ALL] after its name",
                    name_token,
                    ("[",),
                )
            window = self.window()
        return StreamPattern(name, window, self.group_pattern(), at=keyword.start)

    def inline_data(self) -> InlineData:
        """`VALUES …`."""
        keyword = self.advance()
        if self.token.key == "var":
            variables = (self.variable(),)
            self.expect("{")
            if self.token.key in ("var", "{"):
                self.fail("VALUES lists terms, no patterns", keyword)
            rows = []
            while self.token.key != "}":
                rows.append((self._data_value(),))
            self.advance()
            return InlineData(variables, tuple(rows))
        opening = self.expect("(", "var")
        names: list[Variable] = []
        while self.token.key != ")":
            if self.token.key != "var":
                self.fail("between VALUES and its rows stand variables", opening, ("a variable",))
            if any(self.token.text[1:] == name.value for name in names):
                self.fail(f"{self.token.text} stands here twice")
            names.append(self.variable())
        self.advance()
        return InlineData(tuple(names), self._data_rows(opening, len(names)))

    def _data_rows(self, heading: Token, width: int) -> tuple[tuple[NamedNode | Literal | None, ...], ...]:
        """The rows of VALUES; each must have `width` values."""
        self.expect("{")
        rows: list[tuple[NamedNode | Literal | None, ...]] = []
        openings: list[Token] = []
        while self.token.key != "}":
            openings.append(self.expect("("))
            values = []
            while self.token.key != ")":
                values.append(self._data_value())
            self.advance()
            rows.append(tuple(values))
        self.advance()
        if rows and len(rows[0]) != width and len({len(row) for row in rows}) == 1:
            self.fail(f"every row has {len(rows[0])} values, but there are {width} variables", heading)
        for opening, row in zip(openings, rows, strict=True):
            if len(row) != width:
                self.fail(f"this row has {len(row)} values for {width} variables", opening)
        return tuple(rows)

    def _data_value(self) -> NamedNode | Literal | None:
        key = self.token.key
        if key == "UNDEF":
            self.advance()
            return None
        if key in IRI_STARTS:
            return self.iri()
        if key in LITERAL_STARTS or self.is_at_signed_number():
            return self.literal()
        self.raise_unexpected("iri", "string", "integer", "UNDEF", hint=self.term_hint())
