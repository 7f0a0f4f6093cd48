"""`headwater demo --page` serves the page, and ends when it is interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from headwater.commands import demo_page
from headwater.errors import SettingError
from tests.commands.running import PROJECT
from tests.free_ports import free_port


def test_it_serves_the_page_until_it_is_interrupted() -> None:
    pytest.importorskip("nicegui", reason="the extra page is not installed")
    port = free_port()
    command = [sys.executable, "-m", "headwater", "demo", "--page", "--port", str(port)]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert f"http://127.0.0.1:{port}/" in process.stdout.readline()
        assert "<title>Headwater</title>" in read_page(process, f"http://127.0.0.1:{port}/")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130, -signal.SIGINT)
    finally:
        process.kill()
        process.communicate()


def read_page(process: subprocess.Popen[str], url: str) -> str:
    """The page, as soon as somebody listens."""
    while process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                assert answer.url.endswith("/page/query?name=CarsOnTheMap"), "it opens on the map"
                return str(answer.read().decode())
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            time.sleep(0.05)
    raise AssertionError("the demonstration has ended")


def test_without_its_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_page, "has_page", lambda: False)
    with pytest.raises(SettingError, match=r"pip install 'headwater\[page\]'"):
        demo_page.demo_page(60, 8080)


def test_the_query_of_the_map_has_coordinates() -> None:
    text = (Path(demo_page.__file__).parents[1] / "demo" / "queries" / f"{demo_page.MAP_QUERY}.rq").read_text("utf-8")
    assert "?lat ?long" in text
