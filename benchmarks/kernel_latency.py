"""One element at a time through the queries Q1 to Q5 of the CQELS paper, in process (its figure 3: 0.47, 3.90, 0.51,
0.53 and 21.8 ms on average).

The clock runs from the element handed to the evaluator to its answer as terms, for every element; the latencies of
those elements that led to an answer are shown beside.
"""

from __future__ import annotations

import time

from benchmarks.kernel_conference import APART, QUERIES, Conference, conference
from benchmarks.kernel_sizes import Sizes
from benchmarks.reporting import Figure, Findings, progress, quantile, rounded
from headwater.algebra.build import plan_query
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.optimizer.optimise import optimise
from headwater.windows.model import TimeWindow
from headwater.windows.settings import resolve_settings

_PAPER_MS = (0.47, 3.90, 0.51, 0.53, 21.8)
_SHARES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


def measure(sizes: Sizes) -> Findings:
    scene = conference(sizes.static_triples)
    findings = Findings({"static_triples": len(scene.store)})
    by_share: dict[str, dict[str, float]] = {f"latency_{share}_ms": {} for share, _ in _SHARES}
    answered: dict[str, float] = {}
    for name, text in QUERIES.items():
        progress(f"latency: {name}, {sizes.latency_elements} elements")
        every, with_answer = _latencies(scene, text, sizes.latency_warm_up, sizes.latency_elements)
        for share, at in _SHARES:
            by_share[f"latency_{share}_ms"][name] = rounded(quantile(every, at) * 1e3)
        if with_answer:
            answered[name] = rounded(quantile(with_answer, 0.5) * 1e3)
    findings.values |= by_share
    findings.values["latency_answered_p50_ms"] = answered
    lines = {
        share: [(float(i), ms) for i, ms in enumerate(by_share[f"latency_{share}_ms"].values(), 1)]
        for share, _ in _SHARES
    }
    lines["the paper, mean"] = [(float(i), ms) for i, ms in enumerate(_PAPER_MS, 1)]
    findings.figures.append(
        Figure("latency", "One element at a time", "query Q1 to Q5 of the conference scenario", "milliseconds", lines)
    )
    return findings


def _latencies(scene: Conference, text: str, warm_up: int, count: int) -> tuple[list[float], list[float]]:
    """The seconds of each element in ascending order: of all, and of those with an answer."""
    plan = optimise(plan_query(parse(text))).plan
    settings = resolve_settings(plan)
    evaluator = KernelEvaluator(plan, settings, scene.store)
    key = evaluator.keys[0]
    warm_up += max((w.width or 0) // APART for w in settings.windows if isinstance(w, TimeWindow))
    every: list[float] = []
    with_answer: list[float] = []
    for number, element in enumerate(scene.elements(warm_up + count)):
        batch = {key: [element]}
        begun = time.perf_counter()
        answers = list(evaluator.advance(batch, element.time + 1))
        taken = time.perf_counter() - begun
        if number >= warm_up:
            every.append(taken)
            if any(answer.time == element.time and not answer.is_empty for answer in answers):
                with_answer.append(taken)
    return sorted(every), sorted(with_answer)
