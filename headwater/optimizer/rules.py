"""All rewrites, in their order.

`REWRITES` are applied one after the other, again and again, until none has anything left to do. `FINISHING` then
choose and tidy up, once each: they would undo, or be undone by, what the others look for.
"""

from __future__ import annotations

from headwater.optimizer import (
    bind_equalities,
    drop_unused,
    fold_constants,
    join_filters,
    merge_patterns,
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
    # What equalities and OPTIONALs left side by side.
    merge_patterns.RULE,
    # Last, when it is known which filters still read a variable.
    drop_unused.RULE,
)
"""Those that make less work in every case."""

FINISHING: tuple[Rule, ...] = (
    # Groupings before the order of joins, because they change what is joined.
    push_aggregates.RULE,
    order_joins.RULE,
    # Projections after all that looks at the shape of joins.
    push_projections.RULE,
    join_filters.RULE,
)
"""Those that choose, or that put together again what was taken apart."""

RULES = (*REWRITES, *FINISHING)
