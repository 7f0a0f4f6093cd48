"""The page of `headwater serve` in a browser: signed in, fed over HTTP, and there again when the engine was killed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from headwater.server.access import hash_token
from headwater.server.page.share_links import pack_text
from tests.server.page.conftest import Watched, watch
from tests.server.serving import Server, serving

pytest.importorskip("playwright.sync_api", reason="playwright, which drives the browser, is not installed")

from playwright.sync_api import Browser, Locator, Page, expect

ALL, READER = "hw_all_of_it", "hw_only_to_read"
SETTINGS = f"""
[[tokens]]
name = "owner"
hash = "{hash_token(ALL)}"
scopes = ["admin"]

[[tokens]]
name = "reader"
hash = "{hash_token(READER)}"
scopes = ["read"]

[[streams]]
name = "s"
"""
SUMS = "REGISTER QUERY Sums AS SELECT (SUM(?v) AS ?sum) FROM STREAM <s> [RANGE 2s STEP 1s] WHERE { ?x <urn:v> ?v }"


@pytest.fixture(scope="module")
def guarded(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("guarded"), SETTINGS, token=ALL) as found:
        yield found


@pytest.fixture
def visitor(browser: Browser, guarded: Server) -> Iterator[Watched]:
    """A page of a browser that knows no token."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    found = Watched(context.new_page())
    watch(found)
    yield found
    context.close()
    assert found.hosts == {guarded.url.removeprefix("http://")}


def sign_in(visitor: Watched, guarded: Server, token: str) -> Page:
    page = visitor.page
    page.goto(guarded.url + "/page/")
    page.get_by_label("A token of this server").fill(token)
    page.get_by_role("button", name="Sign in").click()
    return page


def newest(page: Page) -> Locator:
    return page.get_by_text(re.compile(r"^1970-01-01 .* UTC"))


def test_who_has_no_token_sees_only_a_form(visitor: Watched, guarded: Server) -> None:
    page = sign_in(visitor, guarded, "hw_no_token")
    expect(page.get_by_role("alert")).to_contain_text("no token of this server")
    asked = guarded.client.get("/page/", headers={"Authorization": ""})
    assert asked.status_code in (401, 403)
    assert "Overview" not in asked.text


def test_who_may_only_read_changes_nothing(visitor: Watched, guarded: Server) -> None:
    page = sign_in(visitor, guarded, READER)
    expect(page.get_by_role("link", name="Editor")).to_be_visible()
    page.goto(f"{guarded.url}/page/editor?text={pack_text(SUMS)}")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_text("it needs the scope register")).to_be_visible()
    assert guarded.client.get("/queries").json() == {"queries": []}


def test_a_query_is_followed_and_the_page_recovers(visitor: Watched, guarded: Server) -> None:
    page = sign_in(visitor, guarded, ALL)
    expect(page.get_by_role("link", name="s", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile(r"^[\d.]+ MB$"))).to_be_visible()
    assert guarded.feed(1, 2, 3).status_code == 200
    page.goto(f"{guarded.url}/page/editor?text={pack_text(SUMS)}")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("The answer at the newest element.")).to_be_visible()
    page.get_by_role("button", name="Register").click()
    page.wait_for_url("**/page/query?name=Sums")
    guarded.feed(4, 5, 6, 7)
    expect(newest(page)).to_be_visible()
    expect(newest(page)).to_have_text(re.compile("00:00:0[67]"))
    visitor.screenshot("server-query")
    page.get_by_role("tab", name="Windows").click()
    expect(page.get_by_text(re.compile(r"^<urn:x> <urn:v> \d")).first).to_be_visible()
    page.get_by_role("tab", name="Plan").click()
    expect(page.locator(".hw-plan svg g.node").first).to_be_visible()
    page.get_by_role("tab", name="Why").click()
    page.get_by_role("button", name="Explain the newest answer").click()
    expect(page.get_by_text("?x <urn:v> ?v", exact=True)).to_be_visible()
    page.get_by_role("tab", name="Answers").click()

    guarded.kill_engine()
    guarded.feed_until_taken(8, 9, 10, 11, key="after")
    expect(newest(page)).to_have_text(re.compile("00:00:1[01]"))
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".hw-state")).to_have_text("paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".hw-state")).to_have_text("running")
    page.goto(f"{guarded.url}/page/streams?name=s")
    expect(page.get_by_text(re.compile(r"^<urn:x> <urn:v> 11 \.")).first).to_be_visible()
    page.goto(f"{guarded.url}/page/query?name=Sums")
    page.get_by_role("button", name="Drop").click()
    page.get_by_role("button", name="Drop it").click()
    page.wait_for_url("**/page/")
    assert guarded.client.get("/queries").json() == {"queries": []}
    audit = (guarded.folder / "headwater-state" / "audit.jsonl").read_text()
    assert [name in audit for name in ("Sums?action=register", "Sums?action=pause", "Sums?action=drop")] == [True] * 3


def test_an_open_page_does_not_hold_up_the_end(visitor: Watched, guarded: Server) -> None:
    page = sign_in(visitor, guarded, ALL)
    expect(page.get_by_role("link", name="s", exact=True)).to_be_visible()
    assert guarded.stop() == 0
    expect(page.get_by_text("Trying to reconnect")).to_be_visible()
    visitor.errors.clear()
