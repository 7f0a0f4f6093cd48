"""The tollgates of the example city as messages, for the other files of this folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

import headwater as hw

HERE = Path(__file__).resolve().parent
CITY = HERE.parent
STREAM = "http://city/tollgates"
QUERY = (CITY / "cars-per-district.rq").read_text("utf-8")
TEMPLATE = HERE / "gates.template"


def lines() -> list[str]:
    """Timed N-Quads, one statement each."""
    text = (CITY / "tollgates.tnq").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def messages() -> list[str]:
    """The same as JSON, which `gates.template` makes triples of again."""
    found = []
    for line in lines():
        time, gate, plate = re.fullmatch(r'(\S+)\t\S+#(\w+)> \S+ "([^"]+)" \.', line).groups()  # type: ignore[union-attr]
        found.append(json.dumps({"gate": gate, "plate": plate, "time": time}))
    return found


def show(answer: hw.Answer) -> None:
    """One line for each row of an answer."""
    for district, passages in answer.rows:
        print(f"{answer.time // 1_000_000}  {district.value.rpartition('#')[2]:6} {passages.value}", flush=True)  # type: ignore[union-attr]


def answered(engine: hw.Engine, ticks: int) -> None:
    """Answer a stream that never ends, until there are so many answers."""
    left = [ticks]

    def take(answer: hw.Answer) -> None:
        show(answer)
        left[0] -= 1
        if left[0] == 0:
            engine.stop()

    engine.dataset(CITY / "city.ttl")
    engine.register(QUERY)
    summary = engine.run(follow=True, on_answer=take, trigger_seconds=0.1)
    print(f"{summary.elements} elements, {summary.late} of them late; {summary.bad} could not be read")
