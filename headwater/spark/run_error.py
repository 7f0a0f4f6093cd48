"""The reason for the failure of a run on Spark, in one line."""

from __future__ import annotations

import re

from headwater.errors import HeadwaterError

_PYTHON_ERROR = re.compile(r"^\s*((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Collision|Term)): (.+)$", re.MULTILINE)


class RunError(HeadwaterError, RuntimeError):
    """A run that Spark ended; the message is the innermost reason, the cause is Spark's own exception."""


WORKER_DIED = "Python worker exited unexpectedly"
DISK_FULL = "No space left on device"
OTHER_PYTHON = "PYTHON_VERSION_MISMATCH"
NO_PROGRAM = 'Cannot run program "python'
_NEEDED = ("headwater", "numba", "numpy", "pandas", "pyarrow", "pyoxigraph", "pyspark")
NO_MODULE = tuple(f"No module named '{name}'" for name in _NEEDED)
NO_TOPIC = "UnknownTopicOrPartitionException"
LOST_RECORDS = ("OffsetOutOfRangeException", "Some data may have been lost", "failOnDataLoss")
_SET_PYTHON = (
    "Spark's workers run another Python than this one, or one without Headwater and what it needs: set PYSPARK_PYTHON "
    "to the path of this Python (sys.executable) before the SparkSession is made, or let hw.Engine() make the session"
)
_ADVICE = {
    OTHER_PYTHON: _SET_PYTHON,
    NO_PROGRAM: _SET_PYTHON,
    **dict.fromkeys(NO_MODULE, _SET_PYTHON),
    **dict.fromkeys(
        LOST_RECORDS,
        "Kafka no longer has records that this run has not read yet: they were removed, or the topic was made anew. To "
        'go on without them, give kafka(…) the option failOnDataLoss="false"',
    ),
    NO_TOPIC: "the broker has no topic of that name: check the topic in --stream or kafka(…), or make it",
    WORKER_DIED: "a Python worker process of Spark died: it was killed, or the machine ran out of memory. Look for the "
    "reason in the system's log, give the machine more memory or the engine more shards or a smaller batch_bytes",
    DISK_FULL: "a disk is full: that of the checkpoint, of a sink or of Spark's temporary files. Make room",
}
_PASSING = (WORKER_DIED, DISK_FULL)
_NOTHING_IS_LOST = "and run again with the same checkpoint: the run goes on with the batch that failed, nothing is lost"


def to_run_error(error: BaseException) -> RunError:
    """The reason inside an exception of Spark: the last line of the Python traceback in it, if there is one."""
    text = str(error)
    for message, advice in _ADVICE.items():
        if message in text:
            return RunError(f"{advice}, {_NOTHING_IS_LOST}" if message in _PASSING else advice)
    errors = _PYTHON_ERROR.findall(text)
    in_python = [(kind, reason) for kind, reason in errors if not kind.startswith(("org.", "java.", "py4j."))]
    if in_python:
        kind, reason = in_python[-1]
        return RunError(f"{kind.rpartition('.')[2]}: {reason.strip()}")
    return RunError(text.strip().partition("\n")[0] or type(error).__name__)
