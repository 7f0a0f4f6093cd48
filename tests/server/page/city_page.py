"""A server for the tests of the page: the city, whose streams are the files that a test writes.

python -m tests.server.page.city_page FOLDER PORT [HOW-MANY-QUERIES-MORE]
"""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

import headwater as hw
from headwater.demo.traffic_feed import FOLDERS, write_city
from headwater.server.page.embedded.embedded_access import EmbeddedAccess
from headwater.server.page.page_mount import page_app, page_server


def make_city(folder: Path) -> EmbeddedAccess:
    """The engine of the city, its streams in folders that may grow."""
    access = EmbeddedAccess()
    access.add_dataset("city", write_city(folder))
    access.add_dataset("places", str(files("headwater.demo") / "places.ttl"))
    for stream, name in FOLDERS.items():
        access.add_stream(stream, hw.files(folder / name))
    return access


def read_query(name: str) -> str:
    """The text of a query of the demonstration."""
    return (files("headwater.demo") / "queries" / f"{name}.rq").read_text("utf-8")


def main() -> None:
    folder, port = Path(sys.argv[1]), int(sys.argv[2])
    access = make_city(folder)
    for stream in FOLDERS.values():
        # A run that follows a folder waits for files; the source wants one to begin with.
        (folder / stream / "begin.tnq").write_text("", "utf-8")
    text = read_query("cars-on-the-map")
    access.add_query(text, content="bag")
    for number in range(int(sys.argv[3]) if len(sys.argv) > 3 else 0):
        # Each has a plan of its own: equal queries would be evaluated together.
        access.add_query(text.replace("PT5M", f"PT{number + 6}M"), name=f"map-{number}", content="bag")
    page_server(page_app(access, access.start, access.stop), port).run()


if __name__ == "__main__":
    main()
