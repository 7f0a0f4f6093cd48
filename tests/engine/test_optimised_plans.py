"""What the engine evaluates: the optimised plan, by which sources know what to leave out; the definition as written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyoxigraph import Literal, NamedNode, Quad

import headwater as hw
from headwater.algebra.wanted_patterns import WantedPattern
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.running.named_evaluators import EvaluatorName
from headwater.terms.model import XSD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EX = "http://ex/"
STREAM = EX + "s"
TEXT = f"""PREFIX : <{EX}>
SELECT ?o ?v ?who WHERE {{
  STREAM <{STREAM}> [RANGE 4s SLIDE 2s] {{ ?o :by ?who . ?o :value ?v }}
  ?who :in ?room . ?room :on ?floor .
  FILTER(?who = :s1 && ?v > 3)
}}"""
CLOSURE = f"""PREFIX : <{EX}>
SELECT ?o FROM STREAM <{STREAM}> [RANGE 4s STEP 2s] WHERE {{ ?o :by+ ?who . ?o :value ?v FILTER(?v > 3) }}"""


def iri(name: str) -> NamedNode:
    return NamedNode(EX + name)


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    lines = []
    for number in range(40):
        lines.append(f"{number * 250}\t<{EX}o{number}> <{EX}by> <{EX}s{number % 3}> .\n")
        lines.append(f'{number * 250}\t<{EX}o{number}> <{EX}value> "{number % 7}"^^<{XSD}integer> .\n')
    path = tmp_path / "s.tnq"
    path.write_text("".join(lines))
    return path


def engine(stream: Path, text: str, evaluator: EvaluatorName = "auto", spark: SparkSession | None = None) -> hw.Engine:
    made = hw.Engine(spark, in_process=spark is None, evaluator=evaluator, shards=2)
    made.stream(STREAM, hw.files(stream))
    made.dataset([Quad(iri("s1"), iri("in"), iri("r")), Quad(iri("r"), iri("on"), Literal("ground"))])
    made.register(text, name="q")
    return made


def said(made: hw.Engine) -> list[tuple[int, object]]:
    found: list[tuple[int, object]] = []
    made.run(on_answer=lambda answer: found.append((answer.time, answer.rows)))
    return found


def test_sources_look_for_what_the_optimised_plan_asks() -> None:
    made = engine(Path("absent.tnq"), TEXT)
    description = made._description()
    evaluator = description.program().evaluators["q"]
    assert isinstance(evaluator, KernelEvaluator)
    assert evaluator.plan.root != description.queries[0].plan.root
    patterns = description.outline().wanted_patterns.of(STREAM)
    assert patterns is not None
    assert WantedPattern(None, iri("by"), iri("s1"), "spo") in patterns


def test_what_is_left_to_the_reference_is_optimised_too() -> None:
    made = engine(Path("absent.tnq"), CLOSURE)
    description = made._description()
    evaluator = description.program().evaluators["q"]
    assert isinstance(evaluator, ReferenceEvaluator)
    assert evaluator.plan.root != description.queries[0].plan.root


def test_the_definition_takes_plans_as_they_were_written() -> None:
    made = engine(Path("absent.tnq"), TEXT, "reference")
    description = made._description()
    assert description.program().evaluators["q"].plan == description.queries[0].plan


@pytest.mark.parametrize("evaluator", ["auto", "reference"])
@pytest.mark.parametrize("text", [TEXT, CLOSURE], ids=["kernel", "closure"])
def test_the_outline_is_that_of_the_program(text: str, evaluator: EvaluatorName) -> None:
    made = engine(Path("absent.tnq"), text, evaluator)
    description = made._description()
    outline, program = description.outline(), description.program()
    assert outline.inputs == program.inputs
    for name, one in program.evaluators.items():
        known = outline.queries[name]
        assert (known.kind, known.fallback_reason, known.patterns) == (
            one.kind,
            one.fallback_reason,
            program.patterns(name),
        )


@pytest.mark.parametrize("text", [TEXT, CLOSURE], ids=["kernel", "closure"])
def test_both_say_the_same(stream: Path, text: str) -> None:
    expected = said(engine(stream, text, "reference"))
    assert any(rows for _, rows in expected)
    assert said(engine(stream, text)) == expected


def test_both_say_the_same_on_spark(stream: Path, spark: SparkSession) -> None:
    assert said(engine(stream, TEXT, spark=spark)) == said(engine(stream, TEXT, "reference"))
