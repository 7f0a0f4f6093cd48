"""The query texts for a SERVICE pattern: for many keys, for one key, for a page of all rows.

queries = RequestQueries.for_pattern("?who <http://example.org/followers> ?n", ["who"])
queries.select_keys([(anna,), (bert,)])
queries.select_page(limit=1000, offset=2000)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Join, Node, OrderBy, Project, Slice, Values
from headwater.algebra.scope import all_variables, visible_variables
from headwater.algebra.to_sparql import to_sparql
from headwater.federation.endpoint.substitution import restrict_pattern
from headwater.language.expressions import VariableReference
from headwater.language.parser import parse
from headwater.terms.model import Literal, NamedNode, Row, Term, Variable

PROBE = 'SELECT ?hw_probe WHERE { VALUES (?hw_probe) { ("probe") } }'
PROBE_ANSWER: tuple[Row, ...] = ((Literal("probe"),),)


def parse_pattern(text: str) -> tuple[Node, tuple[Variable, ...]]:
    """The plan of the text between the braces of SERVICE, and its visible variables."""
    root = plan_query(parse(f"SELECT * WHERE {{ {text} }}")).root
    if not isinstance(root, Project):
        raise TypeError(f"a pattern was expected, and not {type(root).__name__}")
    return root.inner, root.variables


@dataclass(frozen=True)
class RequestQueries:
    """The queries for one pattern. `variables` are the columns of a row, `join_variables` those of a key."""

    pattern: Node
    join_variables: tuple[Variable, ...]
    variables: tuple[Variable, ...]
    names: tuple[str, ...] = field(init=False)
    key_index: str = field(init=False)
    """The variable that holds the index of the key that a row belongs to."""
    _key_columns: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        unknown = [variable for variable in self.join_variables if variable not in self.variables]
        if unknown:
            names = ", ".join(map(str, unknown))
            raise ValueError(f"the pattern does not show {names}: join on the variables that it has")
        key_index = "hw_key"
        while Variable(key_index) in all_variables(self.pattern):
            key_index += "_"
        object.__setattr__(self, "key_index", key_index)
        object.__setattr__(self, "names", tuple(variable.value for variable in self.variables))
        object.__setattr__(self, "_key_columns", tuple(self.variables.index(v) for v in self.join_variables))

    @classmethod
    def for_pattern(
        cls,
        pattern: Node | str,
        join_variables: Iterable[Variable | str],
        variables: Iterable[Variable | str] | None = None,
    ) -> RequestQueries:
        """From a plan node or the text between the braces; by default all visible variables are columns."""
        node, all_columns = (
            parse_pattern(pattern) if isinstance(pattern, str) else (pattern, visible_variables(pattern))
        )
        columns = all_columns if variables is None else tuple(map(variable_of, variables))
        return cls(node, tuple(map(variable_of, join_variables)), columns)

    def select_keys(self, keys: Sequence[Row]) -> str:
        """The query for all rows of all keys, each with the index of its key."""
        key_index = Variable(self.key_index)
        rows = tuple((Literal(str(index)), *map(_check_sendable, key)) for index, key in enumerate(keys))
        values = Values((key_index, *self.join_variables), rows)
        return to_sparql(Project(Join(values, self.pattern), (key_index, *self.variables)))

    def select_key(self, key: Row) -> str:
        """The query for the rows of one key, without VALUES; the join variables may be missing from them."""
        pairs = zip(self.join_variables, map(_check_sendable, key), strict=True)
        fixed = {variable: term for variable, term in pairs if term is not None}
        pattern = restrict_pattern(self.pattern, fixed)
        remaining = set(visible_variables(pattern))
        return to_sparql(Project(pattern, tuple(v for v in self.variables if v in remaining)))

    def select_page(self, limit: int, offset: int, is_ordered: bool = True) -> str:
        """The query for a page of all rows, in an order that all pages share: by the key, then by all other columns."""
        rest = (variable for variable in self.variables if variable not in self.join_variables)
        order = tuple((VariableReference(variable), False) for variable in (*self.join_variables, *rest))
        rows = OrderBy(self.pattern, order) if order and is_ordered else self.pattern
        return to_sparql(Slice(Project(rows, self.variables), offset, limit))

    def key_of(self, row: Row) -> Row:
        """The key that a row belongs to."""
        return tuple(row[column] for column in self._key_columns)

    def is_compatible(self, row: Row, key: Row) -> bool:
        """Whether a row agrees with the key wherever both are bound."""
        return all(
            term is None or row[column] is None or row[column] == term
            for column, term in zip(self._key_columns, key, strict=True)
        )

    def join_key(self, row: Row, key: Row) -> Row:
        """The row with the terms of the key: {key} ⋈ {row}."""
        joined: list[Term | None] = list(row)
        for column, term in zip(self._key_columns, key, strict=True):
            joined[column] = row[column] if term is None else term
        return tuple(joined)


def variable_of(variable: Variable | str) -> Variable:
    """The variable of a name with or without `?`; a variable stays itself."""
    return Variable(variable.removeprefix("?")) if isinstance(variable, str) else variable


def _check_sendable(term: Term | None) -> NamedNode | Literal | None:
    if term is None or isinstance(term, NamedNode | Literal):
        return term
    raise ValueError(f"no query text can carry {term}")
