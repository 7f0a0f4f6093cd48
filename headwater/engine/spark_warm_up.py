"""`python -m headwater.engine.spark_warm_up`: runs a small pipeline on Spark and keeps what Java loaded for it.

See `java_class_archive`. It takes about half a minute; later sessions start in about two thirds of the time.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from headwater.spark.java_class_archive import archive_path, option_to_write
from headwater.spark.session import check_java, embedded_session
from headwater.terms.durable_files import unfinished_file

_STREAM = "urn:headwater:warm"
_ELEMENTS = "".join(f'2026-01-01T00:00:{i:02}Z\t<urn:x{i % 3}> <urn:v> "{i}" .\n' for i in range(60))
_QUERY = (
    f"SELECT ?x (COUNT(*) AS ?n) WHERE {{ STREAM <{_STREAM}> [RANGE 10s SLIDE 5s] {{ ?x <urn:v> ?v }} }} GROUP BY ?x"
)


def write_class_archive(path: Path) -> int:
    """Write the archive; gives how many answers the pipeline had."""
    from headwater.engine.engine import Engine
    from headwater.sources.files import files

    path.parent.mkdir(parents=True, exist_ok=True)
    with unfinished_file(path, is_shared=True) as unfinished:
        session = embedded_session(master="local[2]", java_options=option_to_write(unfinished))
        gateway = session.sparkContext._gateway
        assert gateway is not None
        with tempfile.TemporaryDirectory(prefix="headwater-warm-") as folder:
            Path(folder, "elements.tnq").write_text(_ELEMENTS, encoding="utf-8")
            engine = Engine(session)
            engine.stream(_STREAM, files(folder))
            engine.register(_QUERY)
            answers: list[object] = []
            engine.run(on_answer=answers.append)
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
    return len(answers)


def main() -> None:
    path = archive_path(check_java())
    if path.is_file():
        return
    try:
        write_class_archive(path)
    except OSError as error:
        sys.exit(f"The classes of Java are not kept, and Spark starts as slowly as before: {error}")


if __name__ == "__main__":
    main()
