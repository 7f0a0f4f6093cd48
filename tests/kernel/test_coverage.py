"""What the kernel evaluates: every query of the papers and benchmarks, and nearly every W3C test without closures."""

from __future__ import annotations

from collections import Counter

import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryPlan
from headwater.conformance.w3c import cases, run_case
from headwater.execution.evaluator import Evaluator
from headwater.execution.static_data import StaticData
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.evaluator_choice import choose_kernel_or_reference, with_optimisation
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.windows.settings import QuerySettings, resolve_settings
from tests.language import benchmark_queries, paper_queries
from tests.shared_data import shared_data

STREAMS = ("http://example.org/s0", "http://example.org/s1")
LEAST_OF_W3C = 0.98
NO_FUNCTION_OF_THE_ROW = {"BNODE()", "RAND()", "STRUUID()", "UUID()"}
UNKNOWN_FUNCTION = {"taxi 4": "<http://www.opengis.net/def/geosparql/function/distance>, a function that is not known"}


def reason(text: str) -> str | None:
    plan = plan_query(parse(text), streams=STREAMS)
    return choose_kernel_or_reference(plan, resolve_settings(plan), Store()).reason


@pytest.mark.parametrize("name", paper_queries.PRINTED)
def test_the_queries_of_the_papers(name: str) -> None:
    assert reason(paper_queries.PRINTED[name]) is None


def test_the_query_files_of_the_benchmarks() -> None:
    texts = benchmark_queries.query_files()
    assert len(texts) == 24 + 10 + 5 + 8
    assert {name: why for name, text in texts.items() if (why := reason(text)) is not None} == {}


def test_the_collections_in_rsp_ql() -> None:
    texts = benchmark_queries.rspql_collections()
    sound = {name: text for name, text in texts.items() if name not in benchmark_queries.BROKEN}
    assert len(sound) == 6
    assert {name: why for name, text in sound.items() if (why := reason(text)) is not None} == UNKNOWN_FUNCTION


def test_the_w3c_evaluation_tests_without_property_paths() -> None:
    refused: Counter[str] = Counter()
    made = 0

    def kernel_first(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> Evaluator:
        nonlocal made
        made += 1
        try:
            return KernelEvaluator(plan, settings, static)
        except UnsupportedByKernel as why:
            refused[str(why).partition(",")[0]] += 1
            return ReferenceEvaluator(plan, settings, static)

    chosen = [c for c in cases(shared_data("w3c")) if c.kind.evaluates and "property-path" not in c.folder]
    made_first = with_optimisation(kernel_first)
    problems = {f"{case.folder}/{case.name}": run_case(case, made_first).problem for case in chosen}
    assert [name for name, problem in problems.items() if problem] == []
    assert made > 480
    assert refused.total() <= (1 - LEAST_OF_W3C) * made, refused
    assert set(refused) <= NO_FUNCTION_OF_THE_ROW
