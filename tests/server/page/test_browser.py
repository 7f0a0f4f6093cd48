"""The page in a real browser: every view, and the life of a query from its first letter to its end.

The tests share one server and one browser, and wait for what should be seen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from headwater.server.page.share_links import pack_text
from tests.server.page.conftest import LiveCity, Watched, watch

pytest.importorskip("playwright.sync_api", reason="playwright, which drives the browser, is not installed")

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

GATES = """\
PREFIX t: <http://linkedurbandata.org/traffic#>
REGISTER RSTREAM GateCounts AS
SELECT ?gate (COUNT(?car) AS ?cars)
FROM NAMED WINDOW <w> ON <http://city/tollgates> [RANGE PT2M STEP PT1M]
WHERE { WINDOW <w> { ?gate t:registers ?car } }
GROUP BY ?gate
"""


def open_view(watched: Watched, city: LiveCity, path: str) -> Page:
    """The view at a path, once it is drawn."""
    watched.page.goto(f"{city.url}/page{path}")
    expect(watched.page.locator(".hw-view").first).to_be_visible()
    return watched.page


def card(page: Page, title: str) -> Locator:
    """The card with a title."""
    return page.locator(".hw-card", has=page.get_by_role("heading", name=title, exact=True))


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()


def map_time(page: Page) -> str:
    """The time of the newest answer."""
    return page.get_by_text(re.compile(r"^2026-03-02 .* UTC")).first.inner_text()


def test_the_overview_shows_rates_and_what_is_wrong(watched: Watched, city: LiveCity) -> None:
    with open(city.folder / "tollgates" / "minute-0003b.tnq", "w") as damaged:
        damaged.write("this is no element\n")
    page = open_view(watched, city, "/")
    expect(page).to_have_title("Headwater")
    queries = card(page, "Queries")
    expect(queries.get_by_role("link", name="CarsOnTheMap")).to_be_visible()
    expect(queries.get_by_text("running")).to_be_visible()
    streams = card(page, "Streams")
    for name in ("http://city/tollgates", "http://city/cameras"):
        expect(streams.get_by_role("link", name=name)).to_be_visible()
    expect(card(page, "Data sets").get_by_text("city, places")).to_be_visible()
    expect(page.get_by_role("link", name="1 element of http://city/tollgates could not be read.")).to_be_visible()
    watched.screenshot("overview")
    page.get_by_role("link", name="1 element of http://city/tollgates could not be read.").click()
    expect(card(page, "Dead letters: what took no part, and why").get_by_text("this is no element")).to_be_visible()


def test_the_map_moves_as_answers_come(watched: Watched, city: LiveCity) -> None:
    page = open_view(watched, city, "/query?name=CarsOnTheMap")
    expect(page.get_by_text("Map", exact=True).first).to_be_visible()
    expect(page.locator(".hw-chart canvas")).to_be_visible()
    before = map_time(page)
    city.let_pass(2)
    expect(page.get_by_text(before)).to_have_count(0)
    changed = card(page, "What entered and what left")
    expect(changed.locator(".hw-entered").first).to_be_visible()
    expect(changed.locator(".hw-left").first).to_be_visible()
    watched.screenshot("query-map")
    page.get_by_role("button", name="Bars").click()
    expect(page.get_by_text("Bars", exact=True).first).to_be_visible()


def test_the_plan_the_windows_and_why(watched: Watched, city: LiveCity) -> None:
    page = open_view(watched, city, "/query?name=CarsOnTheMap")
    expect(page.get_by_text(re.compile(r"^2026-03-02 .* UTC")).first).to_be_visible()
    open_tab(page, "Plan")
    expect(page.locator(".hw-plan svg g.node").first).to_be_visible()
    expect(page.get_by_text("?place ?lat ?long", exact=True).first).to_be_visible()
    expect(page.get_by_text("all operators together")).to_be_visible()
    page.get_by_role("button", name="Count at the newest answer").click()
    expect(page.locator(".hw-plan svg g.node", has_text=re.compile(r"\d in, \d+ out")).first).to_be_visible()
    watched.screenshot("query-plan")
    open_tab(page, "Windows")
    expect(page.get_by_text("its windows held everything  ·  data at version", exact=False)).to_be_visible()
    expect(page.get_by_text(re.compile(r'c:gate\d t:registers "HW \d+"')).first).to_be_visible()
    watched.screenshot("query-windows")
    open_tab(page, "Why")
    page.get_by_role("button", name="Explain the newest answer").click()
    expect(page.get_by_text("union", exact=True)).to_be_visible()
    watched.screenshot("query-why")
    open_tab(page, "Text")
    expect(page.get_by_text("REGISTER RSTREAM CarsOnTheMap AS")).to_be_visible()


def test_an_error_is_marked_where_the_parser_says(watched: Watched, city: LiveCity) -> None:
    text = GATES.replace("GROUP BY ?gate", "GROUP OF ?gate")
    page = open_view(watched, city, f"/editor?text={pack_text(text)}")
    wrong = page.locator(".cm-content .hw-wrong")
    expect(wrong).to_have_text("OF")
    expect(page.get_by_text(re.compile(r"^Line 6, column 7: .*expected"))).to_be_visible()
    expect(page.get_by_role("button", name="Register")).to_be_disabled()
    watched.screenshot("editor-error")
    assert "expected BY" in (wrong.get_attribute("title") or "")
    wrong.dblclick()
    page.keyboard.type("BY")
    expect(wrong).to_have_count(0)
    expect(page.get_by_role("button", name="Register")).to_be_enabled()


def test_nothing_that_is_typed_is_lost_to_a_check(watched: Watched, city: LiveCity) -> None:
    """Checks come back while somebody goes on typing."""
    page = open_view(watched, city, f"/editor?text={pack_text('# typed: ')}")
    editor = page.locator(".cm-content")
    expect(editor).to_contain_text("# typed:")
    editor.click()
    page.keyboard.press("Control+End")
    typed = "".join(f"{number} wrong " for number in range(20))
    for word in typed.split(" "):
        page.keyboard.type(f"{word} ", delay=12)
    expect(editor).to_contain_text(typed.strip())
    page.keyboard.press("Enter")
    page.keyboard.type("NO QUERY")
    expect(page.locator(".cm-content .hw-wrong")).to_have_text("NO")


def test_the_editor_offers_what_is_known(watched: Watched, city: LiveCity) -> None:
    page = open_view(watched, city, f"/editor?text={pack_text(GATES)}")
    expect(page.locator(".cm-content")).to_contain_text("GateCounts")
    page.wait_for_function("window.headwaterWords !== undefined")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    for typed, offered in (
        ("<http://city/to", "<http://city/tollgates>"),
        (" t:reg", "t:registers"),
        (" ?ca", "?cars"),
    ):
        page.keyboard.type(typed)
        expect(page.locator(".cm-tooltip-autocomplete li").get_by_text(offered).first).to_be_visible()
        page.keyboard.press("Escape")
    watched.screenshot("editor-completion")


def test_a_query_lives(watched: Watched, city: LiveCity) -> None:
    """It is previewed, shared, registered, answered, paused, resumed and dropped."""
    page = open_view(watched, city, f"/editor?text={pack_text(GATES)}")
    page.get_by_role("button", name="Preview").click()
    preview = card(page, "Preview")
    expect(preview.get_by_text(re.compile(r"answers over the last \d+ elements"))).to_be_visible()
    expect(preview.get_by_text("<http://linkedurbandata.org/city#gate", exact=False).first).to_be_visible()
    watched.screenshot("editor-preview")
    page.get_by_role("button", name="Share").click()
    page.wait_for_url(f"**/page/editor?text={pack_text(GATES)}")
    page.get_by_role("button", name="Register").click()
    page.wait_for_url("**/page/query?name=GateCounts")
    newest = page.get_by_text(re.compile(r"^2026-03-02 .* UTC"))
    city.let_pass(3)
    expect(newest).to_be_visible()
    seen = newest.inner_text()
    city.let_pass(2)
    expect(newest).not_to_have_text(seen)
    watched.screenshot("query-lines")

    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".hw-state")).to_have_text("paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".hw-state")).to_have_text("running")
    seen = newest.inner_text()
    city.let_pass(4)
    expect(newest).not_to_have_text(seen)

    page.get_by_role("button", name="Drop").click()
    page.get_by_role("button", name="Drop it").click()
    page.wait_for_url("**/page/")
    expect(card(page, "Queries").get_by_role("link", name="CarsOnTheMap")).to_be_visible()
    expect(card(page, "Queries").get_by_role("link", name="GateCounts")).to_have_count(0)


def test_a_paused_query_has_no_new_answers(watched: Watched, city: LiveCity) -> None:
    page = open_view(watched, city, f"/editor?text={pack_text(GATES.replace('GateCounts', 'Other'))}")
    page.get_by_label("Name").fill("Resting")
    page.get_by_role("button", name="Register").click()
    page.wait_for_url("**/page/query?name=Resting")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".hw-state")).to_have_text("paused")
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_role("link", name="Resting is paused.")).to_be_visible()
    page.get_by_role("link", name="Resting is paused.").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    page.get_by_role("button", name="Drop").click()
    page.get_by_role("button", name="Drop it").click()
    page.wait_for_url("**/page/")


def test_the_streams_and_a_template(watched: Watched, city: LiveCity) -> None:
    page = open_view(watched, city, "/streams?name=http%3A%2F%2Fcity%2Fcameras")
    expect(page.get_by_text(re.compile(r'c:camera\d t:registers "HW \d+"')).first).to_be_visible()
    predicates = card(page, "Predicates of the last elements")
    expect(predicates.get_by_text("http://linkedurbandata.org/traffic#registers")).to_be_visible()
    page.get_by_role("button", name="Try").click()
    expect(page.get_by_text("<http://example.org/observation/1>", exact=False).first).to_be_visible()
    watched.screenshot("streams")
    page.get_by_label("Rows").fill("time,sensor,value\nyesterday,s1,5\n")
    page.get_by_role("button", name="Try").click()
    expect(page.get_by_text(re.compile(r"row in line 2: .*yesterday")).first).to_be_visible()


def test_the_data_answers_sparql(watched: Watched, city: LiveCity) -> None:
    page = open_view(watched, city, "/data")
    expect(page.get_by_text("city, places")).to_be_visible()
    expect(page.locator(".cm-content")).to_contain_text("SELECT")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("<http://www.w3.org/2003/01/geo/wgs84_pos#lat>")).to_be_visible()
    watched.screenshot("data")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.type("SELECT nothing")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".hw-check.hw-isbad")).to_be_visible()


def test_dark_on_a_phone_and_by_keyboard(browser: Browser, city: LiveCity) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
    found = Watched(context.new_page())
    watch(found)
    page = open_view(found, city, "/")
    expect(page.locator("body.body--dark")).to_be_visible()
    expect(page.get_by_role("link", name="CarsOnTheMap").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
    found.screenshot("phone-dark-overview")
    page.get_by_role("link", name="Editor").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/page/editor")
    expect(page.locator(".cm-content")).to_contain_text("REGISTER")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
    found.screenshot("phone-dark-editor")
    assert not found.errors
    context.close()
