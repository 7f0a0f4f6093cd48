"""`headwater demo --page`: the city's morning in a browser, with a map of the cars that moves."""

from __future__ import annotations

from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import headwater as hw
from headwater.commands.demo_command import MINUTES, QUERIES, SEED
from headwater.demo.traffic import City, morning
from headwater.demo.traffic_feed import FOLDERS, TrafficFeed, write_city
from headwater.errors import SettingError

MAP_QUERY = "cars-on-the-map"
MORNINGS = 6
"""The morning of the page is so many times as long as that of the terminal: there is time to look around."""


def has_page() -> bool:
    """Whether what the page needs is installed."""
    return find_spec("nicegui") is not None


def demo_page(seconds: float, port: int) -> None:
    """Serve the page over the morning until it is interrupted; 41 minutes of the city take so many seconds."""
    if not has_page():
        raise SettingError("the page needs packages that are not installed: pip install 'headwater[page]'")
    from headwater.server.page.embedded.embedded_access import EmbeddedAccess
    from headwater.server.page.page_mount import page_app, page_server
    from headwater.server.page.share_links import query_path

    demo_files = files("headwater.demo")
    with TemporaryDirectory(prefix="headwater-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        access = EmbeddedAccess()
        access.add_dataset("city", write_city(folder))
        with as_file(demo_files / "places.ttl") as places:
            access.add_dataset("places", places)
        for stream, own in FOLDERS.items():
            access.add_stream(stream, hw.files(folder / own))
        feed = TrafficFeed(folder, morning(City.read(), MORNINGS * MINUTES, SEED))
        feed.begin()
        queries = demo_files / "queries"
        # A car that one camera sees twice is counted twice.
        shown = access.add_query((queries / f"{MAP_QUERY}.rq").read_text("utf-8"), content="bag")
        for query in QUERIES:
            access.add_query((queries / f"{query}.rq").read_text("utf-8"))

        def begin() -> None:
            access.start()
            feed.go_on(seconds / MINUTES)
            print(f"The page is at http://127.0.0.1:{port}/ until you stop it with Ctrl+C.", flush=True)

        def end() -> None:
            feed.stop()
            access.stop()

        page_server(page_app(access, begin, end, query_path(shown)), port).run()
