"""Spark's Kafka connector is fetched once, by its own version first, and its absence says what to do.

Maven is an invented executable here; what the real one fetches, the Kafka tests use.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.sources import jar_checksums
from headwater.sources.kafka_jars import ensure_kafka, fetch_jars, find_kafka_jars

HAS_EVERYTHING = "true"
HAS_NOTHING = "false"
LACKS_4_3 = "! grep -q '<version>4.3.0</version>' pom.xml"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on its PATH but what a script needs, and an empty cache."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    monkeypatch.setattr("shutil.which", lambda name: _which(tmp_path / "bin" / name))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("HEADWATER_KAFKA_JARS", raising=False)
    # The invented Maven makes empty jars.
    names = ["spark-sql-kafka-0-10_2.13-4.3.0.jar", *jar_checksums.known_checksums()]
    empty = dict.fromkeys(names, hashlib.sha256(b"").hexdigest())
    monkeypatch.setattr(jar_checksums, "known_checksums", lambda: empty)
    return tmp_path


def _which(path: Path) -> str | None:
    return str(path) if path.exists() else None


def install_maven(machine: Path, offers: str) -> None:
    script = machine / "bin" / "mvn"
    script.write_text(
        "#!/bin/sh\n"
        f"echo called >> '{machine}/calls'\n"
        f"if {offers}; then :; else\n"
        "  echo '[ERROR] Could not find artifact a:b:jar:1 in central (https://host/path) -> [Help 1]'; exit 1\n"
        "fi\n"
        'for argument in "$@"; do case "$argument" in -DoutputDirectory=*) folder=${argument#*=};; esac; done\n'
        'mkdir -p "$folder"\n'
        "grep -o '<artifactId>[a-z][^<]*</artifactId><version>[^<]*' pom.xml | sed 's/<[^>]*>/-/g; s/^-//; s/--/-/' |\n"
        "  grep -v '^jars-1$' |\n"
        '  while read -r name; do : > "$folder/$name.jar"; done\n'
    )
    script.chmod(0o755)


def calls(machine: Path) -> int:
    path = machine / "calls"
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_the_connector_has_the_version_of_spark_and_is_fetched_once(machine: Path) -> None:
    install_maven(machine, HAS_EVERYTHING)
    (jar,) = find_kafka_jars("4.3.0")
    assert jar.name == "spark-sql-kafka-0-10_2.13-4.3.0.jar"
    assert find_kafka_jars("4.3.0") == [jar]
    assert calls(machine) == 1


def test_jars_that_are_known_to_work_stand_in_for_a_version_that_is_missing(
    machine: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install_maven(machine, LACKS_4_3)
    with caplog.at_level(logging.WARNING):
        found = find_kafka_jars("4.3.0")
    assert "spark-sql-kafka-0-10_2.13-4.2.0.jar" in {jar.name for jar in found}
    assert "4.3.0 could not be fetched, or has no checksum; these jars stand in for it" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert find_kafka_jars("4.3.0") == found
    assert "stand in" in caplog.text
    assert calls(machine) == 2, "a version that was missing is not asked for every time"


def test_what_cannot_be_fetched_says_why_and_what_to_do(machine: Path) -> None:
    install_maven(machine, HAS_NOTHING)
    for version in ("4.3.0", "5.0.0"):
        with pytest.raises(hw.SourceError, match="Could not find artifact") as raised:
            find_kafka_jars(version)
        assert f"--packages org.apache.spark:spark-sql-kafka-0-10_2.13:{version}" in str(raised.value)
        assert "HEADWATER_KAFKA_JARS" in str(raised.value)
        assert "https" not in str(raised.value)
    (machine / "bin" / "mvn").unlink()
    with pytest.raises(hw.SourceError, match="Maven is not installed"):
        fetch_jars(("a:b:1",), transitive=True)


def test_a_failed_fetch_leaves_nothing_behind(machine: Path) -> None:
    install_maven(machine, HAS_NOTHING)
    with pytest.raises(hw.SourceError):
        fetch_jars(("a:b:1",), transitive=True)
    install_maven(machine, HAS_EVERYTHING)
    assert [jar.name for jar in fetch_jars(("a:b:1",), transitive=True)] == ["b-1.jar"]


class FakeSession:
    """A session that has the connector once a jar of it was added."""

    version = "4.3.0"

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.readStream = self

    def format(self, name: str) -> FakeSession:
        return self

    def option(self, *_: str) -> FakeSession:
        return self

    def options(self, **_: str) -> FakeSession:
        return self

    def load(self) -> None:
        if not any("kafka" in statement for statement in self.statements):
            raise RuntimeError("Failed to find data source: kafka.")

    def sql(self, statement: str) -> None:
        self.statements.append(statement)


def test_jars_may_be_given(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session: Any = FakeSession()
    given = [machine / "spark-sql-kafka-0-10_2.13-4.3.0.jar", machine / "snappy-java-9.9.jar"]
    for path in given:
        path.touch()
    monkeypatch.setenv("HEADWATER_KAFKA_JARS", ":".join(map(str, given)))
    ensure_kafka(session)
    assert session.statements == [f"ADD JAR '{given[0]}'"], "what Spark has itself is not added again"
    ensure_kafka(session)
    assert len(session.statements) == 1
    monkeypatch.setenv("HEADWATER_KAFKA_JARS", str(machine / "absent.jar"))
    with pytest.raises(hw.SourceError, match="is no file: check the path"):
        ensure_kafka(FakeSession())  # type: ignore[arg-type]


def test_without_maven_and_jars_the_advice_is_given(machine: Path) -> None:
    session: Any = FakeSession()
    with pytest.raises(hw.JarError, match="Maven is not installed") as caught:
        ensure_kafka(session)
    assert "HEADWATER_KAFKA_JARS" in str(caught.value) and session.statements == []
