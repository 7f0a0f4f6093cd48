"""What a checkpoint folder belongs to, so that nobody continues the state of other queries by mistake."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path

from headwater.pipeline.evaluation import Definition


class CheckpointError(RuntimeError):
    """A checkpoint folder that belongs to something else; the message says what to do."""


def claim(folder: Path, definition: Definition, runner: str) -> str:
    """Make a folder the checkpoint of a definition, or see that it is; gives the name of the run that it began."""
    path = folder / "headwater.json"
    if path.exists():
        known = json.loads(path.read_text("utf-8"))
        if known["runner"] != runner:
            raise CheckpointError(
                f"the checkpoint {folder} was made {known['runner']}, and this run is {runner}: use another folder"
            )
        if known["fingerprint"] != definition.fingerprint:
            raise CheckpointError(
                f"the checkpoint {folder} was made with other queries, options or delay "
                f"(then: {', '.join(known['queries'])}): use another folder, or delete this one to begin anew"
            )
        return str(known["run"])
    folder.mkdir(parents=True, exist_ok=True)
    run = new_run()
    content = {
        "run": run,
        "runner": runner,
        "queries": [query.plan.name for query in definition.queries],
        "fingerprint": definition.fingerprint,
    }
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    os.replace(unfinished, path)
    return run


def new_run() -> str:
    """A name for a run that no other has."""
    return uuid.uuid4().hex[:12]
