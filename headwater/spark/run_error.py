"""What went wrong on Spark, said in one line."""

from __future__ import annotations

import re

from headwater.errors import HeadwaterError

_PYTHON_ERROR = re.compile(r"^\s*((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Collision|Term)): (.+)$", re.MULTILINE)


class RunError(HeadwaterError, RuntimeError):
    """A run that Spark ended; the message is the innermost reason, the cause is Spark's own exception."""


WORKER_DIED = "Python worker exited unexpectedly"
DISK_FULL = "No space left on device"
_WHAT_TO_DO = {
    WORKER_DIED: "a Python worker process of Spark died: it was killed, or the machine ran out of memory. Look for the "
    "reason in the system's log, give the machine more memory or the engine more shards or a smaller batch_bytes",
    DISK_FULL: "a disk is full: that of the checkpoint, of a sink or of Spark's temporary files. Make room",
}
_NOTHING_IS_LOST = "and run again with the same checkpoint: the run goes on with the batch that failed, nothing is lost"


def run_error(error: BaseException) -> RunError:
    """The reason inside an exception of Spark: the last line of the Python traceback in it, if there is one."""
    text = str(error)
    for sign, words in _WHAT_TO_DO.items():
        if sign in text:
            return RunError(f"{words}, {_NOTHING_IS_LOST}")
    found = _PYTHON_ERROR.findall(text)
    inside = [(kind, reason) for kind, reason in found if not kind.startswith(("org.", "java.", "py4j."))]
    if inside:
        kind, reason = inside[-1]
        return RunError(f"{kind.rpartition('.')[2]}: {reason.strip()}")
    return RunError(text.strip().partition("\n")[0] or type(error).__name__)
