"""Any streaming DataFrame, here Spark's own rate source, to Parquet files that a replay overwrites.

python examples/connectors/dataframe_to_files.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import headwater as hw

TEMPLATE = """
@prefix : <http://example.org/> .
:generator :says "{value}"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""
QUERY = """
PREFIX : <http://example.org/>
REGISTER QUERY Newest AS
SELECT (COUNT(?value) AS ?count) (MAX(?value) AS ?newest)
FROM STREAM <http://example.org/rate> [RANGE 2s STEP 1s]
WHERE { :generator :says ?value }
"""

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
engine = hw.Engine()
rate = engine.session().readStream.format("rate").option("rowsPerSecond", 20).load()
engine.stream("http://example.org/rate", hw.dataframe(rate, template=TEMPLATE, time="timestamp"))
engine.register(QUERY)


def stop_after_three(progress: hw.Progress) -> None:
    if progress.ticks >= 3:
        engine.stop()


engine.run(follow=True, on_progress=stop_after_three, sinks=[hw.FileSink(folder, format="parquet")])
engine.session().read.parquet(str(folder / "Newest")).orderBy("time").show(truncate=False)
