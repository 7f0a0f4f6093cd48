"""Answers a text over what the streams brought last, in an engine of its own that leaves nothing behind."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headwater.algebra.plan import QueryPlan
from headwater.engine.engine import Engine
from headwater.execution.answers import Answer
from headwater.language.stream_clauses import RegistrationKind
from headwater.sources.files import memory
from headwater.terms.model import Element
from headwater.terms.names import iri_to_name, name_to_iri

PREVIEWED_ELEMENTS = 5_000
"""How many elements of each stream a preview reads."""
_SECONDS, _ROWS, _ANSWERS = 5, 1_000, 20


@dataclass(frozen=True, slots=True)
class PreviewResult:
    """The newest answers with rows, how many answers there were, and how many elements they were made from."""

    plan: QueryPlan
    answers: tuple[Answer, ...]
    ticks: int
    elements: int
    missing: tuple[str, ...] = ()
    """Streams that have no element which could be read again."""


def run_preview(
    text: str,
    plans: Mapping[str, QueryPlan],
    recent: Mapping[str, Sequence[Element]],
    folders: Sequence[Path],
) -> PreviewResult:
    """Answer a text over recent elements of streams, by IRI; `plans` are the registered queries, which may feed it."""
    engine = Engine(in_process=True, locate_streams=False, egress=[], limits={"seconds": _SECONDS, "rows": _ROWS})
    for folder in folders:
        engine.dataset(folder)
    query = engine.register(text, name="preview")
    feeding = _feeding_plans(query.plan, plans)
    for plan in feeding:
        engine.register(plan.text, name=plan.name)
    made = {stream for plan in feeding if (stream := produced_stream(plan)) is not None}
    read = {window.stream.value for plan in (query.plan, *feeding) for window in plan.windows} - made
    missing = tuple(sorted(iri_to_name(stream) for stream in read if not recent.get(stream)))
    if missing:
        return PreviewResult(query.plan, (), 0, 0, missing)
    for stream in sorted(read):
        engine.stream(stream, memory(recent[stream]))
    newest: deque[Answer] = deque(maxlen=_ANSWERS)
    counts = [0]

    def take(answer: Answer) -> None:
        if answer.query == "preview":
            counts[0] += 1
            if not answer.is_empty or answer.suspended is not None:
                newest.append(answer)

    summary = engine.run(on_answer=take)
    return PreviewResult(query.plan, tuple(newest), counts[0], summary.elements)


def produced_stream(plan: QueryPlan) -> str | None:
    """The IRI of the stream that a query makes; None where it makes none."""
    registration = plan.registration
    if registration is None or registration.kind is not RegistrationKind.STREAM:
        return None
    return name_to_iri(registration.name).value


def _feeding_plans(plan: QueryPlan, plans: Mapping[str, QueryPlan]) -> list[QueryPlan]:
    """The registered queries whose streams a query reads, and those that feed them."""
    by_stream = {stream: one for one in plans.values() if (stream := produced_stream(one)) is not None}
    found: dict[str, QueryPlan] = {}
    waiting = [plan]
    while waiting:
        for window in waiting.pop().windows:
            feeding = by_stream.get(window.stream.value)
            if feeding is not None and feeding.name not in found:
                found[feeding.name] = feeding
                waiting.append(feeding)
    return list(found.values())
