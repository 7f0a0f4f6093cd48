"""The query texts that a SERVICE pattern gives rise to: for many keys, for one key, for a page of everything.

questions = Questions("?who <http://example.org/followers> ?n", ["who"])
questions.for_keys([(anna,), (bert,)])
questions.page(limit=1000, offset=2000)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Join, Node, OrderBy, Project, Slice, Values
from headwater.algebra.scope import all_variables, visible
from headwater.algebra.to_sparql import to_sparql
from headwater.federation.endpoint.substitution import restricted
from headwater.language.expressions import VariableReference
from headwater.language.parser import parse
from headwater.terms.model import Literal, NamedNode, Row, Term, Variable

PROBE = 'SELECT ?hw_probe WHERE { VALUES (?hw_probe) { ("probe") } }'
PROBE_ANSWER: tuple[Row, ...] = ((Literal("probe"),),)


def pattern_of(text: str) -> tuple[Node, tuple[Variable, ...]]:
    """The plan of the text between the braces of SERVICE, and the variables that it shows."""
    root = plan_query(parse(f"SELECT * WHERE {{ {text} }}")).root
    if not isinstance(root, Project):
        raise TypeError(f"a pattern was expected, and not {type(root).__name__}")
    return root.inner, root.variables


@dataclass(frozen=True)
class Questions:
    """What to ask an endpoint about a pattern. `variables` are the columns of a row, `join_variables` of a key."""

    pattern: Node
    join_variables: tuple[Variable, ...]
    variables: tuple[Variable, ...]
    names: tuple[str, ...] = field(init=False)
    number: str = field(init=False)
    """The variable that says which key a row belongs to."""
    _places: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        unknown = [variable for variable in self.join_variables if variable not in self.variables]
        if unknown:
            shown = ", ".join(map(str, unknown))
            raise ValueError(f"the pattern does not show {shown}: join on the variables that it has")
        number = "hw_key"
        while Variable(number) in all_variables(self.pattern):
            number += "_"
        object.__setattr__(self, "number", number)
        object.__setattr__(self, "names", tuple(variable.value for variable in self.variables))
        object.__setattr__(self, "_places", tuple(self.variables.index(v) for v in self.join_variables))

    @classmethod
    def about(
        cls,
        pattern: Node | str,
        join_variables: Iterable[Variable | str],
        variables: Iterable[Variable | str] | None = None,
    ) -> Questions:
        """About a plan node or the text between the braces; all variables that the pattern shows are columns."""
        node, shown = pattern_of(pattern) if isinstance(pattern, str) else (pattern, visible(pattern))
        columns = shown if variables is None else tuple(map(as_variable, variables))
        return cls(node, tuple(map(as_variable, join_variables)), columns)

    def for_keys(self, keys: Sequence[Row]) -> str:
        """All rows of all keys, each with the number of its key."""
        number = Variable(self.number)
        rows = tuple((Literal(str(place)), *map(_sendable, key)) for place, key in enumerate(keys))
        values = Values((number, *self.join_variables), rows)
        return to_sparql(Project(Join(values, self.pattern), (number, *self.variables)))

    def for_key(self, key: Row) -> str:
        """The rows of one key, without VALUES; the join variables may be missing from them."""
        pairs = zip(self.join_variables, map(_sendable, key), strict=True)
        fixed = {variable: term for variable, term in pairs if term is not None}
        pattern = restricted(self.pattern, fixed)
        left = set(visible(pattern))
        return to_sparql(Project(pattern, tuple(v for v in self.variables if v in left)))

    def page(self, limit: int, offset: int, ordered: bool = True) -> str:
        """A part of all rows, in an order that is the same for every page: by the key, then by everything else."""
        rest = (variable for variable in self.variables if variable not in self.join_variables)
        order = tuple((VariableReference(variable), False) for variable in (*self.join_variables, *rest))
        rows = OrderBy(self.pattern, order) if order and ordered else self.pattern
        return to_sparql(Slice(Project(rows, self.variables), offset, limit))

    def key(self, row: Row) -> Row:
        """The key that a row belongs to."""
        return tuple(row[place] for place in self._places)

    def fits(self, row: Row, key: Row) -> bool:
        """Whether a row has no other terms than the key's where the key has some."""
        return all(
            term is None or row[place] is None or row[place] == term
            for place, term in zip(self._places, key, strict=True)
        )

    def filled(self, row: Row, key: Row) -> Row:
        """The row with the terms of the key: {key} ⋈ {row}."""
        filled: list[Term | None] = list(row)
        for place, term in zip(self._places, key, strict=True):
            filled[place] = row[place] if term is None else term
        return tuple(filled)


def as_variable(variable: Variable | str) -> Variable:
    """A variable, given as such or by its name."""
    return Variable(variable.removeprefix("?")) if isinstance(variable, str) else variable


def _sendable(term: Term | None) -> NamedNode | Literal | None:
    if term is None or isinstance(term, NamedNode | Literal):
        return term
    raise ValueError(f"no query text can carry {term}")
