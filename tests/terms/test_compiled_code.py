"""Compiled code is kept on disk, is never stale, and importing makes none of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.terms.compiled_code import Compilations

PROJECT = Path(__file__).resolve().parents[2]
CALLEE = """
from headwater.terms.compiled_code import compiled
@compiled
def add(x):
    return x + {}
"""
CALLER = """
from headwater.terms.compiled_code import compiled
from callee import add
@compiled
def add_twice(x):
    return add(add(x))
"""
CALL = """
import os, sys
from pathlib import Path
from headwater.terms import compiled_code
folder = Path(sys.argv[1])
compiled_code.SOURCE_FOLDERS = (folder,)
sys.path.insert(0, str(folder))
from caller import add_twice
if len(sys.argv) > 2:
    os.utime(folder / "callee.py", (2**32, 2**32))
assert not add_twice.signatures
count = add_twice.stats
add_twice(1)
assert compiled_code.COMPILATIONS.begun == compiled_code.COMPILATIONS.done
assert compiled_code.COMPILATIONS.done == 0 or sum(count.cache_misses.values())
print(add_twice(1), sum(count.cache_hits.values()), sum(count.cache_misses.values()), add_twice.stats.cache_path)
"""
RACE = """
import os, sys, threading
from pathlib import Path
from numba import typeof
from headwater.terms import compiled_code
folder = Path(sys.argv[1])
compiled_code.SOURCE_FOLDERS = (folder,)
sys.path.insert(0, str(folder))
from callee import add
one, other = typeof(1), typeof(1.5)
made = {kind: add.overloads[kind,] for kind in (one, other) if add.compile((kind,))}
target = add.targetctx
add._cache.flush()
caches = [compiled_code._open_cache(add.py_func, False) for _ in made]
replace, has_come, has_begun, has_ended = os.replace, *(threading.Event() for _ in range(3))
counts = {}
def replace_in_turns(*paths):
    # Both know what is there. The first writes a file, then the second all of its files, then the first the others.
    name = threading.current_thread().name
    counts[name] = counts.get(name, 0) + 1
    if name == "second":
        has_come.set()
        assert has_begun.wait(20)
    else:
        assert (has_come if counts[name] == 1 else has_ended).wait(20)
    replace(*paths)
    if name == "first":
        has_begun.set()
os.replace = replace_in_turns
def save(cache, kind):
    cache.save_overload((kind,), made[kind])
    if threading.current_thread().name == "second":
        has_ended.set()
threads = [threading.Thread(target=save, args=(cache, kind), name=name)
    for name, cache, kind in zip(("first", "second"), caches, made)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
fresh = compiled_code._open_cache(add.py_func, False)
for kind in made:
    found = fresh.load_overload((kind,), target)
    assert found is not None and found.signature.args == (kind,), (kind, found and found.signature)
"""
IMPORT_ALL = """
import importlib, pkgutil, sys
written = []
def watch(event, arguments):
    is_write = event == "open" and arguments[0] != "/dev/null" and arguments[2] & 3
    if is_write or event in ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "tempfile.mkstemp"):
        written.append((event, *map(str, arguments)))
sys.addaudithook(watch)
import headwater
for module in pkgutil.walk_packages(headwater.__path__, "headwater."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from numba.core.dispatcher import Dispatcher
modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "headwater"]
functions = {function for module in modules for function in vars(module).values() if isinstance(function, Dispatcher)}
assert len(functions) > 100
assert not [function for function in functions if function.signatures]
assert not written, written
"""


UNCOUNTED = """
import sys
from pathlib import Path
import numpy as np
from headwater.terms import compiled_code
folder = Path(sys.argv[1])
compiled_code.SOURCE_FOLDERS = (folder,)
sys.path.insert(0, str(folder))
from arrays import {function} as function
try:
    print(function(np.arange(4)))
except Exception as error:
    print("refused", error)
"""
ARRAYS = """
import numpy as np
from headwater.terms.compiled_code import compiled
@compiled(makes_arrays=True)
def double(numbers):
    return 2 * numbers
@compiled
def make(numbers):
    return 2 * numbers
@compiled
def cut(numbers):
    return numbers[1:]
@compiled
def call(numbers):
    return double(numbers)[0]
@compiled
def sum_up(numbers):
    total = 0
    for number in numbers[1:]:
        total += number
    return total
