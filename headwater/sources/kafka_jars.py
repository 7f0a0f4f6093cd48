"""Finding Spark's Kafka connector, which is not part of PySpark, and adding it to a session.

In this order: a session that has the connector already (`spark-submit --packages …`); the jars that the environment
variable `HEADWATER_KAFKA_JARS` names; jars that were fetched before; Maven, where it is installed. Spark's own resolver
is not used: it would load what it fetched before anybody could look at it.

The connector has the version of Spark. Where a repository does not have that version (yet), jars of other versions are
used with which the tests passed on this Spark; a warning names them.

What is fetched is compared with the checksums of `jar_checksums` before it is used, and so is what was fetched before.
Jars that the environment names are the user's own choice: only those whose names are known are compared.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from headwater.sources.jar_checksums import JarError, verify_jars
from headwater.terms.durable_files import place_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VARIABLE = "HEADWATER_KAFKA_JARS"
_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_STAND_INS = {
    "4.3.0": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.apache.commons:commons-pool2:2.13.1",
    )
}
"""By the version of Spark: jars, without their dependencies, with which the tests of the connectors passed."""
_MAVEN_SECONDS = 600
_RETRY_EXACT_SECONDS = 7 * 86_400
_LOG = logging.getLogger("headwater.connectors")


def ensure_kafka(spark: SparkSession) -> None:
    """Add Spark's Kafka connector to a session, unless it has it. Spark adds jars for the calling thread."""
    if _has_kafka(spark):
        return
    _add_jars(spark, _choose_jars(spark.version))
    if not _has_kafka(spark):
        raise JarError(f"Spark does not find its Kafka connector in the jars that were added. {_advice(spark.version)}")


def _choose_jars(version: str) -> list[Path]:
    """The jars that the environment names, or those of the connector."""
    given = os.environ.get(VARIABLE)
    if not given:
        return find_kafka_jars(version)
    jars = [Path(text) for text in given.split(os.pathsep) if text]
    verify_jars((jar for jar in jars if jar.is_file()), must_be_known=False)
    return jars


def kafka_class_path() -> str:
    """The class path with which Spark starts with its Kafka connector; a `JarError` where it cannot be had."""
    from pyspark.version import __version__ as version

    return os.pathsep.join(map(str, _without_those_of_spark(_choose_jars(version))))


def find_kafka_jars(version: str) -> list[Path]:
    """The jars of the connector for a version of Spark, fetched with Maven unless they are in the cache."""
    exact, stand_in = _connector_coordinates(version), _stand_in_coordinates(version)
    if (jars := _cached_jars(exact)) and _are_known(jars):
        return jars
    if (jars := _cached_jars(stand_in)) and time.time() - jars[0].parent.stat().st_mtime < _RETRY_EXACT_SECONDS:
        verify_jars(jars)
        return _warn_of_stand_ins(jars, version)
    try:
        jars = fetch_jars(exact, transitive=True)
        verify_jars(jars)
        return jars
    except JarError as error:
        if not stand_in:
            raise JarError(f"{error} {_advice(version)}") from None
        try:
            jars = _cached_jars(stand_in) or fetch_jars(stand_in, transitive=False)
            verify_jars(jars)
        except JarError as second:
            raise JarError(f"{error} {second} {_advice(version)}") from None
        return _warn_of_stand_ins(jars, version)


