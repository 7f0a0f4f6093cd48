"""Who may see the page, without a browser: names of this machine, tokens, cookies."""

from __future__ import annotations

import asyncio

import httpx
from fastapi import FastAPI, Request

from headwater.server.access import AccessControl, AccessToken, hash_token
from headwater.server.own_sites import OwnSites
from headwater.server.page.served.page_sign_in import PageSignIn

READER, FEEDER = "hw_reader", "hw_feeder"


def make_app(*tokens: AccessToken) -> FastAPI:
    app = FastAPI()

    @app.get("/page/")
    def show(request: Request) -> str:
        return request.headers.get("authorization", "nobody")

    app.add_middleware(PageSignIn, access=AccessControl(tokens), sites=OwnSites(not tokens), path="/page")
    return app


def ask(app: FastAPI, method: str = "GET", path: str = "/page/", token: str = "", **headers: str) -> httpx.Response:
    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8080") as client:
            return await client.request(method, path, headers=headers, data={"token": token} if token else None)

    return asyncio.run(send())


def test_without_tokens_the_page_is_only_for_names_of_this_machine() -> None:
    app = make_app()
    assert ask(app).json() == "nobody"
    assert ask(app, Host="localhost").status_code == 200
    assert ask(app, Host="[::1]:8080").status_code == 200
    assert ask(app, Host="elsewhere.example:8080").status_code == 403


def test_a_browser_is_led_to_the_page() -> None:
    app = make_app()
    assert ask(app, path="/", Accept="text/html,*/*").headers["location"] == "/page/"
    assert ask(app, path="/", Accept="application/json").status_code == 404


def test_no_other_website_opens_a_connection() -> None:
    app = make_app()
    assert ask(app, Origin="http://elsewhere.example").status_code == 403
    assert ask(app, Origin="http://127.0.0.1:8080").status_code == 200


def test_a_token_of_the_form_becomes_a_cookie_that_stands_for_it() -> None:
    scopes = [AccessToken.of("a", hash_token(READER), ["read"], None, None)]
    scopes.append(AccessToken.of("b", hash_token(FEEDER), ["feed"], None, None))
    app = make_app(*scopes)
    refused = ask(app)
    assert refused.status_code == 401 and "A token of this server" in refused.text
    for wrong in ("hw_wrong", FEEDER, "<script>"):
        answer = ask(app, "POST", "/page/sign-in", wrong)
        assert answer.status_code == 401 and "set-cookie" not in answer.headers
        assert "<script>" not in answer.text
    answer = ask(app, "POST", "/page/sign-in", READER)
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 303 and answer.headers["location"] == "/page/"
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/page" in cookie
    shown = ask(app, Cookie=cookie.partition(";")[0])
    assert shown.json() == f"Bearer {READER}"
    assert ask(app, Cookie="headwater-page=hw_wrong").status_code == 401
    assert ask(app, "POST", "/page/sign-in", "x" * 10_000).status_code == 413
