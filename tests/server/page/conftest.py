"""One server and one browser for all tests of a module; skipped where there may be no browser.

While the browser is there, its driver keeps an event loop in the main thread. So it ends with the module, and no other
test of such a module may run an event loop.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.demo.traffic import City, Minute, morning
from headwater.demo.traffic_feed import write_minute
from tests.free_ports import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PROJECT = Path(__file__).resolve().parents[3]
SCREENSHOTS = PROJECT / "build" / "screenshots"
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
_START_SECONDS = 120
"""The engine may compile when it is first used."""
_PATIENCE_MILLISECONDS = 90_000
"""How long a view may take to show something: answers wait for what is compiled."""


@dataclass
class LiveCity:
    """The served city. `minutes` lets time pass: so many minutes of the morning are written."""

    url: str
    folder: Path
    process: subprocess.Popen[bytes]
    morning: list[Minute] = field(default_factory=lambda: morning(City.read(), 60, 2010))
    written: int = 0

    def let_pass(self, minutes: int) -> None:
        """Write the next minutes of both streams."""
        for number in range(self.written, self.written + minutes):
            write_minute(self.folder, number, self.morning[number])
        self.written += minutes


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium; it is installed where that is allowed."""
    pytest.importorskip("nicegui", reason="the extra page is not installed")
    pytest.importorskip("playwright.sync_api", reason="playwright, which drives the browser, is not installed")
    found = subprocess.run([PROJECT / "scripts" / "ensure-chromium"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        pytest.skip(found.stderr.strip())
    return found.stdout.strip()


@pytest.fixture(scope="module")
def city(request: pytest.FixtureRequest, chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCity]:
    """The page over the city, ten minutes of which have passed; a module may want `MORE_QUERIES`."""
    more = str(getattr(request.module, "MORE_QUERIES", 0))
    folder, port = tmp_path_factory.mktemp("city"), free_port()
    command = [sys.executable, "-m", "tests.server.page.city_page", str(folder), str(port), more]
    with open(folder / "server.log", "wb") as log:
        process = subprocess.Popen(command, cwd=PROJECT, stdout=log, stderr=log)
    served = LiveCity(f"http://127.0.0.1:{port}", folder, process)
    try:
        end = time.monotonic() + _START_SECONDS
        while not _answers(served.url):
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"the page did not start: {(folder / 'server.log').read_text()}")
            time.sleep(0.1)
        served.let_pass(10)
        yield served
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/page/", timeout=5) as answer:
            return int(answer.status) == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """The one browser."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=_PATIENCE_MILLISECONDS)
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One set of cookies and one cache for all tests."""
    found = browser.new_context(viewport={"width": 1280, "height": 860})
    found.set_default_timeout(30_000)
    yield found
    found.close()


@dataclass
class Watched:
    """A page of the browser, what it asked for, and what went wrong in it."""

    page: Page
    hosts: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)

    def screenshot(self, name: str) -> None:
        """Keep a picture, to be looked at."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


@pytest.fixture
def watched(context: BrowserContext, city: LiveCity) -> Iterator[Watched]:
    """A page in which nothing may go wrong, and which may ask nobody but its server."""
    found = Watched(context.new_page())
    watch(found)
    yield found
    found.page.close()
    assert not found.errors
    assert found.hosts == {city.url.removeprefix("http://")}


def watch(found: Watched) -> None:
    """Note the requests and the errors of a page."""
    found.page.on("request", lambda request: found.hosts.update(_host_of(request.url)))
    found.page.on("websocket", lambda socket: found.hosts.update(_host_of(socket.url)))
    found.page.on("pageerror", lambda error: found.errors.append(str(error)))
    found.page.on("console", lambda message: found.errors.append(message.text) if message.type == "error" else None)


def _host_of(url: str) -> set[str]:
    return set() if url.startswith(("data:", "blob:")) else {url.split("/")[2]}
