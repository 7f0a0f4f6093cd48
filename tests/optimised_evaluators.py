"""Evaluators of optimised plans: the kernel where it can evaluate the plan, the reference where not."""

from __future__ import annotations

from headwater.kernel.evaluator_choice import make_evaluator, with_optimisation

make_optimised_evaluator = with_optimisation(make_evaluator)
