"""What a checkpoint folder belongs to, and what a run takes over from it when its queries have changed meanwhile.

Queries that are the same go on where they were. Those that are new, or have another text or other settings, begin with
what the windows in the checkpoint still hold and say from when their answers are complete. Those that are no longer
there are forgotten. How far the streams were read is kept in any case: nothing is read twice, nothing is left out.
"""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from headwater.algebra.partitioning import SPREAD, OneShard
from headwater.errors import HeadwaterError, SettingError, report_file_errors
from headwater.execution.registered import RegisteredQuery
from headwater.running.program_description import ProgramDescription
from headwater.sharding.shard_plan import ShardPlan, find_shard_keys
from headwater.sharding.shard_planning import plan_shards
from headwater.terms.arguments import check_each
from headwater.terms.durable_files import create_folder, lock_file, replace_file
from headwater.terms.ids.inline_layout import ID_FORMAT
from headwater.terms.ids.term_ids import encode
from headwater.terms.ids.term_key import adopt_key, other_key_message, term_key
from headwater.terms.model import NamedNode
from headwater.terms.names import iri_to_name

logger = logging.getLogger(__name__)

CHECKPOINT_FORMAT = 6
"""Raised by one whenever the state of programs and evaluators, as plain values, changes its shape."""
FORMATS = [CHECKPOINT_FORMAT, ID_FORMAT]


class CheckpointError(HeadwaterError, RuntimeError):
    """A checkpoint folder that cannot be used; the message says why, and what to do."""


def report_checkpoint_damage(path: Path) -> AbstractContextManager[None]:
    """A context that turns what reading and writing a file of a checkpoint raises into a `CheckpointError`."""
    remedy = (
        "name a folder that can be made and written, or make room, and run again: a batch that could not be noted is "
        "delivered again. If it is damaged, use another folder, or delete this one to begin anew"
    )
    return report_file_errors(CheckpointError, f"the checkpoint {path}", remedy)


@contextmanager
def lock_checkpoint(folder: Path) -> Iterator[None]:
    """Make the folder of a checkpoint, if there is none, and keep other runs from it.

    The folder is for its owner alone: it holds parts of the streams. One that is there and holds something else keeps
    its permissions.
    """
    with report_checkpoint_damage(folder):
        create_folder(folder, mode=_PRIVATE)
        is_ours = all(one.name in _OWN_FILES or one.name.startswith(".") for one in folder.iterdir())
        if is_ours and folder.stat().st_uid == os.getuid():
            folder.chmod(_PRIVATE)
        try:
            lock = lock_file(folder / _LOCK)
        except BlockingIOError:
            raise CheckpointError(
                f"another run uses the checkpoint {folder}: stop it, or give this run another folder"
            ) from None
    try:
        yield
    finally:
        os.close(lock)


def check_format(folder: Path, found: object) -> None:
    """Refuse what another version of Headwater wrote; `found` are its formats of checkpoints and of ids."""
    if found != FORMATS:
        raise CheckpointError(
            f"the checkpoint {folder} was made by another version of Headwater, whose state this one cannot "
            "read: finish with that version, or use another folder and begin anew"
        )


@dataclass(frozen=True, slots=True)
class Continued:
    """What a run takes over from its checkpoint, by the names of the queries."""

    kept: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def sentences(self) -> list[str]:
        """What happens to whom, for people; nothing where every query goes on."""
        if not (self.changed or self.new or self.dropped):
            return []
        begins = "begins with what the windows in the checkpoint still hold"
        found = [f"{name} goes on where it was" for name in self.kept]
        found += [
            f"{name} has another text or other settings than before: its state is lost, it {begins}"
            for name in self.changed
        ]
        found += [f"{name} is new: it {begins}" for name in self.new]
        return found + [f"{name} is no longer there: its state is forgotten" for name in self.dropped]


