"""The walk of one element in docs/architecture.md: the functions exist and, in process, are called in this order."""

from __future__ import annotations

import re
import sys
from functools import reduce
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import headwater as hw

PAGE = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"
QUERY = (
    "REGISTER QUERY Cars AS SELECT ?gate (COUNT(*) AS ?n) FROM STREAM <gates> [RANGE 2s STEP 1s] "
    "WHERE { ?gate <http://city/registers> ?car } GROUP BY ?gate"
)


def section(heading: str) -> str:
    """A section of the page."""
    found = re.search(rf"^### {heading}\n(.*?)(?=^##)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found.group(1)


def steps(heading: str) -> list[str]:
    """The functions that a section names as `room/module.function`, in their order."""
    return re.findall(r"`([a-z_/]+\.\w+(?:\.\w+)*)`", section(heading))


def code_of(step: str) -> CodeType:
    """What is executed when the function of a step is called; of a class, its `__init__`."""
    module, *names = step.split(".")
    target: Any = reduce(getattr, names, import_module(f"headwater.{module.replace('/', '.')}"))
    code = vars(target)["__init__"].__code__ if isinstance(target, type) else target.__code__
    assert isinstance(code, CodeType), step
    return code


def test_in_process_the_functions_are_called_in_the_order_of_the_page(tmp_path: Path) -> None:
    lines = (f"{1000 * n}\t<http://city/g1> <http://city/registers> <http://city/car{n}> .\n" for n in range(1, 6))
    (tmp_path / "gates.tnq").write_text("".join(lines))
    engine = hw.Engine(in_process=True, dead_letters=tmp_path / "dead")
    engine.stream("gates", hw.files(str(tmp_path / "*.tnq")))
    engine.register(QUERY)
    walk = steps("In process")
    names, called = {code_of(step): step for step in walk}, dict[str, None]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (step := names.get(frame.f_code)) is not None:
            called.setdefault(step)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        engine.run(sinks=[hw.FileSink(tmp_path / "out")])
    finally:
        sys.setprofile(before)
    assert len(walk) > 15
    assert list(called) == walk


def test_the_rooms_on_the_way_are_those_of_the_functions() -> None:
    shown = re.search(r"^The rooms on this way: ([^.]+)\.", section("In process"), re.MULTILINE)
    assert shown is not None
    rooms = [room for room, _ in groupby(step.split("/")[0] for step in steps("In process"))]
    assert re.split(r"\s+→\s+", shown[1]) == rooms


def test_the_functions_on_spark_exist() -> None:
    walk = steps("On Spark")
    assert len(walk) > 5
    assert all(map(code_of, walk))
