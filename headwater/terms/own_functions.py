"""Functions of users, by the IRIs under which queries call them.

They belong to the process, as the names of modules do: queries, plans and caches know functions by their names alone.
Who sends plans to other processes sends `ProcessFunctions` along.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class OwnFunction:
    """A function of a user.

    An aggregate is called with the list of the values of a group. With `takes_terms` values are RDF terms, otherwise
    those of Python.
    """

    iri: str
    call: Callable[..., Any]
    is_aggregate: bool = False
    takes_terms: bool = False


_FUNCTIONS: dict[str, OwnFunction] = {}


def add_own_function(function: OwnFunction) -> None:
    """Let queries call a function; another one of the same name is replaced."""
    # Readers go over the functions while others are added.
    global _FUNCTIONS
    _FUNCTIONS = {**_FUNCTIONS, function.iri: function}


def own_functions() -> dict[str, OwnFunction]:
    """All of them by their IRIs."""
    return _FUNCTIONS


def own_scalar(iri: str) -> OwnFunction | None:
    """The function of this name, if there is one that is no aggregate."""
    found = _FUNCTIONS.get(iri)
    return None if found is None or found.is_aggregate else found


def own_aggregate(name: str) -> OwnFunction | None:
    """The aggregate of this name, which plans write as `<IRI>`."""
    found = _FUNCTIONS.get(name.removeprefix("<").removesuffix(">"))
    return found if found is not None and found.is_aggregate else None


class ProcessFunctions:
    """The functions of this process, as a value that goes with a plan to another one and adds them there."""

    def __reduce__(self) -> tuple[Callable[[bytes], ProcessFunctions], tuple[bytes]]:
        return _receive, (_pack(list(_FUNCTIONS.values())),)


def _pack(functions: list[OwnFunction]) -> bytes:
    if not functions:
        return b""
    try:
        # It sends functions of notebooks and scripts by their code.
        cloudpickle: Any = import_module("pyspark.cloudpickle")
    except ImportError:
        return pickle.dumps(functions)
    packed: bytes = cloudpickle.dumps(functions)
    return packed


def _receive(packed: bytes) -> ProcessFunctions:
    for function in pickle.loads(packed) if packed else ():
        add_own_function(function)
    return ProcessFunctions()
