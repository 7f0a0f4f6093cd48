"""All rewrite rules, in the order of their application.

`REWRITES` are applied in turn until none changes the plan. `FINISHING` follow, once each: they would undo `REWRITES` or
be undone by them. `DISABLED` are correct rules that do not pay with these evaluators, each with the reason;
`ALL_FINISHING` contains them, too.
"""

from __future__ import annotations

from headwater.optimizer.rewrites import (
    bind_equalities,
    drop_unused,
    filter_static_parts,
    fold_constants,
    group_aggregates,
    join_filters,
    merge_patterns,
    narrow_static_parts,
    optional_to_join,
    order_joins,
    prune_empty,
    push_aggregates,
    push_filters,
    push_projections,
    split_filters,
)
from headwater.optimizer.rule import Rule

REWRITES: tuple[Rule, ...] = (
    # Constants first: a condition that is always true or false needs no place.
    fold_constants.RULE,
    prune_empty.RULE,
    # Then one condition per filter, because each may go another way.
    split_filters.RULE,
    # Before pushing: one constant for the whole group keeps its patterns together.
    bind_equalities.RULE,
    # Before pushing as well: afterwards the filter may stand inside, where it no longer sees the OPTIONAL.
    optional_to_join.RULE,
    push_filters.RULE,
    # When filters of AGGREGATE are below it, as far as they can be.
    group_aggregates.RULE,
    # When filters are where the streams are; what it adds goes the way of all filters in the next round.
    narrow_static_parts.RULE,
    # What equalities and OPTIONALs left side by side.
    merge_patterns.RULE,
    # Last, when it is known which filters still read a variable.
    drop_unused.RULE,
)
"""Rules that save work in every case."""

ALL_FINISHING: tuple[Rule, ...] = (
    # When every filter that a single input decides is there, and all patterns are merged.
    filter_static_parts.RULE,
    # Groupings before the order of joins, because they change what is joined.
    push_aggregates.RULE,
    order_joins.RULE,
    # Projections after all that looks at the shape of joins.
    push_projections.RULE,
    join_filters.RULE,
)
"""Rules that depend on cost, or that undo what `REWRITES` took apart."""

DISABLED: dict[str, str] = {
    push_aggregates.RULE.name: "a partial count that changes is a row that goes and one that comes, all the way up",
    push_projections.RULE.name: "a join of the kernel looks at no column that nobody asks for, and a store that "
    "answers a sub-query cannot walk on from pattern to pattern",
}
"""The reason why a rule is not applied, by its name."""

FINISHING = tuple(rule for rule in ALL_FINISHING if rule.name not in DISABLED)
