"""The engine process: calls and their errors, and going on without a gap or a double when it is killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.server.process.call_errors import CallError, EngineDown
from headwater.server.process.engine_client import EngineClient
from headwater.server.process.engine_settings import EngineSettings
from tests.server.test_engine_service import COUNT, lines, logged

PATIENCE = 120.0


def run_with_engine(state: Path, work: Callable[[EngineClient, list[tuple[str, Any]]], Awaitable[None]]) -> None:
    async def run() -> None:
        told: list[tuple[str, Any]] = []
        client = EngineClient(EngineSettings(str(state)), lambda *one: told.append(one))
        client.start()
        try:
            async with asyncio.timeout(PATIENCE):
                await client.wait_until_ready()
                await work(client, told)
        finally:
            await client.close()
        assert client.process_id is not None
        with pytest.raises(ProcessLookupError):
            os.kill(client.process_id, 0)

    asyncio.run(run())


async def until(is_so: Callable[[], Any]) -> None:
    while not is_so():
        await asyncio.sleep(0.02)


def test_calls_are_answered_and_refused_and_the_process_ends_in_order(tmp_path: Path) -> None:
    async def work(client: EngineClient, told: list[tuple[str, Any]]) -> None:
        await client.call("put_stream", name="s", entry={})
        with pytest.raises(CallError) as failure:
            await client.call("put_query", name="q", text="SELECT ?x\nWHERE { ?x }", options={})
        assert failure.value.kind == "query"
        assert failure.value.places[0]["line"] == 2
        with pytest.raises(CallError, match="no stream is named 'none'"):
            await client.call("post", stream="none", body=b"", format="tnq")
        with pytest.raises(CallError) as failure:
            await client.call("close_all")
        assert failure.value.kind == "internal"
        assert "close_all" not in str(failure.value), "replies say nothing of what is inside"
        await client.call("put_query", name="q", text=COUNT, options={})
        replies = await asyncio.gather(
            *(client.call("post", stream="s", body=lines(number), format="tnq") for number in range(20))
        )
        assert sum(reply["good"] + reply["late"] for reply in replies) == 20
        await until(lambda: ("answers", ["q"]) in told)

    run_with_engine(tmp_path, work)
    assert logged(tmp_path, "q")


def test_a_killed_engine_goes_on_without_a_gap_or_a_double(tmp_path: Path) -> None:
    ticks = 60

    async def work(client: EngineClient, told: list[tuple[str, Any]]) -> None:
        await client.call("put_stream", name="s", entry={})
        await client.call("put_query", name="q", text=COUNT, options={})
        killed = 0
        for number in range(ticks + 2):
            if number % 20 == 10:
                assert client.process_id is not None
                os.kill(client.process_id, signal.SIGKILL)
                killed += 1
            while True:
                try:
                    await client.call("post", stream="s", body=lines(number), format="tnq", key=str(number))
                    break
                except EngineDown:
                    await client.wait_until_ready()
        await until(lambda: len(logged(tmp_path, "q")) > ticks)
        assert client.starts == killed + 1
        assert ("down", None) in told

    run_with_engine(tmp_path, work)
    found = logged(tmp_path, "q")
    assert found == [(0, ["1"])] + [(number, ["2"]) for number in range(1, ticks + 1)]


def test_an_engine_that_cannot_begin_is_not_begun_for_ever(tmp_path: Path) -> None:
    async def run() -> None:
        settings = EngineSettings(str(tmp_path / "state"), data=({"data": str(tmp_path / "nofile.ttl")},))
        client = EngineClient(settings, lambda *one: None)
        client.start()
        try:
            async with asyncio.timeout(PATIENCE):
                await until(lambda: client.failure is not None)
                assert client.starts == 3
                assert "nofile.ttl" in str(client.failure)
                with pytest.raises(EngineDown, match="is not begun any more"):
                    await client.call("status")
        finally:
            await client.close()

    asyncio.run(run())
