"""Jars are used only with the content that the repository knows: their SHA-256 checksums are in `jar_checksums.txt`.

To add a jar, fetch it, compare it with what its makers publish, and write the line of `sha256sum` into that file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from headwater.sources.source import SourceError


class JarError(SourceError):
    """Jars that are missing, could not be fetched, or are not what they should be; the message says which."""


@cache
def known_checksums() -> Mapping[str, str]:
    """The SHA-256 checksums of jars by their file names."""
    lines = Path(__file__).with_suffix(".txt").read_text("ascii").splitlines()
    pairs = (line.split() for line in lines if line.strip() and not line.startswith("#"))
    return {name: checksum for checksum, name in pairs}


def verify_jars(jars: Iterable[Path], *, must_be_known: bool = True) -> None:
    """Raise a `JarError` for a jar that has another content than the one that is known, or, unless told, is unknown."""
    for jar in jars:
        wanted = known_checksums().get(jar.name)
        if wanted is None:
            if must_be_known:
                raise JarError(
                    f"{jar.name} was fetched, but Headwater has no checksum for it, so nobody can tell whether it is "
                    "right: check it and name it in HEADWATER_KAFKA_JARS"
                )
            continue
        with open(jar, "rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != wanted:
            raise JarError(
                f"{jar} is not the {jar.name} that Headwater knows: its SHA-256 is {found}, and should be {wanted}; "
                "delete it, and fetch it again from a place that you trust"
            )


if __name__ == "__main__":
    from headwater.sources.kafka_jars import cached_jar_files

    found = [jar for jar in cached_jar_files() if jar.name in known_checksums()]
    verify_jars(found)
    print(f"{len(known_checksums())} jars have checksums; {len(found)} fetched files were compared with them")
