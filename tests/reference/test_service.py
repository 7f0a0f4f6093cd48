"""SERVICE inside a continuous query, against a real SPARQL endpoint on loopback."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.registered import RegisteredQuery
from headwater.language.parser import parse
from headwater.terms.model import SECOND, Element, NamedNode, Triple
from headwater.windows.settings import resolve_settings
from tests.free_ports import free_port
from tests.reference_programs import reference_program

EX = "http://example.org/"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    command = shutil.which("oxigraph", path=str(Path(sys.executable).parent)) or shutil.which("oxigraph")
    if command is None:
        pytest.skip("the oxigraph server is not installed: pip install oxigraph")
    address = f"127.0.0.1:{free_port()}"
    server = subprocess.Popen(
        [command, "serve", "--bind", address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(100):
            try:
                httpx.get(f"http://{address}/query", params={"query": "ASK {}"})
                break
            except httpx.ConnectError:
                time.sleep(0.1)
        update = f"INSERT DATA {{ <{EX}anna> <{EX}followers> 10 . <{EX}bert> <{EX}followers> 20 }}"
        httpx.post(
            f"http://{address}/update", content=update, headers={"Content-Type": "application/sparql-update"}
        ).raise_for_status()
        yield f"http://{address}/query"
    finally:
        server.terminate()
        server.wait(10)


def answers(text: str) -> list[list[tuple[str, ...]]]:
    plan = plan_query(parse(text))
    program = reference_program([RegisteredQuery(plan, resolve_settings(plan))], Store())
    mentions = [
        Element(second * SECOND, (Triple(NamedNode(EX + who), NamedNode(EX + "mentionedIn"), NamedNode(EX + "post")),))
        for second, who in ((1, "anna"), (3, "bert"), (3, "carl"))
    ]
    step = program.advance({EX + "mentions": mentions}, ended=[EX + "mentions"])
    for suspension in program.suspensions.values():
        raise suspension.error or AssertionError("a suspension here has its error")
    return [
        [tuple("-" if term is None else str(getattr(term, "value", term)) for term in row) for row in answer.rows]
        for answer in step.answers
    ]


def query(service: str) -> str:
    return f"""PREFIX : <{EX}> SELECT ?who ?n FROM STREAM :mentions [RANGE 2s TUMBLING]
               WHERE {{ ?who :mentionedIn ?post . {service} {{ ?who :followers ?n }} }}"""


def test_each_tick_asks_the_endpoint(endpoint: str) -> None:
    assert answers(query(f"SERVICE <{endpoint}>")) == [[(EX + "anna", "10")], [(EX + "bert", "20")]]


def test_an_endpoint_that_does_not_answer_is_an_error_unless_silent() -> None:
    nobody = f"http://127.0.0.1:{free_port()}/query"
    with pytest.raises(OSError, match="refused"):
        answers(query(f"SERVICE <{nobody}>"))
    silent = answers(query(f"SERVICE SILENT <{nobody}>"))
    assert silent == [[(EX + "anna", "-")], [(EX + "bert", "-"), (EX + "carl", "-")]]
