"""What `engine.function` was given, checked, as a function that queries can call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from headwater.errors import SettingError
from headwater.language.builtins import CAST_FUNCTIONS
from headwater.terms.arguments import check_flag, check_text
from headwater.terms.model import NamedNode
from headwater.terms.own_functions import OwnFunction, add_own_function


def add_function(iri: str, function: Callable[..., Any], *, aggregate: bool, terms: bool) -> None:
    """Let queries call a function; a `SettingError` where it cannot be called, or the name is taken."""
    check_text("the IRI of a function", iri)
    if not callable(function):
        raise SettingError(f"the function <{iri}> must be callable, and it is {function!r}")
    try:
        is_absolute = bool(urlsplit(NamedNode(iri).value).scheme)
    except ValueError:
        is_absolute = False
    if not is_absolute:
        raise SettingError(f"a function is named by an absolute IRI, such as http://example.org/distance, not {iri!r}")
    if iri in CAST_FUNCTIONS:
        raise SettingError(f"<{iri}> is a cast of SPARQL: give the function another IRI")
    is_aggregate, takes_terms = check_flag("aggregate", aggregate), check_flag("terms", terms)
    add_own_function(OwnFunction(iri, function, is_aggregate, takes_terms))
