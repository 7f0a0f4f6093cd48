"""Rewrites of plans: one rule per file, one ordered list (`rules`), `optimise` that applies them.

A rule never changes an answer. `distribution` says how aggregations can be computed in parts, `shared_subplans` what
several places have in common; both are for whoever evaluates a plan.
"""

from headwater.optimizer.distribution import (
    Distribution,
    NotDistributable,
    PartiallyDistributable,
    Split,
    TotallyDistributable,
    distribution,
)
from headwater.optimizer.optimise import Optimised, Step, optimise
from headwater.optimizer.rule import Rule
from headwater.optimizer.rules import EVERY_FINISHING, FINISHING, LEFT_OUT, REWRITES, RULES
from headwater.optimizer.shared_subplans import SharedSubplan, SubplanKey, shared_subplans
from headwater.optimizer.statistics import PredicateCounts, Statistics

__all__ = [
    "EVERY_FINISHING",
    "FINISHING",
    "LEFT_OUT",
    "REWRITES",
    "RULES",
    "Distribution",
    "NotDistributable",
    "Optimised",
    "PartiallyDistributable",
    "PredicateCounts",
    "Rule",
    "SharedSubplan",
    "Split",
    "Statistics",
    "Step",
    "SubplanKey",
    "TotallyDistributable",
    "distribution",
    "optimise",
    "shared_subplans",
]