@dataclass(frozen=True)
class CheckpointRecord:
    """The file `headwater.json` of a checkpoint."""

    run: str
    runner: str
    queries: Mapping[str, str]
    """The fingerprint of each query."""
    shards: tuple[int, ...] = ()
    routes: Mapping[str, tuple[tuple[int, int], ...]] | None = None
    records: tuple[str, ...] = ()
    """The streams that Spark reads itself."""
    large: tuple[int, ...] = ()
    """The ids of the keys whose triples are spread over the shards."""

    @classmethod
    def of(cls, run: str, runner: str, description: ProgramDescription, records: Collection[str]) -> CheckpointRecord:
        cut = description.sharding
        prints = {query.plan.name: query.fingerprint for query in description.queries}
        keys, routes = (cut.keys, cut.routes) if cut else ((), None)
        return cls(run, runner, prints, keys, routes, tuple(sorted(records)), cut.large if cut else ())

    @classmethod
    def read(cls, folder: Path) -> CheckpointRecord | None:
        """The record of a checkpoint; None where the folder is none yet."""
        path = folder / _FILE
        if not path.exists():
            if states := [name for name in STATES if (folder / name).exists()]:
                raise CheckpointError(
                    f"the checkpoint {folder} has a state ({states[0]}) and no {_FILE}, which says whose state it is: "
                    "put that file back, or use another folder and begin anew"
                )
            return None
        with report_checkpoint_damage(path):
            known: dict[str, Any] = json.loads(path.read_text("utf-8"))
            check_format(folder, [known.get("format", 1), known.get("ids", 1)])
            if not adopt_key(bytes.fromhex(known["key"])):
                raise CheckpointError(other_key_message(f"the checkpoint {folder}"))
            routes = known["routes"]
            if routes is not None:
                routes = {stream: tuple((number, place) for number, place in found) for stream, found in routes.items()}
            return cls(
                known["run"],
                known["runner"],
                dict(known["queries"]),
                tuple(known["shards"]),
                routes,
                tuple(known["records"]),
                tuple(known.get("large", ())),
            )

    def write(self, folder: Path) -> None:
        content = {
            "format": CHECKPOINT_FORMAT,
            "ids": ID_FORMAT,
            "key": term_key().hex(),
            "run": self.run,
            "runner": self.runner,
            "queries": dict(self.queries),
            "shards": list(self.shards),
            "routes": self.routes,
            "records": list(self.records),
            "large": list(self.large),
        }
        with report_checkpoint_damage(folder):
            replace_file(folder / _FILE, json.dumps(content, indent=2).encode() + b"\n")


Switch: TypeAlias = Callable[[CheckpointRecord, CheckpointRecord], CheckpointRecord | None]
"""Has a checkpoint with the first record go on in the runner, and under the name, of the second one.

Gives the record that it has then; None where the run is to end before that.
"""
IN_PROCESS, ON_SPARK, IN_REAL_TIME = "in process", "on Spark", "in real-time mode"
"""The runners, as records and messages name them."""
_SWITCHED = {ON_SPARK, IN_REAL_TIME}
"""Those that go on with checkpoints of each other."""
_FILE = "headwater.json"
_LOCK = "lock"
STATE = "state"
"""The state of a run in process."""
SPARK_STATE = "spark"
"""The folder of the state on Spark."""
REALTIME_STATE = "realtime"
"""The folder of the state in real-time mode."""
_OLD_STATE = "state.pickle"
STATES = (STATE, SPARK_STATE, REALTIME_STATE, _OLD_STATE)
_OWN_FILES = {_FILE, _LOCK, "spool", "planned.jsonl", *STATES}
_PRIVATE = 0o700


def adopt_checkpoint_key(folder: Path) -> None:
    """Make ids with the key of a checkpoint from now on, if there is one and this process has made none yet.

    What is wrong with the checkpoint is said when a run claims it.
    """
    with suppress(OSError, ValueError, KeyError, TypeError):
        adopt_key(bytes.fromhex(json.loads((folder / _FILE).read_text("utf-8"))["key"]))


def check_sharding(record: CheckpointRecord, wanted: ShardPlan | None, folder: Path) -> ShardPlan | None:
    """The sharding of a run that continues a checkpoint; a `CheckpointError` where the state is cut otherwise."""
    if not record.shards:
        return None
    asked = f"the state in the checkpoint {folder} is cut into {len(record.shards)} shards, and"
    todo = "use another folder, or run with the queries that it was made with"
    if wanted is None:
        raise CheckpointError(
            f"{asked} this run has one, because it asks for one or these queries cannot be cut so: ask for "
            f"{len(record.shards)} shards; {todo}"
        )
    if wanted.keys != record.shards:
        raise CheckpointError(f"{asked} this run asks for {len(wanted.keys)}: ask for as many, or use another folder")
    for stream, routes in wanted.routes.items():
        before = dict((record.routes or {}).get(stream, ()))
        if any(before.get(predicate, place) != place for predicate, place in routes):
            raise CheckpointError(
                f"{asked} these queries need the triples of the stream {iri_to_name(stream)} by another key: {todo}"
            )
    return wanted


