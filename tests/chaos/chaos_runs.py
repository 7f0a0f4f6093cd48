"""A chaos run: a seed decides a program, its faults, and how often it is begun again."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import headwater as hw
from tests.chaos.endpoint_process import tell
from tests.chaos.lives import Ending, Life, live
from tests.chaos.oracle import ChaosError, Outcome, compare, compare_data, expect
from tests.chaos.random_programs import RandomProgram, a_program


@dataclass
class Story:
    """What happened in a run, for whoever looks for the fault, and for the counts of a campaign."""

    seed: int
    program: RandomProgram
    lives: list[tuple[Life, Ending]] = field(default_factory=list)

    def tell(self) -> str:
        lines = [f"seed {self.seed}: {self.program.evaluator}, {self.program.format}, delay {self.program.delay}"]
        lines += [f"  {query.name}: {query.text} {dict(query.options)}" for query in self.program.queries]
        if self.program.visitor is not None:
            visitor = self.program.visitor
            lines.append(f"  {visitor.name} comes and goes: {visitor.text} {dict(visitor.options)}")
        lines += [f"  {life} -> {ending}" for life, ending in self.lives]
        return "\n".join(lines)

    def counts(self, wanted: Outcome) -> Counter[str]:
        """What there was to see in a run from which this was expected."""
        found = Counter(f"ended {ending.how}" for _, ending in self.lives)
        found.update(f"fault {kind}" for _, ending in self.lives for kind in set(ending.struck))
        found["lives"] += len(self.lives)
        found["with a visitor"] += self.program.visitor is not None
        found["with an endpoint"] += self.program.service is not None
        found["with an endpoint that failed"] += any(self.program.service and life.behaviours for life, _ in self.lives)
        found["with changing data"] += self.program.changes_data
        found["answers"] += sum(own.total() for own in wanted.answers.values())
        found["dead letters"] += wanted.letters.total()
        found["runs with answers"] += any(wanted.answers.values())
        found["runs"] += 1
        return found


def warm_up(folder: Path, programs: int) -> None:
    """Run programs in this process, so that forks have what they need: modules, compiled code."""
    for number in range(programs):
        random = Random(number)
        program = replace(a_program(random, 1), format=("json", "csv", "nquads", "parquet")[number % 4])
        run = folder / str(number)
        run.mkdir(parents=True)
        program.write_data(run)
        program.write_part(run, 0)
        engine = program.make_engine(
            run, visitor=True, in_process=True, checkpoint=run / "checkpoint", dead_letters=run / "letters"
        )
        engine.run(sinks=[hw.FileSink(run / "out", format=program.format)])
    shutil.rmtree(folder)


def run_in_process(seed: int, folder: Path, url: str, orders: Path) -> Counter[str]:
    """Run a seed in process; gives what there was to see. A `ChaosError` says what is wrong, and tells the story."""
    random = Random(seed)
    lives = [*(Life.of(random) for _ in range(random.randint(1, 4))), Life()]
    program = a_program(random, len(lives), url if random.randrange(8) == 0 else None)
    story = Story(seed, program)
    run = folder / "run"
    run.mkdir(parents=True)
    (folder / "url").write_text(url)
    try:
        program.write_data(run)
        for number, life in enumerate(lives):
            program.write_part(run, number)
            tell(orders, life.behaviours if program.service else ())
            ending = live(program, folder, number, life, is_last=number == len(lives) - 1)
            story.lives.append((life, ending))
            if not ending.is_expected:
                raise ChaosError(f"life {number} {ending.how}: {ending.text}")
            check_what_was_seen(program, folder)
        if story.lives[-1][1].how != "done":
            raise ChaosError(f"the last run, without a fault, {ending.how}: {ending.text}")
        tell(orders, ())
        expect(program, folder)
        failed = any(life.behaviours for life in lives)
        wanted = compare(program, folder, endpoint_failed=failed)
        if program.changes_data:
            compare_data(folder)
    except ChaosError as error:
        raise ChaosError(f"{error}\n{story.tell()}") from None
    return story.counts(wanted)


def check_what_was_seen(program: RandomProgram, folder: Path) -> None:
    """Whoever has read a file of answers has read the truth: it is there, as it was, after each later run."""
    seen, out = folder / "seen", folder / "run" / "out"
    for query in program.queries:
        if query.name == program.service:
            continue
        for path in (seen / query.name).glob("*"):
            now = out / query.name / path.name
            if not now.exists() or now.read_bytes() != path.read_bytes():
                raise ChaosError(f"{query.name}/{path.name} was delivered, and is now another one, or gone")
        if (out / query.name).exists():
            hidden = shutil.ignore_patterns(".*")
            shutil.copytree(out / query.name, seen / query.name, dirs_exist_ok=True, ignore=hidden)
