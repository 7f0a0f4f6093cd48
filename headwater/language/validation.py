"""The rules that the grammar does not express: scopes, grouping, window names.

- the variable of BIND, of `(… AS ?v)` in SELECT and of `(… AS ?v)` in GROUP BY is new where it is introduced;
- a query that groups projects only keys and aggregates, and cannot be `SELECT *`;
- a window is declared once and used by its declared name.

One rule is relaxed in a query over streams: an outermost SELECT with aggregates but without GROUP BY that
projects plain variables (SRBench's query 5 is one) groups by those variables, which is the only thing it can mean.
In a query without streams it stays the error that SPARQL says it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headwater.language.errors import QueryError
from headwater.language.expressions import Expression, VariableReference
from headwater.language.patterns import BindItem, GroupItem, GroupPattern, SubSelect, WindowPattern
from headwater.language.query import GroupKey, Modifiers, ParsedQuery, Projection, SelectQuery
from headwater.language.scopes import (
    exists_patterns,
    free_variables,
    has_aggregate,
    inner_patterns,
    item_expressions,
    variables_in_scope,
)
from headwater.language.stream_clauses import FromWindow
from headwater.terms.model import NamedNode, Variable


def validate(query: ParsedQuery, is_streaming: bool) -> ParsedQuery:
    """Check a query and add the grouping that a query over streams may leave out; raise `QueryError` if it is wrong."""
    form = query.form
    if is_streaming and isinstance(form, SelectQuery):
        form = _with_implied_grouping(form)
        query = replace(query, form=form)
    validator = _Validator(query.text, _declared_windows(query))
    projections = None
    if isinstance(form, SelectQuery):
        validator.check_select(form)
        projections = form.projections
    patterns = [] if form.where is None else [form.where]
    expressions = _outer_expressions(form.modifiers, projections)
    expressions += [clause.condition for clause in query.aggregates if clause.condition is not None]
    for expression in expressions:
        patterns += exists_patterns(expression)
    validator.check_patterns(patterns)
    return query


def _declared_windows(query: ParsedQuery) -> frozenset[NamedNode]:
    names: set[NamedNode] = set()
    for clause in query.dataset:
        if isinstance(clause, FromWindow):
            if clause.name in names:
                raise QueryError(f"two windows have the name {clause.name}", query.text, clause.at)
            names.add(clause.name)
    return frozenset(names)


def _with_implied_grouping(select: SelectQuery) -> SelectQuery:
    if select.modifiers.group_by or select.projections is None or not _has_aggregates(select):
        return select
    keys = tuple(
        GroupKey(VariableReference(projection.variable), at=projection.at)
        for projection in select.projections
        if projection.expression is None
    )
    return replace(select, modifiers=replace(select.modifiers, group_by=keys)) if keys else select


def _has_aggregates(select: SelectQuery) -> bool:
    expressions = _outer_expressions(select.modifiers, select.projections)
    return any(has_aggregate(expression) for expression in expressions)


def _outer_expressions(modifiers: Modifiers, projections: tuple[Projection, ...] | None) -> list[Expression]:
    """All expressions of a query that stand outside of its WHERE."""
    return [
        *(key.expression for key in modifiers.group_by),
        *modifiers.having,
        *(key.expression for key in modifiers.order_by),
        *(each.expression for each in projections or () if each.expression is not None),
    ]


@dataclass(frozen=True, slots=True)
class _Validator:
    """Knows the text, for messages, and the names of the declared windows."""

    text: str
    windows: frozenset[NamedNode]

    def check_select(self, select: SelectQuery) -> None:
        """Raise where AS names a variable that exists, or SELECT needs one that is neither grouped nor aggregated."""
        taken = variables_in_scope(select.where)
        keys = self._group_variables(select, taken)
        grouped = bool(select.modifiers.group_by) or _has_aggregates(select)
        if select.projections is None:
            if grouped:
                raise QueryError("SELECT * cannot stand with GROUP BY: name what to project", self.text, select.at)
            return
        named: set[Variable] = set()
        for projection in select.projections:
            needed = frozenset({projection.variable})
            if projection.expression is not None:
                if projection.variable in taken | keys | named:
                    self._refuse_name(projection.variable, "AS", projection.at)
                needed = free_variables(projection.expression)
                named.add(projection.variable)
            missing = sorted(variable.value for variable in needed - keys - named) if grouped else []
            if missing:
                message = f"?{missing[0]} is neither in GROUP BY nor inside an aggregate"
                raise QueryError(message, self.text, projection.at)

    def _group_variables(self, select: SelectQuery, taken: frozenset[Variable]) -> frozenset[Variable]:
        """The variables that stand for one value per group."""
        keys: set[Variable] = set()
        for key in select.modifiers.group_by:
            if key.variable is not None:
                if key.variable in taken or key.variable in keys:
                    self._refuse_name(key.variable, "GROUP BY (… AS …)", key.at)
                keys.add(key.variable)
            elif isinstance(key.expression, VariableReference):
                keys.add(key.expression.variable)
        return frozenset(keys)

    def _refuse_name(self, variable: Variable, clause: str, at: int) -> None:
        raise QueryError(f"{variable} is in use already; {clause} needs a new name", self.text, at)

    def check_patterns(self, patterns: list[GroupPattern]) -> None:
        """Checks these groups and everything inside them, in the order of the text where that is cheap."""
        waiting = patterns[::-1]
        while waiting:
            current = waiting.pop()
            inside: list[GroupPattern] = []
            for index, item in enumerate(current.items):
                self._check_item(item, current.items[:index])
                inside += inner_patterns(item)
                expressions = list(item_expressions(item))
                if isinstance(item, SubSelect):
                    self.check_select(item.query)
                    inside.append(item.query.where)
                    expressions += _outer_expressions(item.query.modifiers, item.query.projections)
                for expression in expressions:
                    inside += exists_patterns(expression)
            waiting += inside[::-1]

    def _check_item(self, item: GroupItem, before: tuple[GroupItem, ...]) -> None:
        if isinstance(item, BindItem) and item.variable in variables_in_scope(*before):
            self._refuse_name(item.variable, "BIND", item.at)
        if isinstance(item, WindowPattern) and isinstance(item.name, NamedNode) and item.name not in self.windows:
            declared = ", ".join(sorted(str(name) for name in self.windows)) or "none"
            message = f"no window has the name {item.name}; declared by FROM NAMED WINDOW: {declared}"
            raise QueryError(message, self.text, item.at)
