"""Names that people give: an absolute IRI stays itself, anything else is resolved against one fixed base.

So `REGISTER STREAM Cars`, `FROM STREAM <Cars>`, `--stream Cars=cars.tnq` and `--data city.ttl@Cars` mean one thing.
"""

from __future__ import annotations

from urllib.parse import quote

from headwater.terms.arguments import check_type
from headwater.terms.model import NamedNode

DEFAULT_BASE = "headwater:/"


def name_to_iri(name: str) -> NamedNode:
    """The IRI that a name stands for."""
    check_type("a name", name, str, "a text")
    try:
        return NamedNode(name)
    except ValueError:
        return NamedNode(DEFAULT_BASE + quote(name.lstrip("/"), safe="/:@!$&'()*+,;=-._~%#?"))


def iri_to_name(iri: str) -> str:
    """The name as a person would write it."""
    return iri.removeprefix(DEFAULT_BASE)
