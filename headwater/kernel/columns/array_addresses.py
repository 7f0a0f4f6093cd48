"""Arrays inside compiled code by their addresses, for functions that take any number of them.

Compiled code is made for the types of its arguments. A function over a list of tables would be compiled again for each
length of the list; a function that takes a table of addresses is compiled once. The caller keeps the arrays alive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

_types: Any = types
_arrayobj: Any = arrayobj


def _array_of(content: Any, dimensions: int) -> Any:
    """Makes an array in C order of an address and sizes; nobody counts references to it."""
    kind = _types.Array(content, dimensions, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, *shape = arguments
        array = _arrayobj.make_array(kind)(context, builder)
        itemsize = context.get_constant(_types.intp, content.bitwidth // 8)
        strides = [itemsize]
        for size in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], size))
        data = builder.inttoptr(address, array.data.type)
        _arrayobj.populate_array(array, data, shape, strides, itemsize, None)
        return array._getvalue()

    return kind, generate


def _to_ints(typing_context: Any, address: Any, size: Any) -> Any:
    kind, generate = _array_of(_types.int64, 1)
    return kind(_types.int64, _types.intp), generate


def _to_places(typing_context: Any, address: Any, size: Any) -> Any:
    kind, generate = _array_of(_types.int32, 1)
    return kind(_types.int64, _types.intp), generate


def _to_rows(typing_context: Any, address: Any, size: Any, width: Any) -> Any:
    kind, generate = _array_of(_types.int64, 2)
    return kind(_types.int64, _types.intp, _types.intp), generate


def _to_links(typing_context: Any, address: Any, size: Any, width: Any) -> Any:
    kind, generate = _array_of(_types.int32, 2)
    return kind(_types.int64, _types.intp, _types.intp), generate


ints_at: Any = intrinsic(_to_ints)
"""`ints_at(address, size)`: an array of 64-bit integers."""

places_at: Any = intrinsic(_to_places)
"""`places_at(address, size)`: an array of 32-bit integers."""

rows_at: Any = intrinsic(_to_rows)
"""`rows_at(address, size, width)`: rows of 64-bit integers."""

links_at: Any = intrinsic(_to_links)
"""`links_at(address, size, width)`: rows of 32-bit integers."""


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Where the values of an array begin; it must be in C order."""
    if not array.flags.c_contiguous:
        raise AssertionError("compiled code would read other values: the array is not in C order")
    return int(array.__array_interface__["data"][0])