def fetch_jars(coordinates: tuple[str, ...], *, transitive: bool) -> list[Path]:
    """The jars with these coordinates from their folder in the cache, fetched with Maven unless they are there."""
    if jars := _cached_jars(coordinates):
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise JarError(f"Maven is not installed, so {', '.join(coordinates)} cannot be fetched.")
    folder = _cache_folder(coordinates)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        (Path(temporary) / "pom.xml").write_text(_pom_of(coordinates, transitive), "utf-8")
        command = [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={temporary}/jars"]
        command.append("-DincludeScope=runtime")
        try:
            run = subprocess.run(command, cwd=temporary, capture_output=True, text=True, timeout=_MAVEN_SECONDS)
        except subprocess.TimeoutExpired:
            raise JarError(f"Maven did not fetch {', '.join(coordinates)} in {_MAVEN_SECONDS} s.") from None
        if run.returncode != 0:
            raise JarError(
                f"Maven could not fetch {', '.join(coordinates)}: {_first_error_of(run.stdout + run.stderr)}"
            )
        if not transitive:
            verify_jars((Path(temporary) / "jars").glob("*.jar"))
        place_folder(Path(temporary) / "jars", folder)
    return _cached_jars(coordinates)


def _are_known(jars: Iterable[Path]) -> bool:
    try:
        verify_jars(jars)
    except JarError:
        return False
    return True


def _connector_coordinates(version: str) -> tuple[str, ...]:
    return (f"{_CONNECTOR}:{version}",)


def _stand_in_coordinates(version: str) -> tuple[str, ...]:
    return _STAND_INS.get(version, ())


def _cached_jars(coordinates: tuple[str, ...]) -> list[Path]:
    return sorted(_cache_folder(coordinates).glob("*.jar")) if coordinates else []


def cached_jar_files() -> list[Path]:
    """All jars that were fetched."""
    return sorted(_cache().glob("*/*.jar"))


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headwater" / "jars"


def _cache_folder(coordinates: tuple[str, ...]) -> Path:
    name = coordinates[0].replace(":", "-") + ("" if len(coordinates) == 1 else f"-and-{len(coordinates) - 1}")
    return _cache() / name


def _pom_of(coordinates: Iterable[str], transitive: bool) -> str:
    every = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    wanted = ""
    for coordinate in coordinates:
        group, artifact, version = map(escape, coordinate.split(":"))
        wanted += (
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
            f"{'' if transitive else every}</dependency>"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>headwater</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>{wanted}</dependencies></project>"
    )


def _first_error_of(output: str) -> str:
    """The first error in the output of Maven, without the addresses of repositories."""
    errors = re.findall(r"^(?:\x1b\[[0-9;]*m|\[|\])*ERROR(?:\x1b\[[0-9;]*m|\])* ?(.+)$", output, re.MULTILINE)
    text = re.sub(r"\s*\(?https?://\S+\)?", "", errors[0] if errors else output.strip()[-300:] or "it said nothing")
    return text.split(" -> [Help")[0].strip() + "."


def _warn_of_stand_ins(jars: list[Path], version: str) -> list[Path]:
    names = ", ".join(jar.stem for jar in jars)
    _LOG.warning(
        "Spark's Kafka connector %s could not be fetched, or has no checksum; these jars stand in for it: %s",
        version,
        names,
    )
    return jars


def _add_jars(spark: SparkSession, jars: Iterable[Path]) -> None:
    for jar in _without_those_of_spark(jars):
        spark.sql(f"ADD JAR '{jar}'")


def _without_those_of_spark(jars: Iterable[Path]) -> Iterator[Path]:
    own = _artifacts_of_spark()
    for jar in jars:
        if not jar.is_file():
            raise JarError(f"{VARIABLE} names {jar}, which is no file: check the path")
        if _artifact_of(jar) not in own:
            yield jar


def _artifacts_of_spark() -> set[str]:
    """The jars that are part of Spark: a second copy of one could be of another version."""
    import pyspark

    return {_artifact_of(jar) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}


def _artifact_of(jar: Path) -> str:
    return re.sub(r"-[0-9][^-]*(-[0-9]+)?$", "", jar.stem)


def _has_kafka(spark: SparkSession) -> bool:
    reader = (
        spark.readStream.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:1").option("subscribe", "none")
    )
    try:
        reader.load()
    except Exception as error:
        if "data source" in str(error).lower():
            return False
        raise
    return True


def _advice(version: str) -> str:
    return (
        f"Start the session with --packages {_CONNECTOR}:{version}, or put the connector's jars into the environment "
        f"variable {VARIABLE} ({os.pathsep!r} between them); docs/how-to/kafka.md tells which"
    )
