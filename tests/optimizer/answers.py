"""What a plan answers over the data of a case, by the definition or by the kernel."""

from __future__ import annotations

from headwater.algebra.plan import QueryPlan
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.optimizer.rules import ALL_FINISHING, REWRITES
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import BlankNode, Term
from tests.optimizer.random_queries import Case

RULES = (*REWRITES, *ALL_FINISHING)
Shown = list[tuple[int, list[tuple[object, ...]]]]


def answers(case: Case, plan: QueryPlan, evaluator: MakeEvaluator = ReferenceEvaluator) -> Shown:
    """The rows of every tick in their order; blank nodes that BNODE() made have no name to compare."""
    program = Program([RegisteredQuery(plan, case.settings(plan))], case.store(), 0, evaluator)
    streams = {name: elements for name, elements in case.streams().items() if name in program.inputs}
    step = program.advance(streams, ended=list(streams))
    for suspension in program.suspensions.values():
        raise AssertionError(f"{suspension.reason}\n{case.text}") from suspension.error
    return [(answer.time, [tuple(map(_without_label, row)) for row in answer.rows]) for answer in step.answers]


def _without_label(term: Term | None) -> object:
    return "_:" if isinstance(term, BlankNode) and term.value != "b0" else term
