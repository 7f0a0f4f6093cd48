"""`headwater serve`: the server for other programs; what it has to say goes to stderr."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from headwater.errors import SettingError
from headwater.running.freed_memory import keep_freed_memory


@dataclass(frozen=True)
class ServeOptions:
    """What was typed."""

    config: Path | None = None
    in_process: bool = False
    host: str | None = None
    port: int | None = None
    check: bool = False
    make_token: str | None = None
    scopes: tuple[str, ...] = ()


def serve(options: ServeOptions) -> None:
    """Serve until a signal comes, or only check the settings, or make a token."""
    try:
        from headwater.server import http_server, server_settings
        from headwater.server.access import AccessToken, hash_token, make_token
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("headwater"):
            raise
        raise SettingError(f"the server needs {error.name}: in the source tree, type pip install '.[server]'") from None
    if options.make_token is not None:
        token = make_token()
        scopes = options.scopes or ("read",)
        AccessToken.of(options.make_token, hash_token(token), scopes, None, None)
        print(f"the token, for who uses it: {token}", file=sys.stderr)
        listed = ", ".join(f'"{one}"' for one in scopes)
        print(f'[[tokens]]\nname = "{options.make_token}"\nhash = "{hash_token(token)}"\nscopes = [{listed}]')
        return
    if options.scopes:
        raise typer.BadParameter("it goes with --make-token", param_hint="--scope")
    settings = server_settings.read_server_settings(options.config)
    typed: dict[str, Any] = {"host": options.host, "port": options.port, "in_process": options.in_process or None}
    table = settings.server.model_copy(update={name: value for name, value in typed.items() if value is not None})
    settings = settings.model_copy(update={"server": table})
    notes = http_server.check_settings(settings)
    if options.check:
        print(f"{options.config or 'the settings'}: right")
        return
    logging.basicConfig(format="%(asctime)s server %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    for note in notes:
        print(note, file=sys.stderr)
    keep_freed_memory()
    scheme = "http" if table.certificate is None else "https"
    where = f"listening at {scheme}://{table.host}:{table.port}, state in {settings.state}"
    http_server.serve(settings, lambda: print(where, file=sys.stderr, flush=True))
