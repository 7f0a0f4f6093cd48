"""Twenty queries that are open in a browser at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.server.page.conftest import LiveCity

pytest.importorskip("playwright.sync_api", reason="playwright, which drives the browser, is not installed")

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

MORE_QUERIES = 20
SOON = 20_000
"""Milliseconds in which a view is drawn that nothing freezes."""


def test_twenty_open_queries_do_not_freeze_it(context: BrowserContext, city: LiveCity) -> None:
    """Twenty views follow the answers of twenty queries, and a new view is drawn as soon as before."""
    others = [context.new_page() for _ in range(MORE_QUERIES)]
    for number, page in enumerate(others):
        page.goto(f"{city.url}/page/query?name=map-{number}", wait_until="commit")
    city.let_pass(3)
    for number in (0, 7, MORE_QUERIES - 1):
        expect(others[number].get_by_role("heading", name=f"map-{number}")).to_be_visible()
        expect(others[number].get_by_text(re.compile(r"^2026-03-02 .* UTC")).first).to_be_visible()
    page = context.new_page()
    page.goto(f"{city.url}/page/")
    expect(page.get_by_role("link", name="CarsOnTheMap").first).to_be_visible(timeout=SOON)
    page.get_by_role("link", name="Editor").click()
    expect(page.locator(".cm-content")).to_contain_text("REGISTER", timeout=SOON)
    for one in (page, *others):
        one.close()
