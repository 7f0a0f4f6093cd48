"""Who may see the page of a server: whoever has a token, which a browser keeps in a cookie after a form.

Without tokens anybody on this machine may.
"""

from __future__ import annotations

from html import escape
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from headwater.server.access import AccessControl
from headwater.server.own_sites import OwnSites
from headwater.server.problems import Problem

SIGN_IN = "sign-in"
_COOKIE = "headwater-page"
_LONGEST_BODY = 4096
_FORM = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Headwater</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px system-ui, sans-serif; display: grid; place-items: center; min-height: 90vh; }}
form {{ display: grid; gap: 12px; width: min(340px, 90vw); }}
input, button {{ font: inherit; padding: 9px 12px; border-radius: 7px; border: 1px solid #8a93a0; }}
button {{ background: #2468b4; color: #fff; border: 0; }}
p {{ margin: 0; color: #b42318; }}
</style></head><body><form method="post" action="{action}">
<label for="token">A token of this server</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
{message}<button>Sign in</button></form></body></html>"""


class PageSignIn:
    """Middleware before all others: for paths of the page, a cookie stands for the header `Authorization`."""

    def __init__(self, app: ASGIApp, access: AccessControl, sites: OwnSites, path: str) -> None:
        self._app = app
        self._access = access
        self._sites = sites
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if scope["path"] == "/" and "text/html" in headers.get("accept", ""):
            # Who types the address of the server into a browser means the page.
            await RedirectResponse(f"{self._path}/")(scope, receive, send)
            return
        if not self._is_of_page(scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            self._sites.check(headers)
        except Problem as problem:
            await self._answer(scope, receive, send, PlainTextResponse(f"{problem.detail}.", 403))
            return
        if self._access.is_open or "authorization" in headers:
            await self._app(scope, receive, send)
            return
        elif scope["path"] == f"{self._path}/{SIGN_IN}" and scope["type"] == "http":
            answer: Response = await self._sign_in(Request(scope, receive))
        else:
            token = _token_of(headers)
            if token and self._is_known(token):
                MutableHeaders(scope=scope)["authorization"] = f"Bearer {token}"
                await self._app(scope, receive, send)
                return
            answer = self._form(401)
        await self._answer(scope, receive, send, answer)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, answer: Response) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "A token is needed"})
            return
        await answer(scope, receive, send)

    def _is_of_page(self, path: str) -> bool:
        return path == self._path or path.startswith(f"{self._path}/")

    def _is_known(self, token: str) -> bool:
        try:
            return self._access.identify(f"Bearer {token}").may("read")
        except Problem:
            return False

    def _form(self, status: int, message: str = "") -> Response:
        shown = f'<p role="alert">{escape(message)}</p>' if message else ""
        return HTMLResponse(_FORM.format(action=f"{self._path}/{SIGN_IN}", message=shown), status)

    async def _sign_in(self, request: Request) -> Response:
        """Take the token of the form, and let the browser keep it."""
        if request.method != "POST":
            return self._form(200)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _LONGEST_BODY:
                return self._form(413, "That is too long for a token.")
        token = parse_qs(body.decode("latin-1")).get("token", [""])[0].strip()
        if not self._is_known(token):
            return self._form(401, "This is no token of this server that allows to read.")
        answer = RedirectResponse(f"{self._path}/", 303)
        is_secure = request.url.scheme == "https"
        answer.set_cookie(_COOKIE, token, path=self._path, httponly=True, samesite="strict", secure=is_secure)
        return answer


def _token_of(headers: Headers) -> str:
    """The token in the cookie of the page; nothing where there is none."""
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[_COOKIE].value if _COOKIE in cookies else ""
