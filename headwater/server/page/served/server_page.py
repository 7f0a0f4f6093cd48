"""The page of `headwater serve`: mounted where its packages are installed, behind a form where there are tokens."""

from __future__ import annotations

from importlib.util import find_spec

from fastapi import FastAPI, Request

from headwater.server.audit_log import AuditLog
from headwater.server.server_services import CALLER, ServerServices


def mount_server_page(app: FastAPI) -> bool:
    """Let a server show the page; whether its packages are there."""
    if find_spec("nicegui") is None:
        return False
    from headwater.server.page.page_access import PageAccess
    from headwater.server.page.page_mount import PAGE_PATH, mount_page
    from headwater.server.page.served.page_sign_in import PageSignIn
    from headwater.server.page.served.server_access import ServerAccess

    services: ServerServices = app.state.services
    audit: AuditLog = app.state.audit

    def access_of(request: Request) -> PageAccess:
        caller = request.scope[CALLER]
        address = request.client.host if request.client is not None else ""

        def note(action: str, name: str) -> None:
            audit.note(caller.name, address, "PAGE", f"/queries/{name}?action={action}", 200)

        return ServerAccess(services, caller, note)

    mount_page(app, access_of)
    app.add_middleware(PageSignIn, access=services.access, sites=services.sites, path=PAGE_PATH)
    return True
