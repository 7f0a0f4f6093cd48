"""The process from which Spark forks its Python workers, with everything imported beforehand.

Spark's own daemon imports nothing, so each worker that it forks spends a second or two on numba, pandas and the rest
before it does any work. This one imports first: workers are there in some milliseconds, and share the memory. Sessions
that are started here name it (`spark.python.daemon.module`); on a session of somebody else's, Spark's own will do.

No thread may run in a process that forks. The libraries are told to start none; should one do so all the same, Spark's
own daemon takes over.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable
from importlib import import_module

_NO_THREADS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # The allocator of Arrow has a thread that returns memory; without it, memory is returned on the way.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
_MODULES = (
    "pyspark.worker",
    "headwater.spark.spark_source",
    "headwater.spark.stateful_step",
    "headwater.running.evaluation",
    "headwater.kernel.evaluator_choice",
    "headwater.kernel.families.family_evaluator",
    "headwater.terms.scanning.scanner",
)


def threads() -> int:
    """How many threads this process has; 1 where nobody can say."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


def prepare(more: Iterable[str] = ()) -> bool:
    """Import what workers need, and more; gives whether the process may fork now."""
    for name, value in _NO_THREADS.items():
        os.environ.setdefault(name, value)
    for module in (*_MODULES, *more):
        import_module(module)
    # What is here now stays: a collection in a worker need not touch it, and its memory stays shared.
    gc.collect()
    gc.freeze()
    return threads() == 1


def main() -> None:
    if not prepare():
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