"""


def run_python(script: str, *arguments: str, **environment: str) -> str:
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("HEADWATER_COMPILED_CODE", "NUMBA_CACHE_DIR")
    }
    command = [sys.executable, "-B", "-c", script, *arguments]
    run = subprocess.run(command, cwd=PROJECT, env=inherited | environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder of sources in which one compiled function calls another, from another file."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "callee.py").write_text(CALLEE.format(1))
    (folder / "caller.py").write_text(CALLER)
    return folder


def call(sources: Path, *arguments: str, **environment: str) -> tuple[int, int, int, str]:
    """Value, cache hits, compilations and cache folder of `add_twice(1)` in a process of its own."""
    value, hits, misses, folder = run_python(CALL, str(sources), *arguments, **environment).split()
    return int(value), int(hits), int(misses), folder


def test_unchanged_sources_load_and_a_changed_callee_recompiles_its_callers(sources: Path) -> None:
    beside = str(sources / "__pycache__")
    assert call(sources) == (3, 0, 1, beside)
    assert call(sources) == (3, 1, 0, beside)
    (sources / "callee.py").write_text(CALLEE.format(10))
    assert call(sources) == (21, 0, 1, beside)
    assert call(sources) == (21, 1, 0, beside)
    assert len([*sources.rglob("*.nbc")]) == 2


def test_code_of_sources_that_changed_after_their_import_is_not_kept(sources: Path) -> None:
    assert call(sources, "touch") == (3, 0, 1, "None")


def test_processes_that_compile_at_the_same_time_keep_the_code_of_each(sources: Path) -> None:
    run_python(RACE, str(sources))


def test_functions_that_count_no_references_give_no_arrays(sources: Path) -> None:
    """Without a count, arrays that a function makes would never be given up, and those that it gives too soon."""
    (sources / "arrays.py").write_text(ARRAYS)
    printed = {
        name: run_python(UNCOUNTED.format(function=name), str(sources)).split()
        for name in ("double", "make", "cut", "call", "sum_up")
    }
    assert printed["double"] == ["[0", "2", "4", "6]"] and printed["sum_up"] == ["6"]
    assert [printed[name][0] for name in ("make", "cut", "call")] == ["refused"] * 3
    assert "makes_arrays=True" in " ".join(printed["call"])


@pytest.mark.parametrize("damage", ["cut", "other", "gone"])
def test_code_that_is_damaged_is_compiled_again(sources: Path, damage: str) -> None:
    folder = Path(call(sources)[3])
    (kept,) = folder.glob("caller.*.nbc")
    content = kept.read_bytes()
    if damage == "cut":
        kept.write_bytes(content[:-1])
    elif damage == "other":
        kept.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    else:
        kept.unlink()
    assert call(sources)[:3] == (3, 0, 1)
    assert call(sources)[:3] == (3, 1, 0)


@pytest.mark.parametrize("setting", ["HEADWATER_COMPILED_CODE", "NUMBA_CACHE_DIR"])
def test_a_setting_names_the_folder(sources: Path, tmp_path: Path, setting: str) -> None:
    value, hits, misses, folder = call(sources, **{setting: str(tmp_path / "given")})
    assert (value, hits, misses) == (3, 0, 1) and Path(folder).parent == tmp_path / "given"
    assert call(sources, **{setting: str(tmp_path / "given")}) == (3, 1, 0, folder)
    assert not (sources / "__pycache__").exists()


def test_a_package_that_cannot_be_written_keeps_code_in_the_users_cache_folder(sources: Path, tmp_path: Path) -> None:
    (sources / "__pycache__").write_text("a file where the folder should be, because root may write everywhere")
    value, hits, misses, folder = call(sources, XDG_CACHE_HOME=str(tmp_path / "user"))
    assert (value, hits, misses) == (3, 0, 1) and Path(folder).parent == tmp_path / "user" / "headwater"
    assert call(sources, XDG_CACHE_HOME=str(tmp_path / "user")) == (3, 1, 0, folder)
    blocked = tmp_path / "blocked"
    blocked.touch()
    assert call(sources, XDG_CACHE_HOME=str(blocked)) == (3, 0, 1, "None")


def test_importing_compiles_nothing_and_changes_no_file(tmp_path: Path) -> None:
    run_python(IMPORT_ALL, HEADWATER_COMPILED_CODE=str(tmp_path))
    assert not [*tmp_path.iterdir()]


def test_the_seconds_of_compiling_are_known_from_any_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Compilations(periods=[(1.0, 3.0), (5.0, 6.0)], period_begin=9.0)
    monkeypatch.setattr("headwater.terms.compiled_code.time.monotonic", lambda: 10.0)
    assert [found.seconds_since(instant) for instant in (0.0, 2.0, 5.5, 7.0, 9.5)] == [4.0, 3.0, 1.5, 1.0, 0.5]
    found.period_begin = None
    assert found.seconds_since(4.0) == 1.0


def test_what_is_compiled_is_no_time_of_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing compiled, the first tick takes seconds: a limit of half a second holds for the query alone."""
    (tmp_path / "s.tnq").write_text('1000\t<urn:a> <urn:p> "1" .\n9000\t<urn:a> <urn:p> "2" .\n')
    script = f"""
import headwater as hw
engine = hw.Engine(in_process=True)
engine.stream("s", hw.files({str(tmp_path / "s.tnq")!r}))
text = "SELECT ?x (COUNT(*) AS ?n) FROM STREAM <s> [RANGE 1s TUMBLING] WHERE {{ ?x <urn:p> ?v }} GROUP BY ?x"
engine.register(text, limits={{"seconds": 0.5}})
assert not engine.run().suspended
"""
    monkeypatch.setenv("HEADWATER_COMPILED_CODE", str(tmp_path / "nothing"))
    run = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_who_calls_from_python_is_told_once_that_functions_are_compiled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = Compilations(functions=100, compiled=12, periods=[(1.0, 2.0)])
    found.tell("/code")
    assert not caplog.records
    found.periods.append((4.0, 6.0))
    found.tell("/code")
    found.tell("/code")
    words = "compiling, at the first use only: 12 of up to 100 functions; their code is kept, here in /code"
    assert [record.getMessage() for record in caplog.records] == [words]
