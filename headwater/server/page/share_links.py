"""Links into the page: to a query, to a stream, and to the editor with a text in the link itself.

>>> unpack_text(pack_text("SELECT * WHERE { ?s ?p ?o }"))
'SELECT * WHERE { ?s ?p ?o }'
"""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from urllib.parse import quote

from headwater.errors import SettingError

LONGEST_TEXT = 50_000
"""Longer texts are not taken from a link."""


def pack_text(text: str) -> str:
    """A text as characters that a link may have."""
    return urlsafe_b64encode(zlib.compress(text.encode("utf-8", "replace"), 9)).decode("ascii").rstrip("=")


def unpack_text(packed: str) -> str:
    """The text that was packed; a `SettingError` where a link is damaged."""
    try:
        data = urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        return zlib.decompressobj().decompress(data, 4 * LONGEST_TEXT).decode("utf-8")[:LONGEST_TEXT]
    except (Error, zlib.error, ValueError):
        raise SettingError("this link is damaged: it has no query in it") from None


def query_path(name: str) -> str:
    """The path of the view of a query; its name may have any character."""
    return f"/query?name={quote(name, safe='')}"


def stream_path(name: str) -> str:
    """The path of the view of a stream."""
    return f"/streams?name={quote(name, safe='')}"


def editor_path(text: str) -> str:
    """The path of the editor with a text."""
    return f"/editor?text={pack_text(text)}"


def edit_path(name: str) -> str:
    """The path of the editor with the text of a registered query."""
    return f"/editor?query={quote(name, safe='')}"
