"""Who knows the source but not the key cannot make two terms one, and what has ids brings its key along."""

from __future__ import annotations

import json
import os
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import headwater as hw
from headwater.datasets.folder import MANIFEST
from headwater.terms.ids.term_ids import encode
from headwater.terms.ids.term_key import term_key
from headwater.terms.ids.text_hash import hash_text
from headwater.terms.model import NamedNode

MULTIPLIERS = (0x9E3779B97F4A7C15, 0xF5C1B7E151628AED)
"""The constants that the hash once had in place of a key: all that an attacker could read."""
IN_IRIS = frozenset(range(0x21, 0x7F)) - frozenset(b'<>"{}|\\^`%')


def colliding_iris(count: int) -> list[str]:
    """IRIs that had one id while the hash had no key: the ninth to sixteenth byte make a factor zero."""
    state_key, second_key = MULTIPLIERS
    for number in range(100_000):
        first, second = struct.unpack("<2Q", b"<http://%08d" % number)
        product = (first ^ state_key) * (second ^ second_key)
        wiping = ((product ^ product >> 64) & ((1 << 64) - 1)).to_bytes(8, "little")
        if set(wiping) <= IN_IRIS:
            return [f"http://{number:08d}{wiping.decode()}{tail:08d}" for tail in range(count)]
    raise AssertionError("none was found")


def test_iris_that_once_had_one_id_have_different_ids() -> None:
    iris = colliding_iris(1000)
    assert len({hash_text(f"<{iri}>".encode()) for iri in iris}) == len(iris)


def test_a_join_on_such_terms_finds_nothing(tmp_path: Path) -> None:
    one, other = colliding_iris(2)
    stream = tmp_path / "s.tnq"
    stream.write_text(f"1\t<urn:a> <urn:p> <{one}> .\n2\t<{other}> <urn:q> <urn:b> .\n")
    engine = hw.Engine(in_process=True)
    engine.stream("s", hw.files(stream))
    engine.register(
        "SELECT (COUNT(*) AS ?n) WHERE { STREAM <s> [RANGE 1h] { ?x <urn:p> ?y . ?y <urn:q> ?z } }", emit="rstream"
    )
    counts: list[hw.AnswerBatch] = []
    engine.run(on_batch=counts.append)
    assert {count for batch in counts for count in batch.to_arrow()["n"].to_pylist()} == {0}


def run_python(script: str, home: Path, **variables: str) -> str:
    """What a script prints in an installation of its own."""
    found = {**os.environ, "XDG_DATA_HOME": str(home), **variables}
    run = subprocess.run([sys.executable, "-c", script], env=found, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


HASH = "from headwater.terms.ids.text_hash import hash_text; print(hash_text(b'<urn:a>'))"


def test_each_installation_has_a_key_of_its_own_that_others_cannot_read(tmp_path: Path) -> None:
    first, again, second = (run_python(HASH, tmp_path / name) for name in ("a", "a", "b"))
    assert first == again != second
    assert stat.S_IMODE((tmp_path / "a" / "headwater" / "term-key").stat().st_mode) == 0o600
    key_file = str(tmp_path / "a" / "headwater" / "term-key")
    assert run_python(HASH, tmp_path / "b", HEADWATER_KEY_FILE=key_file) == first


def test_without_a_place_for_a_key_it_is_random(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert run_python(HASH, tmp_path / "file") != run_python(HASH, tmp_path / "file")


def test_a_key_file_without_a_key_is_told(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("abc")
    run = subprocess.run(
        [sys.executable, "-c", HASH],
        env={**os.environ, "HEADWATER_KEY_FILE": str(tmp_path / "key")},
        capture_output=True,
        text=True,
    )
    assert "HEADWATER_KEY_FILE names" in run.stderr and "64 hexadecimal digits" in run.stderr


COUNT = """
import headwater as hw
from pyoxigraph import NamedNode, Triple
engine = hw.Engine(in_process=True)
query = engine.register("SELECT ?y WHERE {{ STREAM <s> [NOW] {{ ?x <urn:p> ?y }} ?y <urn:q> ?z }}")
engine.dataset({folder!r})
a, p, b = map(NamedNode, ("urn:a", "urn:p", "urn:b"))
engine.stream("s", hw.memory([(1, [Triple(a, p, b)])]))
rows = []
engine.run(on_answer=lambda answer: rows.extend(answer.rows))
print(len(rows))
"""


def test_a_data_set_of_another_installation_is_opened_with_its_key(tmp_path: Path) -> None:
    (tmp_path / "data.nt").write_text("<urn:b> <urn:q> <urn:c> .\n")
    folder = str(tmp_path / "set")
    load = f"from headwater.datasets.loading.bulk_load import load; load({folder!r}, [{str(tmp_path / 'data.nt')!r}])"
    run_python(load, tmp_path / "a")
    assert run_python(COUNT.format(folder=folder), tmp_path / "b") == "1"


def test_a_data_set_with_another_key_than_the_process_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.nt").write_text("<urn:b> <urn:q> <urn:c> .\n")
    folder = str(tmp_path / "set")
    load = f"from headwater.datasets.loading.bulk_load import load; load({folder!r}, [{str(tmp_path / 'data.nt')!r}])"
    run_python(load, tmp_path / "a")
    assert json.loads((tmp_path / "set" / MANIFEST).read_text())["key"] != term_key().hex()
    with pytest.raises(hw.DataSetError, match=r"another key of term ids.*HEADWATER_KEY_FILE"):
        hw.DataSet.open(folder)


RUN = """
import headwater as hw
engine = hw.Engine(in_process=True, checkpoint={checkpoint!r})
engine.stream("s", hw.files({stream!r}))
engine.register("SELECT ?x ?z WHERE {{ STREAM <s> [RANGE 1h] {{ ?x <urn:p> ?y . ?y <urn:q> ?z }} }}", name="Q")
rows = []
engine.run(drain=False, on_answer=lambda answer: rows.extend(answer.rows))
print(len(rows))
"""


def test_a_checkpoint_goes_on_in_another_installation(tmp_path: Path) -> None:
    stream = tmp_path / "s.tnq"
    script = RUN.format(checkpoint=str(tmp_path / "checkpoint"), stream=str(stream))
    stream.write_text("1\t<urn:a> <urn:p> <urn:b> .\n2\t<urn:k> <urn:p> <urn:l> .\n")
    assert run_python(script, tmp_path / "a") == "0"
    with stream.open("a") as more:
        more.write("3\t<urn:b> <urn:q> <urn:c> .\n4\t<urn:k> <urn:p> <urn:l> .\n5\t<urn:k> <urn:p> <urn:l> .\n")
    assert run_python(script, tmp_path / "b") == "1"


def test_ids_of_this_process_do_not_depend_on_when_they_are_made() -> None:
    assert encode(NamedNode("urn:a")) == hash_text(b"<urn:a>")
