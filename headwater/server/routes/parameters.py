"""Parameters of requests that a route does not know: they are refused, so that no misspelt one is without effect."""

from __future__ import annotations

from fastapi import Depends
from starlette.requests import HTTPConnection

from headwater.server.problems import Problem


def _refuse_unknown(connection: HTTPConnection) -> None:
    if connection.scope["type"] != "http":
        # A connection is refused before it is accepted, without a word.
        return
    route = connection.scope["route"]
    known = [one.alias for one in route.dependant.query_params]
    if unknown := [name for name in connection.query_params if name not in known]:
        takes = f"it takes {', '.join(known)}" if known else "it takes none"
        raise Problem(400, "There is no such parameter", f"{', '.join(unknown[:3])} is none of this path: {takes}")


KNOWN_PARAMETERS = Depends(_refuse_unknown)
"""A dependency of routers: their routes take only the parameters that they have."""
