"""A preview: the answer of a query over what the windows hold now, without registering anything.

What was received last of each stream is read again from its spool or its files, by an engine of its own that forgets
everything. So a preview shows what the query would have answered at the newest element; the run of the others does not
notice it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwater.egress.policy import EgressPolicy
from headwater.engine.engine import Engine
from headwater.execution.answers import Answer
from headwater.server.answers.answer_log import answer_line
from headwater.server.process.engine_settings import EngineSettings
from headwater.sources.files import FileSource, files, memory
from headwater.sources.posting.posted import PostedSource
from headwater.terms.durable_files import Sync, replace_file
from headwater.terms.scanning.scanner import scan
from headwater.terms.scratch_folders import ScratchFolder

_TAIL_BYTES = 16 << 20
_MOST_ROWS = 100_000


def preview_query(
    settings: EngineSettings, text: str, options: Mapping[str, Any], sources: Mapping[str, Any]
) -> dict[str, Any]:
    """The answer as JSON values, and `is_whole`: whether there was time to read everything."""
    engine = Engine(
        in_process=True,
        egress=EgressPolicy.of(settings.egress),
        limits={"seconds": settings.preview_seconds, "rows": _MOST_ROWS},
        locate_streams=False,
        **{name: settings.engine[name] for name in ("delay",) if name in settings.engine},
    )
    for endpoint in settings.endpoints:
        engine.endpoint(**endpoint)
    for data in settings.data:
        engine.dataset(**data)
    with ScratchFolder("preview") as folder:
        newest = None
        for number, (name, source) in enumerate(sources.items()):
            path = Path(folder) / f"{number}.tnq"
            last = _copy_tail(source, path)
            if last is not None:
                newest = last if newest is None else max(newest, last)
                engine.stream(name, files(path))
            else:
                engine.stream(name, source if isinstance(source, FileSource) else memory([]))
        found: list[Answer] = []

        def take(answer: Answer) -> None:
            """Keep the first answer that has seen the newest element, or else the last one."""
            if not found or newest is None or found[-1].time < newest:
                found[:] = [answer]

        engine.register(text, name="preview", **options)
        timer = threading.Timer(settings.preview_seconds, engine.stop)
        timer.start()
        try:
            summary = engine.run(on_answer=take)
        finally:
            timer.cancel()
    answer = json.loads(answer_line(found[0])) if found else None
    return {"answer": answer, "whole": not summary.stopped}


def _copy_tail(source: object, path: Path) -> int | None:
    """Copy the last lines of a spool; gives the newest time in them, None where there is no spool."""
    if not isinstance(source, PostedSource):
        return None
    tail = b""
    for spooled in sorted(source.folder.glob("*.tnq"), reverse=True):
        with open(spooled, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(0, size - (_TAIL_BYTES - len(tail))))
            is_cut = stream.tell() > 0
            part = stream.read()
        tail = part + tail
        if is_cut:
            tail = tail.partition(b"\n")[2]
            break
    times = scan(tail, texts="").element_times
    replace_file(path, tail, sync=Sync.NOTHING)
    return int(times.max()) if len(times) else None
