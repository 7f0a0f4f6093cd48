"""A web application with a continuous query inside: it takes the cars that pass, and tells how many there were lately.

    uvicorn --app-dir examples fastapi_app:app

The engine begins and ends with the application, in its process. Nothing is asked of a server of Headwater.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pyoxigraph import Literal, NamedNode, Triple

import headwater as hw

BUSY = """
SELECT ?gate (COUNT(?car) AS ?cars)
FROM STREAM <http://city/gates> [RANGE 10s STEP 5s]
WHERE { ?gate <http://city/saw> ?car }
GROUP BY ?gate
"""


class Passage(BaseModel):
    """A car that was seen at a gate, so many seconds after the beginning."""

    gate: str
    car: str
    second: int


@asynccontextmanager
async def run_engine(app: FastAPI) -> AsyncIterator[None]:
    """Let the engine run as long as the application does."""
    gates = hw.push()
    engine = hw.Engine(in_process=True)
    engine.stream("http://city/gates", gates)
    query = engine.register(BUSY)
    app.state.gates, app.state.newest = gates, {"second": None, "cars": {}}
    async with engine:
        watcher = asyncio.create_task(keep_newest(app, query.answers_async()))
        yield
        gates.close()
    await watcher


async def keep_newest(app: FastAPI, answers: Any) -> None:
    """Keep the newest answer; the loop goes on with requests meanwhile."""
    async for answer in answers:
        cars = {gate.value.rpartition("/")[2]: int(count.value) for gate, count in answer.rows}
        app.state.newest = {"second": answer.time // 1_000_000, "cars": cars}


app = FastAPI(lifespan=run_engine)


@app.post("/passages", status_code=202)
async def note_passage(passage: Passage) -> None:
    """Take a passage; with more than the engine can take, senders wait here."""
    gate = NamedNode(f"http://city/{passage.gate}")
    seen = Triple(gate, NamedNode("http://city/saw"), Literal(passage.car))
    await app.state.gates.send_async([seen], time=passage.second * 1_000_000)


@app.get("/busy")
async def show_newest() -> dict[str, Any]:
    """How many cars passed each gate in the last ten seconds."""
    found: dict[str, Any] = app.state.newest
    return found