def check_spread(spread: Any) -> bool | tuple[str, ...]:
    """The setting `spread`: whether triples are spread over the shards, or the IRIs of the keys of which they are."""
    if isinstance(spread, bool):
        return spread
    wanted = "True, False or the IRIs of keys"
    if isinstance(spread, str):
        raise SettingError(f"spread must be {wanted}, and it is {spread!r}: use [{spread!r}]")
    return tuple(check_each("spread", spread, lambda one: isinstance(one, str), wanted))


def choose_shard_plan(
    queries: Sequence[RegisteredQuery],
    known: CheckpointRecord | None,
    wanted: int | None,
    usual: Callable[[], int],
    *,
    has_static_default: bool,
    spread: bool | Sequence[str] = False,
) -> ShardPlan | None:
    """How the work of a new run is cut; None where it is not. A checkpoint has been cut once and for all.

    `spread` says that triples are spread over the shards: all, or those of the keys with these IRIs.
    """
    if (known is not None and not known.shards) or not queries:
        return None
    shards = wanted or (len(known.shards) if known else usual())
    if shards == 1:
        return None
    large = () if isinstance(spread, bool) else tuple(sorted(encode(NamedNode(iri)) for iri in spread))
    spreads = bool(spread)
    if known is not None and known.routes is not None:
        is_spread = any(place in SPREAD for some in known.routes.values() for _, place in some)
        if spread and (large or spreads) != (known.large or is_spread):
            raise CheckpointError(
                "the checkpoint was begun with another setting of spread, which cannot change: leave spread out, or "
                "use another folder and begin anew"
            )
        large, spreads = known.large, is_spread
    how = {"has_static_default": has_static_default, "spreads": spreads}
    found = plan_shards(queries, find_shard_keys(shards), **how, large=large)
    return None if isinstance(found, OneShard) else found


@dataclass(frozen=True, slots=True)
class CheckpointClaim:
    """The right of a run to a checkpoint folder: the name of the run, and the record to write there.

    `continued` compares the queries of the record before with those of the run; None where the folder was new.
    """

    run: str
    continued: Continued | None = None
    record: CheckpointRecord | None = None
    folder: Path = Path()

    def write(self) -> None:
        """Make the folder the checkpoint of this run. A state that is there must have been read before."""
        if self.record is not None:
            self.record.write(self.folder)


def claim_checkpoint(
    folder: Path,
    description: ProgramDescription,
    runner: str,
    records: Collection[str] = (),
    run: str | None = None,
    switch: Switch | None = None,
) -> CheckpointClaim:
    """Begin a checkpoint in a folder, or check that this run can continue the one that is there.

    `run` is the name of the run where it has begun already, `switch` what makes use of one that another runner made.
    An existing record is replaced by `CheckpointClaim.write` only, after its state has been read.
    """
    known = CheckpointRecord.read(folder)
    if known is None:
        run = run or new_run()
        begun = CheckpointClaim(run, None, CheckpointRecord.of(run, runner, description, records), folder)
        begun.write()
        return begun
    if known.runner != runner and (switch is None or not {known.runner, runner} <= _SWITCHED):
        raise CheckpointError(
            f"the checkpoint {folder} was made {known.runner}, and this run is {runner}: use another folder"
        )
    check_sharding(known, description.sharding, folder)
    now = CheckpointRecord.of(known.run, runner, description, records)
    if known.records != now.records:
        raise CheckpointError(
            f"the checkpoint {folder} goes on with the topics of {_names_of(known.records)}, this run reads those of "
            f"{_names_of(now.records)}; Spark cannot add or drop such a stream: use another folder"
        )
    continued = compare_queries(known.queries, now.queries)
    for sentence in continued.sentences():
        logger.warning("%s", sentence)
    if switch is not None and known.runner != runner:
        switched = switch(known, replace(now, run=run or new_run()))
        if switched is None:
            return CheckpointClaim(known.run, continued)
        now = replace(now, run=switched.run)
        logger.info("the checkpoint %s was made %s, and goes on %s", folder, known.runner, runner)
    return CheckpointClaim(now.run, continued, now, folder)


def compare_queries(before: Mapping[str, str], now: Mapping[str, str]) -> Continued:
    """Which queries are kept, changed, new and dropped, by their fingerprints."""
    return Continued(
        kept=tuple(name for name, mark in now.items() if before.get(name) == mark),
        changed=tuple(name for name, mark in now.items() if name in before and before[name] != mark),
        new=tuple(name for name in now if name not in before),
        dropped=tuple(name for name in before if name not in now),
    )


def _names_of(streams: Sequence[str]) -> str:
    return ", ".join(map(iri_to_name, streams)) or "no stream"


def new_run() -> str:
    """A name for a run that no other has."""
    return uuid.uuid4().hex[:12]
