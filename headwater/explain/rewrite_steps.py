"""The output of `headwater explain --rules`: the plan, then for each rule the lines it removed (-) and added (+)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import SequenceMatcher

from headwater.algebra.nodes import Aggregation, Group
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.explain.notation import Notation
from headwater.explain.plan_text import plan_lines
from headwater.optimizer.distribution import (
    Distribution,
    NotDistributable,
    PartiallyDistributable,
    TotallyDistributable,
    distribution_of,
    groups_of_clauses,
)
from headwater.optimizer.optimise import OptimisedPlan
from headwater.optimizer.rules import ALL_FINISHING, DISABLED
from headwater.optimizer.shared_subplans import shared_subplans
from headwater.terms.model import Variable


def explain_steps(plan: QueryPlan, result: OptimisedPlan) -> str:
    """The plan as written, and each rewrite step up to the optimised plan."""
    lines = ["Plan as written", *_indent(plan_lines(plan))]
    for number, step in enumerate(result.steps, 1):
        lines += ["", f"{number}. {step.rule.name}: {step.rule.condition}"]
        lines += _indent(diff_lines(plan_lines(step.before), plan_lines(step.after)))
    if not result.steps:
        lines += ["", "No rule has anything to do."]
    lines += _left_out(result.plan)
    lines += _describe_shared(result.plan)
    lines += _distributions(result.plan)
    return "\n".join(lines) + "\n"


def _left_out(plan: QueryPlan) -> Iterator[str]:
    for rule in ALL_FINISHING:
        if rule.name in DISABLED and (root := rule.rewrite(plan, None)) != plan.root:
            yield from ("", f"Not applied, because {DISABLED[rule.name]}", f"  {rule.name}: {rule.condition}")
            yield from _indent(diff_lines(plan_lines(plan), plan_lines(replace(plan, root=root))))


def diff_lines(before: list[str], after: list[str]) -> Iterator[str]:
    """The difference of two plans: removed lines are marked -, added lines +; indentation is ignored."""
    matcher = SequenceMatcher(None, [_operator(line) for line in before], [_operator(line) for line in after], False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind == "equal":
            yield from (f"  {line}" for line in after[new_start:new_end])
        else:
            yield from (f"- {line}" for line in before[start:end])
            yield from (f"+ {line}" for line in after[new_start:new_end])


def _operator(line: str) -> str:
    return line.strip().partition("  → ")[0]


def _indent(lines: list[str] | Iterator[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _describe_shared(plan: QueryPlan) -> Iterator[str]:
    for number, shared in enumerate(shared_subplans([plan]), 1):
        first = shared.occurrences[0]
        yield from ("", f"Evaluated once for {len(shared.occurrences)} places (S{number})")
        yield from _indent(plan_lines(plan, first.node, first.active_graph))


def _distributions(plan: QueryPlan) -> Iterator[str]:
    notation = Notation.of(plan)
    groups = [node for node in nodes_of(plan.root) if isinstance(node, Group)]
    groups += [
        group for node in nodes_of(plan.root) if isinstance(node, Aggregation) for group in groups_of_clauses(node)
    ]
    for group in groups:
        wanted = ", ".join(notation.expression(aggregate) for _, aggregate in group.aggregates) or "no aggregate"
        by = notation.variables(v for v, _ in group.keys) or "nothing"
        yield from ("", f"{wanted} by {by}", f"  {distribution_text(distribution_of(plan, group), notation)}")


def distribution_text(distribution: Distribution, notation: Notation) -> str:
    """How an aggregation can be computed in parts, as text."""
    match distribution:
        case TotallyDistributable(keys):
            return f"totally distributable by {_names(keys, notation)}"
        case PartiallyDistributable(keys, splits):
            parts = dict.fromkeys(notation.expression(one.partial) for one in splits)
            what = f"; partial {', '.join(parts)}" if parts else ""
            return f"partially distributable by {_names(keys, notation)}{what}"
        case NotDistributable(reason):
            return f"not distributable: {reason}"


def _names(keys: frozenset[Variable], notation: Notation) -> str:
    return " ".join(sorted(notation.variable(key) for key in keys))
