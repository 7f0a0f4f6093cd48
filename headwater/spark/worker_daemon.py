"""The process from which Spark forks its Python workers, with everything imported beforehand.

Spark's own daemon imports nothing, so each worker that it forks spends a second or two on numba, pandas and the rest
before it does any work. This one imports first: workers are there in some milliseconds, and share the memory. A session
of the caller uses it where its setting `spark.python.daemon.module` names it; sessions that are started here have
`process_server` instead.

No thread may run in a process that forks. The libraries are told to start none; should one do so all the same, Spark's
own daemon takes over.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable

from headwater.running.freed_memory import keep_freed_memory

_NO_THREADS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # The allocator of Arrow has a thread that returns memory; without it, memory is returned on the way.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


def _import_modules() -> None:
    """Import what workers need."""
    import pyspark.worker  # noqa: F401

    import headwater.kernel.evaluator_choice
    import headwater.kernel.families.family_evaluator
    import headwater.running.evaluation
    import headwater.spark.spark_source
    import headwater.spark.stateful_step
    import headwater.terms.scanning.scanner  # noqa: F401


def count_threads() -> int:
    """How many threads this process has; 1 where the system does not tell."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


def prepare_daemon(import_more: Callable[[], None] = lambda: None) -> bool:
    """Import what workers need, and more; gives whether the process may fork now."""
    for name, value in _NO_THREADS.items():
        os.environ.setdefault(name, value)
    _import_modules()
    import_more()
    # The workers that are forked have the setting, too.
    keep_freed_memory()
    # What is here now stays: a collection in a worker need not touch it, and its memory stays shared.
    gc.collect()
    gc.freeze()
    return count_threads() == 1


def main() -> None:
    if not prepare_daemon():
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
