"""The whole query: prologue, registration, the four forms, solution modifiers."""

from __future__ import annotations

from dataclasses import replace

from headwater.language.expressions import Expression, VariableReference
from headwater.language.iris import DEFAULT_BASE, resolve_iri
from headwater.language.lexer import SourceText, Token
from headwater.language.parser_base import suggest_keyword
from headwater.language.parser_streams import OPERATORS, StreamClauseParser
from headwater.language.parser_terms import IRI_STARTS
from headwater.language.parser_triples import ITEM_KEYWORDS
from headwater.language.patterns import GroupPattern, InlineData, TriplesBlock
from headwater.language.query import (
    AskQuery,
    ConstructQuery,
    DatasetClause,
    DescribeQuery,
    GroupKey,
    Modifiers,
    OrderKey,
    ParsedQuery,
    Projection,
    QueryForm,
    SelectQuery,
)
from headwater.language.scopes import variables_in_scope
from headwater.language.stream_clauses import AggregateClause, Dialect, StreamOperator
from headwater.terms.model import NamedNode, Variable

_FORMS = ("SELECT", "CONSTRUCT", "DESCRIBE", "ASK")
_AFTER_WHERE = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES")
_CLAUSES = frozenset({*_AFTER_WHERE, "WHERE", "FROM", "AGGREGATE"})
_OPERATOR_SYMBOLS = frozenset({"+", "-", "*", "/", "=", "!=", "<", ">", "<=", ">=", "&&", "||", "AS"})


