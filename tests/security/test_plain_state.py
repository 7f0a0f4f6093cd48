"""What is read from a checkpoint, or from the state store of Spark, runs no code: planted files are refused."""

from __future__ import annotations

import ast
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.execution.program_state import ProgramState
from headwater.running.checkpoints import CHECKPOINT_FORMAT
from headwater.spark.stateful_step import segment_from_bytes
from headwater.terms.element_columns import ElementColumns
from headwater.terms.model import Element, Literal, NamedNode, Triple
from headwater.terms.packing import pack, unpack
from tests.engine.programs import SENSORS, SLIDING, sensor_lines, write

PACKAGE = Path(hw.__file__).parent
UNPICKLERS = {"running/shipping.py", "spark/spark_source.py", "terms/own_functions.py", "terms/compiled_code.py"}
"""What the driver sends to its workers through Spark, which pickles every closure itself: plans, functions of users.

And the cache of compiled code, which is made to be run.
"""
S, P = NamedNode("http://ex/s"), NamedNode("http://ex/p")
ELEMENTS = ElementColumns.of([Element(n, (Triple(S, P, Literal(f"text {n}")),), None, (0, n)) for n in range(3)])


class Planted:
    """Runs code when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self._trace),)


def run(folder: Path) -> None:
    engine = hw.Engine(in_process=True, evaluator="reference", checkpoint=folder / "checkpoint")
    engine.stream(SENSORS, folder / "in.tnq")
    engine.register(SLIDING)
    engine.run(drain=False)


@pytest.mark.parametrize("name", ["state", "state.pickle", "headwater.json"])
def test_a_planted_file_in_a_checkpoint_runs_no_code(tmp_path: Path, name: str) -> None:
    write(tmp_path / "in.tnq", sensor_lines(30))
    run(tmp_path)
    for data in (pickle.dumps(Planted(tmp_path / "trace")), b"[3, 7]\n" + pickle.dumps(Planted(tmp_path / "trace"))):
        (tmp_path / "checkpoint" / name).write_bytes(data)
        if name == "state.pickle":
            # Nobody reads it.
            run(tmp_path)
        else:
            with pytest.raises(hw.CheckpointError, match="use another folder"):
                run(tmp_path)
    assert not (tmp_path / "trace").exists()


def test_the_state_on_spark_runs_no_code(tmp_path: Path) -> None:
    planted = pickle.dumps(Planted(tmp_path / "trace"))
    with pytest.raises(ValueError, match="no packed values"):
        segment_from_bytes(planted)
    with pytest.raises(ValueError, match="no packed values"):
        ProgramState.from_plain(unpack(planted))
    assert not (tmp_path / "trace").exists()


def test_a_checkpoint_of_an_older_version_is_refused_with_words(tmp_path: Path) -> None:
    write(tmp_path / "in.tnq", sensor_lines(30))
    run(tmp_path)
    record = tmp_path / "checkpoint" / "headwater.json"
    record.write_text(record.read_text().replace(f'"format": {CHECKPOINT_FORMAT}', '"format": 3'))
    with pytest.raises(hw.CheckpointError, match=r"another version of Headwater.*finish with that version"):
        run(tmp_path)


def test_only_what_the_driver_sends_is_unpickled() -> None:
    for path in PACKAGE.rglob("*.py"):
        names = {
            alias.name.partition(".")[0]
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in ([ast.alias(node.module or "")] if isinstance(node, ast.ImportFrom) else node.names)
        }
        own = str(path.relative_to(PACKAGE))
        assert own in UNPICKLERS or not names & {"pickle", "cloudpickle", "marshal", "shelve", "dill"}, own


@given(st.data())
def test_damaged_values_give_an_exception_or_a_value(data: st.DataObject) -> None:
    packed = bytearray(pack([ELEMENTS.to_plain(), {"a": (1, S)}, [(S, P), (P, None)], b"bytes", 1.5]))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    try:
        value = unpack(bytes(packed[: data.draw(st.integers(0, len(packed)))]))
        ElementColumns.from_plain(value[0])
    except Exception as error:
        assert not isinstance(error, MemoryError | SystemError), error


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (0, np.zeros(2, np.int64)),
        (0, np.zeros(3, np.float64)),
        (1, np.array([0, 1, 2, 9])),
        (1, np.array([-1, 1, 2, 3])),
        (1, np.array([0, 2, 1, 3])),
        (2, np.zeros((3, 2), np.int64)),
        (3, np.zeros(3, np.int64)),
        (4, [[np.zeros(1, np.int64), np.array([0, 99]), np.zeros(3, np.uint8)]]),
        (4, [[np.zeros(1, np.int64), np.array([0, 3]), np.zeros(3, np.int64)]]),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(place: int, wrong: object) -> None:
    """Compiled code would read beyond their ends."""
    plain = ELEMENTS.to_plain()
    assert ElementColumns.from_plain(plain).elements() == ELEMENTS.elements()
    plain[place] = wrong
    with pytest.raises(ValueError, match=r"elements|texts"):
        ElementColumns.from_plain(plain)


@pytest.mark.parametrize("value", [object(), 1j, np.zeros(2, np.complex128), {"a": {2: Path("x")}}])
def test_other_values_are_not_packed(value: object) -> None:
    with pytest.raises(TypeError, match="no plain value"):
        pack(value)
