"""Expressions: operators by precedence, functions with their argument counts, aggregates, EXISTS.

Beyond SPARQL 1.1: `AVERAGE` for `AVG`, `timestamp(?v)` and `timestamp(?v, <stream>)`, and in C-SPARQL `^^` between
two conditions for `&&`, as its paper prints it, wherever no datatype follows.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import NoReturn

from headwater.language.builtins import AGGREGATES, ARGUMENT_COUNTS, SAME_FUNCTION, describe_count
from headwater.language.expressions import (
    Aggregate,
    Constant,
    Exists,
    Expression,
    FunctionCall,
    Operation,
    Timestamp,
    VariableReference,
    combine_chain,
)
from headwater.language.lexer import RDF_12, SourceText, Token
from headwater.language.parser_terms import IRI_STARTS, LITERAL_STARTS, TermParser
from headwater.language.stream_clauses import Dialect
from headwater.terms.model import NamedNode
from headwater.terms.own_functions import own_aggregate

_OR, _AND, _COMPARE, _ADD, _MULTIPLY = 1, 2, 3, 4, 5
_PRECEDENCE = {
    "||": _OR,
    "&&": _AND,
    "^^": _AND,
    **dict.fromkeys(("=", "!=", "<", ">", "<=", ">=", "IN", "NOT"), _COMPARE),
    **dict.fromkeys("+-", _ADD),
    **dict.fromkeys("*/", _MULTIPLY),
}
_EXPRESSION_ENDS = frozenset({")", "]", "}", ",", ";", ".", "AS"})
_RDF_12_FUNCTIONS = frozenset(
    {"TRIPLE", "ISTRIPLE", "SUBJECT", "PREDICATE", "OBJECT", "LANGDIR", "HASLANG", "HASLANGDIR", "STRLANGDIR"}
)
_EXPRESSION_STARTS = ("var", "iri", "pname", "string", "integer", "(", "a function")


class ExpressionParser(TermParser):
    """Reads expressions; `aggregates_allowed` says whether the clause around them may hold aggregates."""

    def __init__(self, source: SourceText, dialect: Dialect, is_streaming: bool, base: str | None) -> None:
        super().__init__(source, dialect, is_streaming, base)
        self.aggregates_allowed = False
        self.around_aggregate: Token | None = None

    def expression(self) -> Expression:
        """Any expression."""
        return self._binary_expression(_OR)

    def aggregate_expression(self) -> Expression:
        """An expression of a clause where aggregates may stand."""
        self.aggregates_allowed = True
        result = self._binary_expression(_OR)
        self.aggregates_allowed = False
        return result

    def _binary_expression(self, weakest: int) -> Expression:
        """Operators that bind at least as strongly as `weakest`, by precedence climbing."""
        left = self._unary()
        strongest = _MULTIPLY
        while True:
            operator = self.token.key
            precedence = _PRECEDENCE.get(operator, 0)
            if not weakest <= precedence <= strongest:
                return left
            if operator == "^^" and self.dialect is not Dialect.CSPARQL:
                return left
            if precedence <= _AND:
                left = self._chain(left, precedence)
                strongest = precedence
            elif precedence == _COMPARE:
                left = self._comparison(left)
                strongest = _AND
            else:
                left = Operation(operator, (left, self._right_side(self.advance(), precedence + 1)))
                strongest = precedence

    def _chain(self, first: Expression, precedence: int) -> Expression:
        operands = [first]
        while _PRECEDENCE.get(self.token.key, 0) == precedence:
            if self.token.key == "^^" and self.dialect is not Dialect.CSPARQL:
                break
            operands.append(self._right_side(self.advance(), precedence + 1))
        operator = "||" if precedence == _OR else "&&"
        return combine_chain(lambda left, right: Operation(operator, (left, right)), operands)

    def _comparison(self, left: Expression) -> Expression:
        token = self.advance()
        operator = token.key
        if operator == "NOT":
            self.expect("IN")
            return Operation("NOT IN", (left, *self._expression_list()))
        if operator == "IN":
            return Operation("IN", (left, *self._expression_list()))
        return Operation(operator, (left, self._right_side(token, _ADD)))

    def _right_side(self, operator: Token, weakest: int) -> Expression:
        if self.token.key in _EXPRESSION_ENDS:
            self.fail(f"nothing stands on the right side of {operator.text}", operator, ("an expression",))
        return self._binary_expression(weakest)

    def _expression_list(self) -> tuple[Expression, ...]:
        self.expect("(")
        return self._arguments()

    def _arguments(self, function: Token | None = None) -> tuple[Expression, ...]:
        """What stands between an opening bracket, already read, and its closing one."""
        if self.accept(")"):
            return ()
        with self.enter_brackets():
            arguments = [self.expression()]
            while self.accept(","):
                arguments.append(self.expression())
        if function is not None and self.token.key in (";", "AS"):
            self.fail(f"{function.text} takes nothing but arguments, not {self.token.text}", function)
        self.close(")", ",")
        return tuple(arguments)

    def _unary(self) -> Expression:
        key = self.token.key
        if key == "!":
            self.advance()
            with self.enter_brackets():
                return Operation("!", (self._unary(),))
        if key in ("+", "-"):
            if self.is_at_signed_number():
                return Constant(self.literal())
            self.advance()
            with self.enter_brackets():
                return Operation(f"unary {key}", (self._unary(),))
        return self._primary()

    def _primary(self) -> Expression:
        key = self.token.key
        if key == "var":
            return VariableReference(self.variable())
        if key in LITERAL_STARTS:
            return Constant(self.literal())
        if key == "(":
            return self.bracketed_expression()
        if key in IRI_STARTS:
            return self._iri_or_call()
        if self.token.is_word:
            return self.built_in_call()
        if key == "<":
            self.iri()
        self.raise_unexpected(*_EXPRESSION_STARTS)

    def bracketed_expression(self) -> Expression:
        """`( expression )`."""
        opening = self.expect("(")
        with self.enter_brackets():
            result = self.expression()
        if self.token.key in (",", ";"):
            self.fail("a list of arguments needs a function before this (", opening)
        if self.token.key == "AS":
            self.fail("AS cannot stand in this bracket; to name a value write BIND(expression AS ?name)", opening)
        self.expect(")")
        return result

    def _iri_or_call(self) -> Expression:
        token = self.token
        name = self.iri()
        if self.token.key != "(":
            return Constant(name)
        return self._iri_call(token, name)

    def _iri_call(self, token: Token, name: NamedNode) -> Expression:
        if own_aggregate(name.value) is not None:
            return self._aggregate_call(token, str(name))
        self.advance()
        distinct = self.accept("DISTINCT") is not None
        if distinct and self.token.key == ")":
            self.raise_unexpected(*_EXPRESSION_STARTS)
        return FunctionCall(name, self._arguments(token), distinct, at=token.start)

    def constraint(self, keyword: str) -> Expression:
        """What FILTER and HAVING take: a bracketed expression, a built-in or a call by IRI."""
        if self.token.key == "(":
            return self.bracketed_expression()
        if self.token.key in IRI_STARTS:
            token = self.token
            name = self.iri()
            if self.token.key != "(":
                self.fail(f"{keyword} takes a condition in brackets or a function call", token, ("(",))
            return self._iri_call(token, name)
        if self.token.is_word and (self.token.key not in ("TRUE", "FALSE")):
            return self.built_in_call()
        self.raise_unexpected("(", "a function", hint=f": {keyword} takes a condition in brackets")

    def built_in_call(self) -> Expression:
        """A function or aggregate known by a keyword, or EXISTS."""
        name = self.token.key
        if name in ("EXISTS", "NOT"):
            return self._exists()
        if name in AGGREGATES:
            return self._aggregate()
        if name == "TIMESTAMP":
            return self._timestamp()
        if name not in ARGUMENT_COUNTS:
            self._unknown_word()
        token = self.advance()
        self.expect("(")
        if self.token.key in ("DISTINCT", "*"):
            self.fail(f"{name} takes no {self.token.text}; only aggregates do", token)
        if name == "BOUND" and self.token.key != "var":
            self.fail("BOUND takes one variable", token, ("a variable",))
        arguments = self._arguments(token)
        fewest, most = ARGUMENT_COUNTS[name]
        if not fewest <= len(arguments) <= most:
            self.fail(f"{name} takes {describe_count(fewest, most)}, not {len(arguments)}", token)
        if name == "BOUND" and not isinstance(arguments[0], VariableReference):
            self.fail("BOUND takes one variable", token, ("a variable",))
        return FunctionCall(SAME_FUNCTION.get(name, name), arguments, at=token.start)

    def _unknown_word(self) -> NoReturn:
        token = self.token
        known = [*ARGUMENT_COUNTS, *AGGREGATES, "EXISTS", "NOT", "TIMESTAMP"]
        close = get_close_matches(token.key, known, n=1, cutoff=0.7)
        if self.peek().key == "(" and token.key in _RDF_12_FUNCTIONS:
            self.fail(f"{token.text} {RDF_12}")
        if self.peek().key == "(":
            self.fail(f"there is no function {token.text}" + (f"; did you mean {close[0]}?" if close else ""))
        self.raise_unexpected(*_EXPRESSION_STARTS, hint=f"; did you mean {close[0]}?" if close else self.term_hint())

    def _exists(self) -> Exists:
        if self.token.key == "NOT" and self.peek().key == "IN":
            self.fail("nothing stands on the left side of NOT IN")
        negated = self.accept("NOT") is not None
        self.expect("EXISTS")
        outside = self.aggregates_allowed, self.around_aggregate
        self.aggregates_allowed, self.around_aggregate = False, None
        pattern = self.group_pattern()
        self.aggregates_allowed, self.around_aggregate = outside
        return Exists(pattern, negated)

    def _aggregate(self) -> Aggregate:
        token = self.advance()
        return self._aggregate_call(token, AGGREGATES[token.key])

    def _aggregate_call(self, token: Token, function: str) -> Aggregate:
        """What follows the name of an aggregate."""
        if self.token.key != "(":
            self.raise_unexpected("(")
        if self.around_aggregate is not None:
            self.fail(f"{token.text} cannot stand inside this aggregate: they do not nest", self.around_aggregate)
        if not self.aggregates_allowed:
            message = f"{token.text} cannot stand here: aggregates belong into SELECT, HAVING or ORDER BY"
            self.fail(message, self._wrong_clause() or token)
        self.advance()
        distinct = self.accept("DISTINCT") is not None
        argument: Expression | None = None
        if self.token.key == "*":
            if function != "COUNT":
                self.fail(f"only COUNT takes *; {token.text} needs an expression", token)
            self.advance()
        elif self.token.key == ")":
            self.fail(f"{token.text} takes 1 argument", token)
        else:
            self.around_aggregate = token
            with self.enter_brackets():
                argument = self.expression()
            self.around_aggregate = None
        separator = self._separator(token, function)
        if self.token.key == ",":
            self.fail(f"{token.text} takes 1 argument", token)
        self.expect(")")
        return Aggregate(function, argument, distinct, separator, at=token.start)

    def _wrong_clause(self) -> Token | None:
        """The word before the bracket in which an aggregate, just read, comes first: it may be the wrong word."""
        opening, word = self.tokens[self.index - 2], self.tokens[max(self.index - 3, 0)]
        return word if opening.key == "(" and word.is_word and word.key != "FILTER" else None

    def _separator(self, token: Token, function: str) -> str | None:
        if self.token.key != ";":
            return None
        if function != "GROUP_CONCAT":
            self.fail(f"only GROUP_CONCAT takes a SEPARATOR, {token.text} does not", token)
        self.advance()
        self.expect("SEPARATOR")
        self.expect("=")
        return self.string()

    def _timestamp(self) -> Timestamp:
        token = self.advance()
        self.expect("(")
        if self.token.key != "var":
            self.fail("timestamp takes a variable and, after a comma, the stream", token, ("a variable",))
        variable = self.variable()
        stream = None
        if self.accept(","):
            stream = self.variable_or_iri()
        self.expect(")")
        return Timestamp(variable, stream, at=token.start)
