"""Jars are used with the content that the repository knows, and with no other."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import headwater as hw
from headwater.sources import jar_checksums, kafka_jars

NAMES = tuple(jar_checksums.known_checksums())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in which the stand-ins for Spark 4.3.0 were fetched, each with its own name as its content."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = kafka_jars._cache_folder(kafka_jars._STAND_INS["4.3.0"])
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / name).write_text(name)
    known = {name: hashlib.sha256(name.encode()).hexdigest() for name in NAMES}
    monkeypatch.setattr(jar_checksums, "known_checksums", lambda: known)
    return folder


def test_every_stand_in_has_a_checksum() -> None:
    for coordinates in kafka_jars._STAND_INS.values():
        wanted = {"{1}-{2}.jar".format(*one.split(":")) for one in coordinates}
        assert wanted == set(NAMES)


def test_known_jars_are_used(cache: Path) -> None:
    assert sorted(jar.name for jar in kafka_jars.find_kafka_jars("4.3.0")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_jar_that_was_changed_is_refused(cache: Path, name: str) -> None:
    (cache / name).write_text("class Evil")
    with pytest.raises(hw.JarError, match="is not the") as caught:
        kafka_jars.find_kafka_jars("4.3.0")
    assert name in str(caught.value)


def test_a_jar_that_nobody_knows_is_refused(cache: Path) -> None:
    (cache / "more-1.0.jar").write_text("x")
    with pytest.raises(hw.JarError, match="no checksum"):
        kafka_jars.find_kafka_jars("4.3.0")


def test_jars_that_maven_brings_are_compared_before_they_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven = tmp_path / "mvn"
    jars = " ".join(NAMES)
    maven.write_text(
        '#!/bin/bash\nfor one in "$@"; do case "$one" in -DoutputDirectory=*) out="${one#*=}";; esac; done\n'
        f'mkdir -p "$out"; for jar in {jars}; do echo evil > "$out/$jar"; done\n'
    )
    maven.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(hw.JarError, match="is not the"):
        kafka_jars.find_kafka_jars("4.3.0")
    kept = kafka_jars._cache_folder(kafka_jars._STAND_INS["4.3.0"])
    assert not kept.exists()


def test_jars_that_the_environment_names_are_compared_where_they_are_known(tmp_path: Path) -> None:
    own, changed = tmp_path / "own-1.0.jar", tmp_path / NAMES[0]
    own.write_text("mine")
    changed.write_text("evil")
    jar_checksums.verify_jars([own], must_be_known=False)
    with pytest.raises(hw.JarError, match="is not the"):
        jar_checksums.verify_jars([changed], must_be_known=False)
