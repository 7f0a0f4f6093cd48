"""`SERVICE [SILENT] name [OPTION (…)] {…} [OPTION (…)]` with its options (`service_options`)."""

from __future__ import annotations

from typing import Any

from headwater.errors import SettingError
from headwater.language.lexer import Token
from headwater.language.parser_base import suggest_keyword
from headwater.language.parser_terms import IRI_STARTS
from headwater.language.parser_windows import WindowParser
from headwater.language.patterns import ServicePattern
from headwater.language.service_options import (
    POLICY_NAMES,
    Preference,
    RatesSource,
    ServiceClock,
    ServiceOptions,
    Strategy,
    is_policy,
)
from headwater.terms.model import NamedNode, Variable
from headwater.terms.redaction import SECRET_IN_QUERY, has_user_info

_OPTIONS = ("ACCURACY", "LATENCY", "BUDGET", "PREFER", "POLICY", "RATES", "STRATEGY", "ENTRIES", "CLOCK", "FILL")
_NUMBERS = ("integer", "decimal", "double")
_NOT_WITH_A_VARIABLE = "needs one endpoint: SERVICE with a variable learns its endpoints from the data"


class ServiceParser(WindowParser):
    """Reads SERVICE clauses."""

    def service(self, keyword: Token) -> ServicePattern:
        """The clause from its keyword on, which is still to be read."""
        silent = self.peek().key == "SILENT"
        place = self.peek(2) if silent else self.peek()
        name = self.group_name()
        if isinstance(name, NamedNode) and has_user_info(name.value):
            self.fail(SECRET_IN_QUERY, place)
        values: dict[str, Any] = {}
        places: dict[str, Token] = {}
        self._options_of(values, places, name)
        pattern = self.group_pattern()
        self._options_of(values, places, name)
        try:
            options = ServiceOptions(**values) if values else None
        except SettingError as error:
            # Each value is right; two of them contradict each other.
            self.fail(str(error), places.get("rates", keyword))
        return ServicePattern(name, pattern, silent, at=keyword.start, options=options)

    def group_name(self) -> Variable | NamedNode:
        """What follows GRAPH, WINDOW or SERVICE [SILENT]."""
        keyword = self.advance()
        if keyword.key == "SERVICE":
            self.accept("SILENT")
        name = self.variable_or_iri()
        if self.token.key == "[":
            self.fail(f"{keyword.text} takes no window; did you mean STREAM?", keyword, ("STREAM",))
        if self.token.key in ("WHERE", "("):
            self.fail(f"{keyword.text} takes a name and {{ … }}; did you mean SELECT?", keyword, ("SELECT",))
        return name

    def _options_of(self, values: dict[str, Any], places: dict[str, Token], endpoint: Variable | NamedNode) -> None:
        """`OPTION (…)`, if it stands here: the values and places of options by their names."""
        if self.accept("OPTION") is None:
            return
        self.expect("(")
        while True:
            token = self.token
            if token.key not in _OPTIONS:
                self.raise_unexpected(*_OPTIONS)
            name = self.advance().key.lower()
            if name in values:
                self.fail(f"{token.text} stands here twice", token)
            places[name], values[name] = token, self._option_value(token, endpoint)
            if self.token.key == ")":
                self.advance()
                return
            if self.token.key != ",":
                self.raise_unexpected(",", ")")
            self.advance()

    def _option_value(self, option: Token, endpoint: Variable | NamedNode) -> Any:
        """The value behind the name of an option; those without one are true."""
        match option.key:
            case "ACCURACY":
                return self._share()
            case "LATENCY":
                return self.duration("a latency")
            case "BUDGET":
                return self.integer()
            case "ENTRIES":
                return self.number_above_zero("the number of entries")
            case "PREFER":
                return Preference[self._word(tuple(one.name for one in Preference))]
            case "CLOCK":
                return ServiceClock[self._word(tuple(one.name for one in ServiceClock))]
            case "POLICY":
                return self._policy()
            case "RATES":
                return self._rates()
            case "STRATEGY":
                place = self.token
                strategy = Strategy[self._word(tuple(one.name for one in Strategy))]
                if strategy is Strategy.HASH and isinstance(endpoint, Variable):
                    self.fail(f"STRATEGY HASH {_NOT_WITH_A_VARIABLE}", place, ("VIEW", "LOOP"))
                return strategy
        if isinstance(endpoint, Variable):
            self.fail(f"FILL {_NOT_WITH_A_VARIABLE}", option)
        return True

    def _share(self) -> float:
        token = self.expect(*_NUMBERS)
        if not 0.0 <= (share := float(token.text)) <= 1.0:
            self.fail("an accuracy is a share between 0 and 1", token)
        return share

    def _word(self, words: tuple[str, ...]) -> str:
        if self.token.key not in words:
            self.raise_unexpected(*words)
        return self.advance().key

    def _rates(self) -> RatesSource:
        """The name of a graph, or the path of a file as a string."""
        if self.token.key == "string":
            place = self.token
            return self.string() or self.fail("the path of the file with change rates is empty", place)
        if self.token.key == "var" or self.token.key not in (*IRI_STARTS, "<"):
            self.raise_unexpected("iri", "pname", "string")
        return self.iri()

    def _policy(self) -> str:
        """A bare word, with hyphens in it where the name has some, or a string."""
        token = self.token
        if token.key == "string":
            name = self.literal().value
        elif token.is_word:
            name = self.advance().text
            while self.token.key == "-" and self.peek().is_word:
                self.advance()
                name += f"-{self.advance().text}"
        else:
            self.raise_unexpected(*POLICY_NAMES)
        if not is_policy(name):
            self.fail(f"no policy is called {name}{suggest_keyword(token, POLICY_NAMES)}", token, POLICY_NAMES)
        return name.upper()
