"""Into how many shards the work of a run is cut, where nobody says it: by what there is to do, not by the cores alone.

Each shard is a task of every batch. It costs that batch a third more, however little has come, and pays where much has.
A run that reads what is there, or has a backlog to begin with, has a shard for each core. So has a run on a cluster.
One that follows live streams on this machine has one shard, which takes in some 100,000 triples a second. State is
not cut anew, so whoever expects more from the beginning says `shards`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from headwater.sources.source import Source
from headwater.spark.session import is_local_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BACKLOG_BYTES = 8 << 20
"""As much as one batch reads."""


def choose_shard_count(session: Callable[[], SparkSession], sources: Mapping[str, Source], *, is_live: bool) -> int:
    """The number of shards of a new run over these sources; `is_live`: the run follows them and has no end."""
    context = session().sparkContext
    if is_live and is_local_master(context.master) and _backlog(sources) < _BACKLOG_BYTES:
        return 1
    return context.defaultParallelism


def _backlog(sources: Mapping[str, Source]) -> int:
    """How many bytes there are to read now; what Spark reads itself is not known."""
    return sum(max(0, item.size) for source in sources.values() for item in source.list_items())
