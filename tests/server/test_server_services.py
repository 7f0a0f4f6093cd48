"""What the HTTP process knows of the engine: counts of streams go on where the engine begins anew."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from headwater.server.server_services import ServerServices
from headwater.server.server_settings import read_server_settings


def told(batches: int, **counts: int) -> dict[str, Any]:
    """What the engine tells, with the counts of the stream s."""
    run = {"batches": batches, "streams": {"s": counts} if counts else {}}
    return {"queries": {}, "streams": {}, "run": run, "failure": None}


def test_the_counts_of_streams_go_on_over_runs(tmp_path: Path) -> None:
    async def run() -> None:
        path = tmp_path / "server.toml"
        path.write_text("")
        services = ServerServices.of(read_server_settings(path, {}))

        def counts() -> dict[str, int]:
            found: dict[str, int] = services.status["run"]["streams"]["s"]
            return {kind: found[kind] for kind in ("elements", "late", "bad", "ahead")}

        services._take_notice("ready", told(0))
        services._take_notice("status", told(3, elements=10, late=2, bad=1, ahead=0))
        services._take_notice("down", None)
        services._take_notice("ready", told(0))
        assert counts() == {"elements": 10, "late": 2, "bad": 1, "ahead": 0}
        services._take_notice("status", told(1, elements=5, late=0, bad=3, ahead=1))
        services._take_notice("status", told(2, elements=6, late=0, bad=3, ahead=1))
        assert counts() == {"elements": 16, "late": 2, "bad": 4, "ahead": 1}
        services._take_notice("ready", told(0))
        assert counts() == {"elements": 16, "late": 2, "bad": 4, "ahead": 1}

    asyncio.run(run())
