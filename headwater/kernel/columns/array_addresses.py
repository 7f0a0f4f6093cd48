"""Arrays inside compiled code by their addresses, for functions that take any number of them.

Compiled code is made for the types of its arguments. A function over a list of tables would be compiled again for each
length of the list; a function that takes a table of addresses is compiled once. The caller keeps the arrays alive.
"""

from __future__ import annotations

from typing import Any

import numba as _numba
import numpy as np
from numba.core import cgutils as _cgutils
from numba.core import types
from numba.extending import intrinsic

from headwater.terms.compiled_code import compiled

_cg: Any = _cgutils
_types: Any = types


def _to_pointer(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], _cg.voidptr_t)

    return _types.voidptr(_types.int64), generate


_pointer: Any = intrinsic(_to_pointer)
_nb: Any = _numba
_carray: Any = _nb.carray


@compiled(inline="always")
def ints_at(address, size):  # type: ignore[no-untyped-def]
    """An array of 64-bit integers."""
    return _carray(_pointer(address), (size,), np.int64)


@compiled(inline="always")
def rows_at(address, size, width):  # type: ignore[no-untyped-def]
    """Rows of 64-bit integers."""
    return _carray(_pointer(address), (size, width), np.int64)


@compiled(inline="always")
def links_at(address, size, width):  # type: ignore[no-untyped-def]
    """Rows of 32-bit integers."""
    return _carray(_pointer(address), (size, width), np.int32)


@compiled(inline="always")
def places_at(address, size):  # type: ignore[no-untyped-def]
    """An array of 32-bit integers."""
    return _carray(_pointer(address), (size,), np.int32)


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Where the values of an array begin; it must be in C order."""
    if not array.flags.c_contiguous:
        raise AssertionError("compiled code would read other values: the array is not in C order")
    return int(array.__array_interface__["data"][0])
