"""Programs that are evaluated by the definition."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.execution.static_data import StaticData
from headwater.federation.services import Services
from headwater.reference.reference_evaluator import ReferenceEvaluator


def reference_program(
    queries: Sequence[RegisteredQuery], static: StaticData, delay: int = 0, **settings: Any
) -> Program:
    """A program whose queries are all evaluated by the reference evaluator."""
    return Program(queries, static, delay, partial(ReferenceEvaluator, fetch=Services().fetch_solutions), **settings)
