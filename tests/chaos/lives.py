"""One run of a program after the other on one checkpoint, each in a fork and with faults of its own.

A fork has everything imported and compiled code loaded, so a run takes milliseconds, and SIGKILL is what it is.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import headwater as hw
from headwater.commands.ending import failure_text
from headwater.terms.model import Literal, NamedNode, Triple
from tests.chaos.endpoint_process import BEHAVIOURS, SLOW_BEHAVIOURS
from tests.chaos.faulty_disk import WRITE_FAULTS, Fault, FaultyDisk
from tests.chaos.random_programs import OTHER_GRAPH, RandomProgram
from tests.kernel.generated_queries import EX

LONGEST_SECONDS = 240
"""After so long a run hangs. Code that is compiled for the first time takes a minute on a busy machine."""
RETRIES = 2
VISITS = ("there", "there", "away", "comes", "goes")
FAILING = ("full", "broken", "unreadable", "endpoint", "worker", "broker")
"""The faults at which a run may end with an error."""
DEFECT = "HEADWATER_DEBUG"
"""What `headwater` says of an error that was not written for people."""


@dataclass(frozen=True)
class Life:
    """What happens in one run.

    `stops_at` is after how many batches it is stopped; `visit` says whether the visitor is there, and `visit_at` after
    how many batches it comes or goes; `behaviours` are those of the endpoint, for one request each.
    """

    faults: tuple[Fault, ...] = ()
    stops_at: int | None = None
    visit: str = "there"
    visit_at: int = 1
    behaviours: tuple[str, ...] = ()

    @classmethod
    def of(cls, random: Random) -> Life:
        faults = [_a_fault(random) for _ in range(random.choice([0, 1, 1, 1, 2]))]
        behaviours = a_row_of_behaviours(random)
        stops_at = random.randint(1, 4) if random.randrange(8) == 0 else None
        return cls(tuple(faults), stops_at, random.choice(VISITS), random.randint(1, 3), tuple(behaviours))


def a_row_of_behaviours(random: Random) -> list[str]:
    """What an endpoint does with the next requests."""
    # Slow ones take a second each.
    weights = [1 if kind in SLOW_BEHAVIOURS else 8 for kind in BEHAVIOURS]
    return random.choices(BEHAVIOURS, weights, k=random.choice([0, 0, 1, 2, 2, 9]))


def _a_fault(random: Random) -> Fault:
    if random.randrange(10) == 0:
        return Fault("unreadable", random.randint(1, 12), random.choice([1, 1, 3]), 0.0, random.randrange(2) == 0)
    kind = random.choice([*WRITE_FAULTS, *WRITE_FAULTS[:4]])
    # A run makes some dozen calls, or some hundreds: small numbers are as likely as large ones.
    at = round(2 ** random.uniform(0, 6.5))
    lasts = random.choice([1, 1, 3, 1000]) if kind in ("full", "broken") else 20 if kind == "slow" else 1
    return Fault(kind, at, lasts, random.choice([-86_400.0, -10.0, 0.5, 3600.0]) if kind == "clock" else 0.0)


@dataclass(frozen=True)
class Ending:
    """How a run ended: `killed`, `done`, `interrupted`, or `failed` with what the user reads; anything else is wrong.

    `struck` are the kinds of faults that happened.
    """

    how: str
    text: str
    struck: tuple[str, ...]

    @property
    def is_expected(self) -> bool:
        """Whether a run may end so: by a fault that happened, or well."""
        match self.how:
            case "done":
                return True
            case "killed":
                return any(kind in WRITE_FAULTS for kind in self.struck)
            case "interrupted":
                return "interrupt" in self.struck
            case "failed":
                has_reason = any(kind in FAILING for kind in self.struck)
                wrong = (DEFECT, "Traceback", "None)")
                return has_reason and bool(self.text) and not any(one in self.text for one in wrong)
        return False


def live(program: RandomProgram, folder: Path, number: int, life: Life, *, is_last: bool) -> Ending:
    """Run a program once, in a fork; the last one ends the streams."""
    return begin_life(program, folder, number, life, is_last=is_last).wait()


@dataclass(frozen=True)
class BegunLife:
    """A run that is at work in a fork."""

    fork: Fork
    life: Life
    asks_endpoint: bool

    def wait(self) -> Ending:
        """Wait for its end."""
        how, text = self.fork.wait()
        noted = self.fork.notes / "struck"
        struck = tuple(noted.read_text().split()) if noted.exists() else ()
        if self.asks_endpoint and self.life.behaviours:
            struck = (*struck, "endpoint")
        return Ending(how, text, struck)


def begin_life(
    program: RandomProgram,
    folder: Path,
    number: int,
    life: Life,
    *,
    is_last: bool,
    sources: Mapping[str, Any] | None = None,
    until: Path | None = None,
) -> BegunLife:
    """Run a program in a fork; `sources` are those of streams that do not come from files.

    With `until` it is stopped when there is a file of that name, and faults of the disk meet receivers, too.
    """
    notes = folder / f"life-{number}"
    notes.mkdir()

    def work() -> None:
        run = folder / "run"
        note = noting(notes / "struck")
        acknowledge = noting(folder / "acknowledged")
        engine = program.make_engine(
            run,
            visitor=life.visit in ("there", "goes"),
            sources=sources,
            in_process=True,
            evaluator=program.evaluator,
            checkpoint=run / "checkpoint",
            dead_letters=run / "letters",
            batch_bytes=program.batch_bytes,
        )
        prepare_service(program, engine, folder)
        data = hw.DataSet.open(run / "data") if program.changes_data else None

        def on_progress(progress: hw.Progress) -> None:
            note_suspension(program, progress, folder)
            if life.stops_at == progress.batches:
                engine.stop()
            if program.visitor is not None and life.visit_at == progress.batches:
                if life.visit == "comes":
                    program.visitor.register(engine)
                elif life.visit == "goes":
                    engine.drop(program.visitor.name)
            if data is not None and progress.batches % 3 == 0:
                mark = f"{number}-{progress.batches}"
                acknowledge(f"begin {mark}")
                data.insert([Triple(NamedNode(EX + "mark"), NamedNode(EX + "is"), Literal(mark))], OTHER_GRAPH)
                acknowledge(f"done {mark}")

        if until is not None:
            threading.Thread(target=_stop_at_file, args=(engine, until), daemon=True).start()
        FaultyDisk(run, life.faults, note, counts_all_threads=until is not None).install()
        engine.run(drain=is_last, sinks=[hw.FileSink(run / "out", format=program.format)], on_progress=on_progress)

    return BegunLife(Fork.begin(work, notes), life, program.service is not None)


def _stop_at_file(engine: hw.Engine, path: Path) -> None:
    while not path.exists():
        threading.Event().wait(0.02)
    engine.stop()


def prepare_service(program: RandomProgram, engine: hw.Engine, folder: Path) -> None:
    """Say how the endpoint is asked; a query that it has suspended in an earlier run goes on."""
    if program.service is not None:
        engine.endpoint((folder / "url").read_text(), timeout=1.0, retries=RETRIES, concurrent=1)
        if (folder / "suspended").exists():
            engine.resume(program.service)
            (folder / "suspended").unlink()


def note_suspension(program: RandomProgram, progress: hw.Progress, folder: Path) -> None:
    """Remember that the query which asks the endpoint is suspended; no other query may be."""
    if progress.suspended:
        assert list(progress.suspended) == [program.service], progress.suspended
        (folder / "suspended").touch()


@dataclass
class Fork:
    """A process that does something, and whose standard error goes to a file of `notes`."""

    pid: int
    notes: Path
    _status: int | None = None

    @classmethod
    def begin(cls, work: Callable[[], None], notes: Path) -> Fork:
        child = os.fork()
        if child == 0:
            _work_and_exit(work, notes)
        return cls(child, notes)

    @property
    def is_alive(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is None

    def wait(self) -> tuple[str, str]:
        """Wait for the end; how it ended, and its last words."""
        if self._status is None:
            _, self._status = os.waitpid(self.pid, 0)
        if os.WIFSIGNALED(self._status):
            number = os.WTERMSIG(self._status)
            return ("killed", "") if number == signal.SIGKILL else (f"ended by signal {number}", "")
        result: dict[str, Any] = {"how": f"ended with code {os.WEXITSTATUS(self._status)}", "text": ""}
        if (self.notes / "ending.json").exists():
            result = json.loads((self.notes / "ending.json").read_text())
        said = (self.notes / "stderr").read_text("utf-8", "replace")
        if "Traceback" in said or "Exception ignored" in said:
            return "showed a traceback", said
        return result["how"], result["text"]


def in_fork(work: Callable[[], None], notes: Path) -> tuple[str, str]:
    """Do something in a fork; gives how it ended, and its last words."""
    return Fork.begin(work, notes).wait()


def _work_and_exit(work: Callable[[], None], notes: Path) -> None:
    os.dup2(os.open(notes / "stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    report = os.open(notes / "ending.json.part", os.O_WRONLY | os.O_CREAT)
    rename, put = os.rename, os.write
    how, text = "done", ""
    try:
        warnings.simplefilter("error")
        # A process that was started in the background ignores it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        faulthandler.dump_traceback_later(LONGEST_SECONDS, exit=True)
        work()
    except KeyboardInterrupt:
        how = "interrupted"
    except BaseException as error:
        how, text = "failed", failure_text(error)
        if DEFECT in text:
            traceback.print_exc()
    finally:
        put(report, json.dumps({"how": how, "text": text}).encode())
        rename(notes / "ending.json.part", notes / "ending.json")
        os._exit(0)


def noting(path: Path) -> Callable[[str], None]:
    """What appends a line to a file at once, whatever happens next."""
    descriptor, put = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), os.write

    def note(line: str) -> None:
        put(descriptor, f"{line}\n".encode())

    return note
