"""Resolution of relative IRI references against a base (RFC 3986, section 5.2; RFC 3987 for IRIs).

>>> resolve_iri("http://a/b/c", "../d?x")
'http://a/d?x'
"""

from __future__ import annotations

import re

DEFAULT_BASE = "headwater:/"
"""What relative IRIs resolve against when neither BASE nor the caller says otherwise."""

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)


def is_absolute(reference: str) -> bool:
    """Whether the reference has a scheme."""
    return _ABSOLUTE.match(reference) is not None


def resolve_iri(base: str, reference: str) -> str:
    """The IRI that `reference` means inside a document at `base`."""
    if is_absolute(reference):
        return reference
    base_match, match = _PARTS.fullmatch(base), _PARTS.fullmatch(reference)
    assert base_match is not None
    assert match is not None
    scheme, base_authority, base_path, base_query, _ = base_match.groups()
    _, authority, path, query, fragment = match.groups()
    if authority is not None:
        path = _remove_dot_segments(path)
    else:
        authority = base_authority
        if not path:
            path = base_path
            query = base_query if query is None else query
        elif path.startswith("/"):
            path = _remove_dot_segments(path)
        else:
            folder = base_path[: base_path.rfind("/") + 1]
            path = _remove_dot_segments(("/" if base_authority is not None and not base_path else folder) + path)
    return (
        (f"{scheme}:" if scheme is not None else "")
        + (f"//{authority}" if authority is not None else "")
        + path
        + (f"?{query}" if query is not None else "")
        + (f"#{fragment}" if fragment is not None else "")
    )


def _remove_dot_segments(path: str) -> str:
    """Remove `.` and `..` from a path (RFC 3986, section 5.2.4)."""
    if "." not in path:
        return path
    segments = path.split("/")
    kept: list[str] = []
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        if segment == ".":
            if last:
                kept.append("")
        elif segment == "..":
            if len(kept) > 1 or (kept and kept[0] != ""):
                kept.pop()
            if last:
                kept.append("")
        else:
            kept.append(segment)
    return "/".join(kept)