class QueryParser(StreamClauseParser):
    """Reads one query from beginning to end."""

    def __init__(self, source: SourceText, dialect: Dialect, is_streaming: bool, base: str | None) -> None:
        super().__init__(source, dialect, is_streaming, base)
        self._operator: StreamOperator | None = None
        self._dataset: list[DatasetClause] = []
        self._aggregates: list[AggregateClause] = []
        self._may_follow: tuple[str, ...] = _AFTER_WHERE

    def query(self) -> ParsedQuery:
        """The whole text."""
        self._prologue()
        registration = None
        if self.token.key == "REGISTER":
            registration, self._operator, prefixed = self.registration()
            self._prologue()
            if prefixed is not None:
                registration = replace(registration, name=self.resolve_token(prefixed).value)
        if self.token.key == "FROM" and not self.is_streaming:
            self.raise_unexpected(*_FORMS)
        self._add_dataset_clauses()
        form_token = self.token
        form = self._form(registered=registration is not None)
        if self.token.key in _FORMS:
            self.fail(f"a query has one form, but {self.token.text} follows", form_token)
        if self.token.key != "end":
            self.raise_unexpected(*self._may_follow, "end")
        return ParsedQuery(
            form,
            tuple(self._dataset),
            tuple(self._aggregates),
            registration,
            self._operator,
            self.dialect,
            self.base,
            tuple(self.prefixes.items()),
            self.text,
        )

    def _prologue(self) -> None:
        while True:
            if self.accept("BASE"):
                token = self.expect("iri")
                self.base = resolve_iri(self.base or DEFAULT_BASE, token.text[1:-1])
            elif self.accept("PREFIX"):
                token = self.token
                if token.key != "pname":
                    self.raise_unexpected("a prefix such as ex:")
                if not token.text.endswith(":") or token.text.count(":") > 1:
                    self.fail(f"a declared prefix ends with its colon, {token.text} does not", token)
                self.advance()
                iri = self.expect("iri")
                self.prefixes[token.text[:-1]] = self.resolve_token(iri).value
            else:
                return
            self.forget_iris()

    def _form(self, registered: bool) -> QueryForm:
        key = self.token.key
        if key == "SELECT":
            return self._select()
        if key == "CONSTRUCT":
            return self._construct()
        if key == "DESCRIBE":
            return self._describe()
        if key == "ASK":
            keyword = self.advance()
            self._add_dataset_clauses()
            where = self._where()
            if self.token.key in ("FROM", "WHERE", "{"):
                self.fail("ASK has one pattern only; did you mean CONSTRUCT?", keyword, ("CONSTRUCT",))
            return AskQuery(where, self._end_of_form(where), self._trailing_values())
        if self._dataset:
            self.fail("a query begins with SELECT, CONSTRUCT, DESCRIBE or ASK", self._dataset[0].at, _FORMS)
        before = () if registered else ("PREFIX", "BASE", "REGISTER")
        self.raise_unexpected(*before, *_FORMS)

    def _stream_operator(self) -> None:
        token = self.token
        if token.key in OPERATORS:
            if self._operator not in (None, OPERATORS[token.key]):
                self.fail(f"{token.text} contradicts the operator after REGISTER")
            self._operator = OPERATORS[token.key]
            self.advance()

    def _add_dataset_clauses(self) -> None:
        self._dataset += self.dataset_clauses()

    def _where(self) -> GroupPattern:
        if not self.accept("WHERE") and self.token.key != "{":
            self.raise_unexpected("WHERE", "{", *(("FROM",) if self.depth == 0 else ()))
        return self.group_pattern()

    def _end_of_form(self, where: GroupPattern) -> Modifiers:
        """AGGREGATE clauses and solution modifiers of the outermost query."""
        if self.token.key == "AGGREGATE":
            self.aggregate_clauses(variables_in_scope(where), self._aggregates)
        modifiers = self._modifiers()
        if self.token.key == "AGGREGATE":
            self.aggregate_clauses(variables_in_scope(where), self._aggregates)
        return modifiers

    def _trailing_values(self) -> InlineData | None:
        return self.inline_data() if self.token.key == "VALUES" else None

    def _select(self) -> SelectQuery:
        start = self.advance()
        self._stream_operator()
        if self.token.key == "{" or (self.token.key in IRI_STARTS and self.peek().key != "("):
            self.fail("SELECT names no variables; did you mean SELECT * or CONSTRUCT?", start, ("a variable", "*"))
        distinct, reduced = self._distinct_or_reduced()
        projections = self._projections()
        self._add_dataset_clauses()
        where = self._where()
        modifiers = self._end_of_form(where)
        return SelectQuery(projections, where, modifiers, distinct, reduced, self._trailing_values(), at=start.start)

    def sub_select(self) -> SelectQuery:
        """`SELECT …` inside braces."""
        start = self.advance()
        distinct, reduced = self._distinct_or_reduced()
        projections = self._projections()
        if self.token.key not in ("{", "WHERE") and not suggest_keyword(self.token, ("WHERE",)):
            self.fail("this SELECT has no WHERE { … }", start, ("WHERE", "{"))
        where = self._where()
        modifiers = self._modifiers()
        return SelectQuery(projections, where, modifiers, distinct, reduced, self._trailing_values(), at=start.start)

    def _distinct_or_reduced(self) -> tuple[bool, bool]:
        distinct = self.accept("DISTINCT") is not None
        return distinct, not distinct and self.accept("REDUCED") is not None

    def _projections(self) -> tuple[Projection, ...] | None:
        if self.accept("*"):
            return None
        projections = [self._projection()]
        while True:
            comma = self.accept(",") if self.is_streaming else None
            if comma is None and self.token.key not in ("var", "(") and not self._is_at_bare_expression():
                return tuple(projections)
            projections.append(self._projection())

    def _is_at_bare_expression(self) -> bool:
        """Whether an expression without brackets, such as `COUNT(?x) AS ?y`, begins here."""
        token = self.token
        named = token.key in IRI_STARTS or (token.is_word and token.key not in _CLAUSES)
        return named and self.peek().key == "("

    def _projection(self) -> Projection:
        """`?v`, `(expression AS ?v)` or, in a query over streams, `expression AS ?v`."""
        start = self.token
        if start.key == "var" and not (self.is_streaming and self.peek().key in _OPERATOR_SYMBOLS):
            return Projection(self.variable(), at=start.start)
        if start.key == "(" and (not self.is_streaming or self.has_as(self.index)):
            return self._named_expression()
        if start.key not in ("var", "(") and not self._is_at_bare_expression():
            self.raise_unexpected(
                "var", "*", "(", *(() if self.depth else ("DISTINCT",)), hint=self.term_hint_for_select()
            )
        if not self.is_streaming:
            self.fail("an expression needs brackets and a name: (expression AS ?name)", start, ("(",))
        expression = self.aggregate_expression()
        if self.token.key != "AS":
            self.fail("an expression in SELECT needs a name: expression AS ?name", start, ("AS",))
        self.advance()
        variable = self.variable()
        if self.token.key == ")":
            self.fail("there is a ) after this expression but no ( before it", start)
        return Projection(variable, expression, at=start.start)

    def _named_expression(self) -> Projection:
        """`(expression AS ?v)`."""
        start = self.advance()
        expression = self.aggregate_expression()
        if self.token.key == ")":
            self.fail("an expression in SELECT needs a name: (expression AS ?name)", start, ("AS",))
        self.expect("AS")
        variable = self.variable()
        self.expect(")")
        return Projection(variable, expression, at=start.start)

    def term_hint_for_select(self) -> str:
        """No hint where SELECT is followed by a keyword, because then the variables are missing altogether."""
        return "" if self.token.key in ("WHERE", "FROM", "DISTINCT", "REDUCED") else self.term_hint()

    def _construct(self) -> ConstructQuery:
        keyword = self.advance()
        self._stream_operator()
        if self.token.key == "var" or self.token.key in IRI_STARTS:
            self.fail("CONSTRUCT takes a template in braces; did you mean SELECT?", keyword, ("{", "SELECT"))
        if self.token.key != "{":
            self._add_dataset_clauses()
            if self.token.key != "WHERE":
                self.raise_unexpected("{", "WHERE", "FROM")
            self.advance()
            self._check_short_form(keyword)
            template = self.triples_template()
            where = GroupPattern((TriplesBlock(template),) if template else ())
        else:
            template = self.triples_template()
            self._add_dataset_clauses()
            if self.token.key == "end":
                self.fail("this CONSTRUCT has no WHERE; for its short form write CONSTRUCT WHERE { … }", keyword)
            where = self._where()
        return ConstructQuery(template, where, self._end_of_form(where), self._trailing_values())

    def _check_short_form(self, keyword: Token) -> None:
        """Points at CONSTRUCT where its short form is used for a pattern that is more than triples."""
        depth = 0
        for index in range(self.index, len(self.tokens)):
            token = self.tokens[index]
            depth += (token.key == "{") - (token.key == "}")
            if depth > 1 or (depth == 1 and token.key in ITEM_KEYWORDS):
                self.fail("CONSTRUCT without a template takes triples only, no groups and filters", keyword, ("{",))
            if depth <= 0:
                return

    def _describe(self) -> DescribeQuery:
        keyword = self.advance()
        self._stream_operator()
        terms: list[NamedNode | Variable] | None = None
        if not self.accept("*"):
            if self.token.key != "var" and self.token.key not in IRI_STARTS:
                self.raise_unexpected("var", "iri", "pname", "*", hint=self.term_hint_for_select())
            terms = [self.variable_or_iri()]
            while self.token.key == "var" or self.token.key in IRI_STARTS:
                terms.append(self.variable_or_iri())
            if self.token.key in ("(", "AS") or self._is_at_bare_expression():
                self.fail("DESCRIBE takes variables and IRIs only; did you mean SELECT?", keyword, ("SELECT",))
        self._add_dataset_clauses()
        where = self._where() if self.token.key in ("WHERE", "{") else None
        modifiers = self._end_of_form(where if where is not None else GroupPattern(()))
        described = None if terms is None else tuple(terms)
        return DescribeQuery(described, where, modifiers, self._trailing_values())

    def _modifiers(self) -> Modifiers:
        self._may_follow = _AFTER_WHERE
        if self.token.key not in _AFTER_WHERE:
            return Modifiers()
        group_by: tuple[GroupKey, ...] = ()
        having: list[Expression] = []
        order_by: tuple[OrderKey, ...] = ()
        if self.accept("GROUP"):
            self.expect("BY")
            group_by = self._group_keys()
            self._may_follow = _AFTER_WHERE[1:]
        if self.accept("HAVING"):
            self.aggregates_allowed = True
            having.append(self.constraint("HAVING"))
            while self._is_at_condition():
                having.append(self.constraint("HAVING"))
            self.aggregates_allowed = False
            self._may_follow = _AFTER_WHERE[2:]
        if self.token.key == "ORDER":
            order_by = self._order_by()
            self._may_follow = _AFTER_WHERE[3:]
        limit, offset = self._limits()
        return Modifiers(group_by, tuple(having), order_by, limit, offset)

    def _order_by(self) -> tuple[OrderKey, ...]:
        keyword = self.advance()
        self.expect("BY")
        self.aggregates_allowed = True
        keys = [self._order_key()]
        while self.token.key in ("var", "ASC", "DESC") or self._is_at_condition():
            keys.append(self._order_key())
        self.aggregates_allowed = False
        if self.token.key in ("GROUP", "HAVING"):
            self.fail(f"{self.token.text} belongs before ORDER BY", keyword)
        return tuple(keys)

    def _is_at_condition(self) -> bool:
        """Whether a bracketed expression or a function call begins here."""
        return self.token.key == "(" or self._is_at_bare_expression() or self.token.key in ("NOT", "EXISTS")

    def _group_keys(self) -> tuple[GroupKey, ...]:
        keys = [self._group_key()]
        while self.token.key == "var" or self._is_at_condition():
            keys.append(self._group_key())
        return tuple(keys)

    def _group_key(self) -> GroupKey:
        start = self.token
        if start.key == "var":
            return GroupKey(VariableReference(self.variable()), at=start.start)
        if start.key != "(":
            return GroupKey(self.constraint("GROUP BY"), at=start.start)
        self.advance()
        with self.enter_brackets():
            expression = self.expression()
        variable = self.variable() if self.accept("AS") else None
        self.close(")", *(("AS",) if variable is None else ()))
        return GroupKey(expression, variable, at=start.start)

    def _order_key(self) -> OrderKey:
        if self.token.key in ("ASC", "DESC"):
            descending = self.advance().key == "DESC"
            return OrderKey(self.bracketed_expression(), descending)
        if self.token.key == "var":
            return OrderKey(VariableReference(self.variable()))
        return OrderKey(self.constraint("ORDER BY"))

    def _limits(self) -> tuple[int | None, int]:
        limit: int | None = None
        offset: int | None = None
        while True:
            if limit is None and self.accept("LIMIT"):
                limit = self.integer()
            elif offset is None and self.accept("OFFSET"):
                offset = self.integer()
            else:
                if limit is not None or offset is not None:
                    left = (("LIMIT",) if limit is None else ()) + (("OFFSET",) if offset is None else ())
                    self._may_follow = (*left, "VALUES")
                return limit, offset or 0
