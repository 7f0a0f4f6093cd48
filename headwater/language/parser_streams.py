"""The stream clauses around a query: REGISTER, FROM STREAM, FROM NAMED WINDOW, AGGREGATE."""

from __future__ import annotations

import re
from dataclasses import replace

from headwater.language.builtins import STREAM_AGGREGATES
from headwater.language.lexer import Token
from headwater.language.parser_patterns import PatternParser
from headwater.language.parser_terms import IRI_STARTS
from headwater.language.parser_windows import WINDOW_STARTS
from headwater.language.query import DatasetClause
from headwater.language.stream_clauses import (
    AggregateClause,
    FromGraph,
    FromStream,
    FromWindow,
    Registration,
    RegistrationKind,
    StreamOperator,
    WindowSpec,
)
from headwater.terms.model import NamedNode, Variable
from headwater.terms.redaction import SECRET_IN_QUERY, has_user_info

OPERATORS = {operator.name: operator for operator in StreamOperator}
_REGISTERED = ("QUERY", "STREAM", *OPERATORS)
_NAME = re.compile(r"\w(?:[\w.\-]*\w)?")


class StreamClauseParser(PatternParser):
    """Reads what the dialects add around the pattern of a query."""

    def registration(self) -> tuple[Registration, StreamOperator | None, Token | None]:
        """`REGISTER kind name [COMPUTED EVERY d] AS`.

        A prefixed name is returned as its token, because the prefixes may be declared after AS.
        """
        start = self.expect("REGISTER").start
        kind = self.expect(*_REGISTERED)
        name, prefixed = self._registered_name(kind)
        every = None
        if self.accept("COMPUTED"):
            self.expect("EVERY")
            every = self.duration("COMPUTED EVERY")
        self.close("AS", *(() if every is not None else ("COMPUTED",)))
        register_as = RegistrationKind.QUERY if kind.key == "QUERY" else RegistrationKind.STREAM
        return Registration(register_as, name, every, at=start), OPERATORS.get(kind.key), prefixed

    def _registered_name(self, kind: Token) -> tuple[str, Token | None]:
        token = self.token
        if token.key == "string":
            return self.string(), None
        if token.key == "iri":
            return self.iri().value, None
        if token.key == "pname":
            return "", self.advance()
        match = _NAME.match(self.text, token.start) if token.is_word or token.key == "integer" else None
        if match is None or (token.key in ("AS", "COMPUTED") and self.peek().key not in ("AS", "COMPUTED")):
            self.fail(f"REGISTER {kind.text} needs a name", kind, ("a name", "an IRI"))
        self.skip_to(match.end())
        return match[0], None

    def dataset_clauses(self) -> list[DatasetClause]:
        """All FROM clauses that stand here."""
        clauses: list[DatasetClause] = []
        while self.token.key == "FROM":
            clauses.append(self._dataset_clause())
        return clauses

    def _dataset_clause(self) -> DatasetClause:
        at = self.advance().start
        named = self.accept("NAMED") is not None
        if self.token.key == "STREAM":
            self.advance()
            stream, window = self._stream_and_window()
            return FromStream(stream, window, named, at=at)
        if self.token.key == "WINDOW":
            if not named:
                self.fail("a window is always named: write FROM NAMED WINDOW", None, ("NAMED",))
            return self._window_clause(at)
        self.accept("GRAPH")
        if self.token.key not in IRI_STARTS and self.token.key != "<":
            self.raise_unexpected(
                "iri", "pname", *(() if named else ("NAMED",)), "STREAM", *(("WINDOW",) if named else ())
            )
        token = self.token
        graph = self.iri()
        if self.token.key in ("[", "ON"):
            meant = "STREAM" if self.token.key == "[" else "NAMED WINDOW"
            self.fail(f"a graph has no window; did you mean FROM {meant}?", token, (meant,))
        return FromGraph(graph, named, at=at)

    def _window_clause(self, at: int) -> FromWindow:
        """`WINDOW name ON [STREAM] s [window]` or `WINDOW ON [STREAM] s [window] AS name`."""
        self.advance()
        name: NamedNode | None = None
        token = self.token
        if token.key != "ON":
            name = self.iri()
            if self.token.key == "[":
                self.fail("this window is on no stream: write WINDOW :name ON <stream> […]", token, ("ON",))
        on = self.expect("ON")
        self.accept("STREAM")
        stream, window = self._stream_and_window()
        if name is not None and self.token.key == "AS":
            self.fail("this window has two names, before ON and after AS", token)
        if name is None:
            if not self.accept("AS"):
                self.fail("this window has no name: write WINDOW :name ON … or … AS :name", on, ("an IRI",))
            name = self.iri()
        return FromWindow(name, stream, window, at=at)

    def _stream_and_window(self) -> tuple[NamedNode, WindowSpec]:
        token = self.token
        place = self.token
        stream = self.iri()
        if has_user_info(stream.value):
            self.fail(SECRET_IN_QUERY, place)
        if self.token.key == "{" or (self.token.is_word and self.token.key not in WINDOW_STARTS):
            self.fail("this stream has no window: write [RANGE 10s STEP 1s] or the like after it", token, ("[",))
        return stream, self.window()

    def aggregate_clauses(self, visible: frozenset[Variable], earlier: list[AggregateClause]) -> None:
        """All AGGREGATE clauses that stand here, added to `earlier`; `visible` are the variables of WHERE."""
        while self.accept("AGGREGATE"):
            self.expect("{")
            if self.token.key != "(":
                self.raise_unexpected("(")
            while self.token.key == "(":
                earlier.append(self._aggregate_tuple(visible, earlier))
                if self.accept("FILTER"):
                    condition = self.constraint("FILTER")
                    earlier[-1] = replace(earlier[-1], condition=condition)
                self.accept(".")
            self.close("}", "FILTER", "(")

    def _aggregate_tuple(self, visible: frozenset[Variable], earlier: list[AggregateClause]) -> AggregateClause:
        """`(?new, FUNCTION(?v), {?group …})` of AGGREGATE (C-SPARQL)."""
        opening = self.advance()
        at = self.token
        variable = self.variable()
        if self.token.key != ",":
            if earlier and not self.token.is_word:
                self.fail("a condition needs FILTER before this (", opening, ("FILTER",))
            self.raise_unexpected(",")
        if variable in visible or any(variable == clause.variable for clause in earlier):
            self.fail(f"{at.text} is not new: AGGREGATE adds a variable that neither WHERE nor another one has", at)
        self.advance()
        function, argument, distinct = self._aggregate_function(visible)
        self.expect(",")
        group = self._aggregate_group(visible)
        self.expect(")")
        return AggregateClause(variable, function, argument, group, distinct=distinct, at=at.start)

    def _aggregate_function(self, visible: frozenset[Variable]) -> tuple[str, Variable | None, bool]:
        """The function of an AGGREGATE tuple, its argument (None: `*`), and whether it is DISTINCT."""
        token = self.token
        if token.key not in STREAM_AGGREGATES:
            self.raise_unexpected(*STREAM_AGGREGATES)
        self.advance()
        function = STREAM_AGGREGATES[token.key]
        argument: Variable | None = None
        distinct = False
        if self.accept("("):
            distinct = self.accept("DISTINCT") is not None
            if not self.accept("*") and (self.token.key != ")" or distinct):
                argument = self._variable_of_where(visible)
            self.expect(")")
        if argument is None and function != "COUNT":
            self.fail(f"{token.text} needs a variable of WHERE: {token.text}(?v)", token)
        return function, argument, distinct

    def _aggregate_group(self, visible: frozenset[Variable]) -> tuple[Variable, ...]:
        """The variables by which an AGGREGATE tuple groups: `?v` or `{?v, ?w}`, all `visible` in WHERE."""
        if not self.accept("{"):
            if self.token.key != "var":
                self.raise_unexpected("{", "var")
            return (self._variable_of_where(visible),)
        group = [self._variable_of_where(visible)]
        while self.accept(",") or self.token.key == "var":
            group.append(self._variable_of_where(visible))
        self.close("}", ",")
        return tuple(group)

    def _variable_of_where(self, visible: frozenset[Variable]) -> Variable:
        token = self.token
        variable = self.variable()
        if variable not in visible:
            self.fail(f"{token.text} does not occur in WHERE", token)
        return variable
