"""Secrets that a setting names, and does not hold: `${env:NAME}` and `${file:PATH}`.

    kafka.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="headwater"
        password="${file:/run/secrets/kafka}";

They are filled in when the connection is made, so that neither a command line nor a representation shows them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from headwater.errors import SettingError

_REFERENCE = re.compile(r"\$\{(env|file):([^}]+)\}")


def fill_in_secrets(options: Mapping[str, str]) -> dict[str, str]:
    """The options with what variables and files hold in place of their names."""
    return {name: _fill_in(name, value) for name, value in options.items()}


def _fill_in(option: str, value: str) -> str:
    return _REFERENCE.sub(lambda match: _read(option, match[1], match[2]), value)


def _read(option: str, kind: str, name: str) -> str:
    if kind == "env":
        if name not in os.environ:
            raise SettingError(f"{option} names the variable {name}, which is not set")
        return os.environ[name]
    try:
        return Path(name).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8"
        raise SettingError(f"{option} names the file {name}, which cannot be read ({reason})") from None
