"""Chaos runs in process whose streams come through an MQTT broker that is killed, stopped and cut off.

A message with QoS 1 comes at least once. What is promised (docs/reference/connectors.md): a message is acknowledged
when it is in the spool, nothing is lost, and what is in the spool is as safe as a file. So two things are held:

- The spool has each message that was sent, in the order in which they were first sent, and each of them once unless
  something happened after which a broker has to send it again: the connection broke, the broker or the run was killed.
- The answers and dead letters are those that the definition gives, in one run without a failure, of what the spool has:
  a message that is there twice counts as the windows of the definition count it.

A broker that is killed has lost what it had not saved. Whoever sent that sends it again.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

from paho.mqtt.client import Client, MQTTMessageInfo
from paho.mqtt.enums import CallbackAPIVersion

import headwater as hw
from headwater.sources.payloads import Decoder, ReceivedMessage
from headwater.sources.spool import SpoolSource, element_lines, unreadable_line
from headwater.terms.model import Element
from tests.chaos.broker_keeper import KeptBroker
from tests.chaos.broker_plans import DOUBLING, BrokerFault, Send, Step, a_plan, interleave, kinds_of
from tests.chaos.chaos_runs import Story, check_what_was_seen
from tests.chaos.lives import BegunLife, Life, begin_life
from tests.chaos.oracle import ChaosError, compare, compare_data, expect, statements_of
from tests.chaos.random_programs import RandomProgram, a_program
from tests.kernel.generated_queries import STREAMS
from tests.sources.mosquitto_broker import subscribe

_ARRIVAL_SECONDS = 30.0
"""After so long without a fault a message that has not arrived is lost. Clients wait up to 2 s between two tries."""
_SEND_SECONDS = 20.0
_CONNECT_SECONDS = 5.0
_KEEP_SECONDS = 1e9
"""What was received is compared in the end, also where clocks have jumped."""
_SAYS_SOURCE = re.compile(r'"[^"]*"\]$')


@dataclass
class MqttStreams:
    """The streams of a run that come through the broker: their topics, clients and spools."""

    broker: KeptBroker
    run: str
    streams: tuple[str, ...]
    folder: Path
    sent: dict[str, list[str]] = field(default_factory=dict)
    """What was sent for each stream, first sendings only, as the lines that stand for it in the spool."""
    unsaved: list[Send] = field(default_factory=list)
    """What was sent since the broker has saved what it keeps."""

    def topic(self, stream: str) -> str:
        return f"chaos/{self.run}/{STREAMS.index(stream)}"

    def client_name(self, stream: str) -> str:
        return f"chaos-{self.run}-{STREAMS.index(stream)}"

    def spool(self, stream: str) -> Path:
        return self.folder / f"spool-{STREAMS.index(stream)}"

    def sources(self) -> dict[str, Any]:
        """The sources for a run that receives."""
        server = f"127.0.0.1:{self.broker.port}"
        return {
            stream: hw.mqtt(
                server,
                self.topic(stream),
                format="tnq",
                client=self.client_name(stream),
                spool=self.spool(stream),
                keep=_KEEP_SECONDS,
            )
            for stream in self.streams
        }

    def spools(self) -> dict[str, Any]:
        """What was received, as sources."""
        return {stream: SpoolSource(str(self.spool(stream)), _KEEP_SECONDS) for stream in self.streams}

    @contextmanager
    def subscribed(self) -> Iterator[None]:
        """Have the broker keep messages for the clients from the start, and forget them in the end."""
        for stream in self.streams:
            subscribe(self.broker.direct, self.client_name(stream), self.topic(stream))
        self.broker.order("save")
        try:
            yield
        finally:
            for stream in self.streams:
                with self._connected(self.client_name(stream)):
                    pass

    @contextmanager
    def _connected(self, name: str) -> Iterator[Client]:
        """A client of which the broker keeps nothing."""
        client = Client(CallbackAPIVersion.VERSION2, client_id=name, clean_session=True)
        client.connect("127.0.0.1", self.broker.direct)
        client.loop_start()
        try:
            yield client
            client.disconnect()
        finally:
            client.loop_stop()

    def perform(self, plan: tuple[Step, ...]) -> None:
        """Send the messages of a part, and have the faults happen among them."""
        waiting: list[Send] = []
        for step in plan:
            if isinstance(step, Send):
                self.sent.setdefault(step.stream, []).extend(spooled_as(step.payload))
                waiting.append(step)
                continue
            self._send(waiting)
            waiting = []
            time.sleep(step.sleep)
            self._have_happen(step)
        self._send(waiting)

    def _have_happen(self, fault: BrokerFault) -> None:
        match fault.kind:
            case "twice":
                self._send(self.unsaved[-1:])
            case "kill":
                self.broker.order("kill", fault.value)
                lost, self.unsaved = self.unsaved, []
                self._send(lost)
            case kind:
                self.broker.order(kind, fault.value)
                if kind == "save":
                    self.unsaved = []

    def _send(self, messages: list[Send]) -> None:
        if not messages:
            return
        with self._connected(f"chaos-{self.run}-sender") as client:
            begun: list[MQTTMessageInfo] = [
                client.publish(self.topic(one.stream), one.payload.encode(), qos=1) for one in messages
            ]
            for one in begun:
                one.wait_for_publish(_SEND_SECONDS)
                if not one.is_published():
                    raise RuntimeError("the broker does not take what is sent")
        self.unsaved += messages

    def wait_for_connections(self, before: int, begun: BegunLife) -> None:
        """Wait until the run has connected, for some seconds at most, or has ended."""
        end = time.monotonic() + _CONNECT_SECONDS
        while self.broker.order("count") - before < len(self.streams) and begun.fork.is_alive:
            if time.monotonic() > end:
                return
            time.sleep(0.01)

    def missing(self) -> dict[str, Counter[str]]:
        """What was sent and is not in the spools."""
        found = {stream: Counter(lines) - Counter(self.spooled(stream)) for stream, lines in self.sent.items()}
        return {stream: lines for stream, lines in found.items() if lines}

    def spooled(self, stream: str) -> list[str]:
        """The lines of a spool, those alone that are complete."""
        texts = (path.read_text("utf-8", "surrogatepass") for path in sorted(self.spool(stream).glob("*.tnq")))
        return [_comparable(line) for text in texts for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def wait_for_all(self, begun: BegunLife) -> None:
        """Wait until everything is in the spools, or the run has ended; a `ChaosError` where something is lost."""
        end = time.monotonic() + _ARRIVAL_SECONDS
        while (missing := self.missing()) and begun.fork.is_alive:
            if time.monotonic() > end:
                raise ChaosError(f"lost before the spool: {missing}")
            time.sleep(0.02)

    def check_spools(self, *, may_double: bool) -> None:
        """Hold what is promised of messages; a `ChaosError` says what is different."""
        if missing := self.missing():
            raise ChaosError(f"lost before the spool: {missing}")
        for stream, lines in self.sent.items():
            there = self.spooled(stream)
            if list(dict.fromkeys(there)) != list(dict.fromkeys(lines)):
                raise ChaosError(f"{stream}: the spool has another order: {there} instead of {lines}")
            if not may_double and there != lines:
                raise ChaosError(f"{stream}: nothing happened, and the spool has {Counter(there) - Counter(lines)}")


def spooled_as(payload: str) -> list[str]:
    """The lines of the spool that stand for a message."""
    decoded = Decoder.of("tnq").decode(ReceivedMessage(payload.encode(), 0, "", (), {}))
    lines: list[str] = []
    for one in decoded:
        lines += element_lines(one) if isinstance(one, Element) else [unreadable_line(one)]
    return [_comparable(line) for line in lines]


def _comparable(line: str) -> str:
    """A line of the spool without the address that a bad element is told to come from."""
    return _SAYS_SOURCE.sub('""]', line.rstrip("\n"))


def run_over_mqtt(seed: int, folder: Path, broker: KeptBroker) -> Counter[str]:
    """Run a seed in process; gives what there was to see. A `ChaosError` says what is wrong, and tells the story."""
    random = Random(f"mqtt {seed}")
    # A fault of the disk in about half of the runs.
    lives = [Life.of(random) if random.randrange(2) else Life() for _ in range(random.randint(1, 3))]
    program = a_program(random, len(lives)).reading_all()
    streams = tuple(random.choice([STREAMS, STREAMS, STREAMS[:1], STREAMS[1:]]))
    plans = [_a_part(random, program, streams, number) for number in range(len(lives))]
    story, run = Story(seed, program), folder / "run"
    run.mkdir(parents=True)
    through = MqttStreams(broker, f"{seed}-{time.time_ns()}", streams, run)
    try:
        program.write_data(run)
        with through.subscribed():
            for number, (life, plan) in enumerate(zip(lives, plans, strict=True)):
                is_last = number == len(lives) - 1
                _receive(program, folder, number, life, plan, through, story)
                if is_last and through.missing():
                    # The disk had a fault before everything was received.
                    _receive(program, folder, number + 1, Life(), (), through, story)
        kinds = kinds_of(plans)
        ended_well = all(ending.how == "done" for _, ending in story.lives)
        through.check_spools(may_double=not ended_well or any(kinds[kind] for kind in DOUBLING))
        last = begin_life(program, folder, 9, Life(), is_last=True, sources=through.spools()).wait()
        story.lives.append((Life(), last))
        if last.how != "done":
            raise ChaosError(f"the last run, without a fault, {last.how}: {last.text}")
        check_what_was_seen(program, folder)
        expect(program, folder, through.spools())
        wanted = compare(program, folder, endpoint_failed=False, change_letters=statements_of)
        if program.changes_data:
            compare_data(folder)
    except ChaosError as error:
        steps = "\n".join(f"  part {number}: {plan}" for number, plan in enumerate(plans))
        raise ChaosError(f"over MQTT: {error}\n{story.tell()}\n{steps}") from None
    found = story.counts(wanted)
    found.update({f"fault {kind} of a broker": count for kind, count in kinds.items() if kind != "save"})
    found["messages"] += sum(map(len, through.sent.values()))
    found["messages that came again"] += sum(
        len(through.spooled(stream)) - len(lines) for stream, lines in through.sent.items()
    )
    return Counter({f"over MQTT, {name}": count for name, count in found.items()})


def _a_part(random: Random, program: RandomProgram, streams: tuple[str, ...], number: int) -> tuple[Step, ...]:
    messages = [[Send(stream, text) for text in _messages(random, program.parts[stream][number])] for stream in streams]
    return a_plan(random, interleave(random, messages))


def _messages(random: Random, lines: Sequence[str]) -> list[str]:
    """Lines as messages: each of them one, or those of an instant together."""
    if random.randrange(2):
        return list(lines)
    return ["\n".join(group) for _, group in groupby(lines, lambda line: line.partition("\t")[0])]


def _receive(
    program: RandomProgram,
    folder: Path,
    number: int,
    life: Life,
    plan: tuple[Step, ...],
    through: MqttStreams,
    story: Story,
) -> None:
    """Run a program once while a part of its streams comes in."""
    if plan or number < len(program.parts[STREAMS[0]]):
        program.write_part(folder / "run", number)
    until = folder / f"stop-{number}"
    before = through.broker.order("calm")
    begun = begin_life(program, folder, number, life, is_last=False, sources=through.sources(), until=until)
    try:
        through.wait_for_connections(before, begun)
        through.perform(plan)
        through.wait_for_all(begun)
    finally:
        until.touch()
        ending = begun.wait()
    story.lives.append((life, ending))
    if not ending.is_expected:
        raise ChaosError(f"life {number} {ending.how}: {ending.text}")
    check_what_was_seen(program, folder)
