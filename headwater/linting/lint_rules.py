"""The rules of the lint, in the order in which their warnings are told: first the query alone, then its data."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headwater.linting.bare_durations import find_bare_durations
from headwater.linting.cartesian_products import find_cartesian_products
from headwater.linting.graphs_in_windows import find_graphs_in_windows
from headwater.linting.ill_typed_literals import find_ill_typed_literals
from headwater.linting.implausible_times import find_implausible_times
from headwater.linting.late_elements import find_late_elements
from headwater.linting.lint_subject import LintSubject
from headwater.linting.start_times import find_early_starts
from headwater.linting.unbound_variables import find_unbound_variables
from headwater.linting.unfitting_operands import find_unfitting_operands
from headwater.linting.unfitting_values import find_unfitting_values
from headwater.linting.unloaded_graphs import find_unloaded_graphs
from headwater.linting.unmatchable_patterns import find_unmatchable_patterns
from headwater.linting.unmatched_joins import find_unmatched_joins
from headwater.linting.unreadable_elements import find_unreadable_elements
from headwater.linting.unseen_terms import find_unseen_terms
from headwater.linting.window_gaps import find_window_gaps

LintRule = Callable[[LintSubject], Iterator[str]]
"""Gives a sentence for each mistake that it finds in a query."""

LINT_RULES: tuple[LintRule, ...] = (
    find_unbound_variables,
    find_cartesian_products,
    find_bare_durations,
    find_window_gaps,
    find_graphs_in_windows,
    find_ill_typed_literals,
    find_unloaded_graphs,
    find_unmatchable_patterns,
    # Whoever sees why elements cannot be read needs no word about what is missing in them.
    find_unreadable_elements,
    find_implausible_times,
    find_late_elements,
    find_early_starts,
    find_unseen_terms,
    find_unmatched_joins,
    find_unfitting_values,
    find_unfitting_operands,
)


def lint_query(subject: LintSubject) -> list[str]:
    """What is probably wrong with a query over its data, a sentence each."""
    return list(dict.fromkeys(sentence for rule in LINT_RULES for sentence in rule(subject)))
