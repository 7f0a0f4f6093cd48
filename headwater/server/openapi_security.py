"""What OpenAPI says of tokens: who sends one, and which path needs none."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

_WITHOUT_TOKEN = ("/health",)
_SCHEME = "token"


def describe_security(app: FastAPI, *, has_tokens: bool) -> None:
    """Have the description of an application say how requests are allowed."""
    describe = app.openapi
    security: list[dict[str, list[str]]] = [{_SCHEME: []}] if has_tokens else [{}, {_SCHEME: []}]

    def with_security() -> dict[str, Any]:
        found = describe()
        scheme = {"type": "http", "scheme": "bearer", "description": "A token of the server"}
        found.setdefault("components", {})["securitySchemes"] = {_SCHEME: scheme}
        found["security"] = security
        for path in _WITHOUT_TOKEN:
            for operation in found["paths"].get(path, {}).values():
                operation["security"] = []
        return found

    app.openapi = with_security  # type: ignore[method-assign]
