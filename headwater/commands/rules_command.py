"""`headwater explain --rules`: how the plan of a query is rewritten, step by step."""

from __future__ import annotations

from headwater.commands.query_files import QueryFile
from headwater.explain.rewrite_steps import explain_steps
from headwater.language.stream_clauses import Dialect
from headwater.optimizer.optimise import optimise


def rules(path: str, dialect: Dialect | None) -> None:
    """Prints the plan as written, then what each rule made of it and why that is right."""
    plan = QueryFile.read(path).plan(dialect)
    print(explain_steps(plan, optimise(plan)).rstrip("\n"))
