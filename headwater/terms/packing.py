"""Plain values as bytes: what is kept on disk and sent between processes, in a form that runs no code when it is read.

    header    magic, the length of the tree
    tree      JSON: None, truth values, numbers and texts as they are, everything else as a list that begins with a kind
    buffers   the N-Triples text of the terms, then arrays and bytes one after the other

Plain values are None, bool, int, float, str, bytes, RDF terms, arrays of numpy, and lists, tuples, sets and
dictionaries of plain values. Whoever keeps an object of another kind makes plain values of it (`to_plain`) and checks
them when they come back (`from_plain`); bytes from elsewhere can give wrong values or an exception, and nothing else.

Terms travel as N-Triples, each different one once: in both directions that costs a twentieth of handling them one by
one. A list of rows of terms is an array of their numbers. Arrays are buffers, so that large ones cost their bytes.
"""

from __future__ import annotations

import json
import struct
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from pyoxigraph import RdfFormat, serialize

from headwater.terms.checking.checked_parsing import parse_quads
from headwater.terms.model import BlankNode, Literal, NamedNode, Term, Triple

Plain: TypeAlias = Any
"""A plain value; the types are checked when it is packed."""

_MAGIC = b"hwv1"
_HEADER = struct.Struct("<4sxxxxQ")
_PLACE = NamedNode("t:t")
_TERM_TYPES = frozenset({NamedNode, BlankNode, Literal, Triple})
_AS_THEY_ARE = frozenset({type(None), bool, int, float, str})
_DTYPES = {
    "int64": np.int64,
    "int32": np.int32,
    "uint32": np.uint32,
    "uint8": np.uint8,
    "float64": np.float64,
    "bool": np.bool_,
}
_ALIGNMENT = 8
_LIST, _TUPLE, _DICT, _SET, _TERM, _ARRAY, _BYTES, _ROWS = range(8)


def triples_to_text(triples: list[Triple]) -> bytes:
    """The triples as N-Triples in the given order."""
    return serialize(triples, format=RdfFormat.N_TRIPLES) or b""


def text_to_triples(text: bytes) -> list[Triple]:
    """The triples of such a text, blank nodes under their labels."""
    return [quad.triple for quad in parse_quads(text, RdfFormat.N_TRIPLES)]


class _Packer:
    """Makes a tree of values; terms, arrays and bytes are put aside under their numbers."""

    def __init__(self) -> None:
        self.terms: dict[Term, int] = {}
        self.buffers: list[bytes | memoryview] = []
        self._arrays: dict[int, tuple[object, Plain]] = {}

    def tree(self, value: Plain) -> Plain:
        kind = type(value)
        if kind in _AS_THEY_ARE:
            return value
        if kind in _TERM_TYPES:
            return [_TERM, self.terms.setdefault(value, len(self.terms))]
        if kind is list or kind is tuple:
            return self._rows(value) or [_LIST if kind is list else _TUPLE, *map(self.tree, value)]
        if kind is dict:
            return [_DICT, *map(self.tree, chain.from_iterable(value.items()))]
        if kind is set or kind is frozenset:
            return [_SET, *map(self.tree, value)]
        if kind is bytes:
            self.buffers.append(value)
            return [_BYTES, len(self.buffers) - 1, len(value)]
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return self.tree(value.item())
        raise TypeError(f"a {kind.__name__} is no plain value")

    def _array(self, array: npt.NDArray[Any]) -> Plain:
        known = self._arrays.get(id(array))
        if known is None:
            if array.dtype.name not in _DTYPES:
                raise TypeError(f"an array of {array.dtype.name} is no plain value")
            self.buffers.append(_bytes_of(array))
            tree = [_ARRAY, len(self.buffers) - 1, array.dtype.name, *array.shape]
            # The array is kept: another one could get its id.
            known = self._arrays[id(array)] = array, tree
        return known[1]

    def _rows(self, values: list[Any] | tuple[Any, ...]) -> Plain:
        """The numbers of the terms of rows of one width, from 1, with 0 for none; None where the values are no rows."""
        if type(values) is not list or len(values) < 2 or type(values[0]) is not tuple or not values[0]:
            return None
        width = len(values[0])
        if any(type(row) is not tuple or len(row) != width for row in values):
            return None
        if not {type(one) for row in values for one in row} <= _TERM_TYPES | {type(None)}:
            return None
        numbers = self.terms
        found = [0 if one is None else numbers.setdefault(one, len(numbers)) + 1 for one in chain.from_iterable(values)]
        self.buffers.append(_bytes_of(np.array(found, dtype=np.int64)))
        return [_ROWS, len(self.buffers) - 1, len(values), width]


def _bytes_of(array: npt.NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def pack(value: Plain) -> bytes:
    """The bytes of a plain value; a `TypeError` where it is none."""
    packer = _Packer()
    tree = packer.tree(value)
    terms = list(packer.terms)
    # A term stands in the place of the object of a triple; a triple in that place would be a triple term.
    text = triples_to_text([term if isinstance(term, Triple) else Triple(_PLACE, _PLACE, term) for term in terms])
    is_triple = "".join("1" if isinstance(term, Triple) else "0" for term in terms)
    sizes = [len(buffer) for buffer in packer.buffers]
    head = json.dumps([tree, is_triple, len(text), sizes], separators=(",", ":")).encode()
    parts: list[bytes | memoryview] = [_HEADER.pack(_MAGIC, len(head))]
    for part in (head, text, *packer.buffers):
        parts += [part, b"\0" * (-len(part) % _ALIGNMENT)]
    return b"".join(parts)


class _Unpacker:
    def __init__(self, terms: list[Term], buffers: list[memoryview]) -> None:
        self._terms = terms
        self._buffers = buffers

    def value(self, tree: Plain) -> Plain:
        if type(tree) is not list:
            return tree
        kind, *rest = tree
        if kind == _LIST:
            return list(map(self.value, rest))
        if kind == _TUPLE:
            return tuple(map(self.value, rest))
        if kind == _DICT:
            values = list(map(self.value, rest))
            return dict(zip(values[::2], values[1::2], strict=True))
        if kind == _SET:
            return frozenset(map(self.value, rest))
        number = rest[0]
        if kind == _TERM:
            return self._terms[_index(number)]
        buffer = self._buffers[_index(number)]
        if kind == _BYTES:
            return bytes(buffer)
        if kind == _ARRAY:
            # A copy of its own: one that can be written to, and keeps no other alive.
            return np.frombuffer(buffer, _DTYPES[rest[1]]).reshape(rest[2:]).copy()
        if kind == _ROWS:
            found: list[Term | None] = [None, *self._terms]
            size, width = rest[1:]
            numbers = np.frombuffer(buffer, np.int64)
            if numbers.shape[0] != size * width or (numbers < 0).any():
                raise ValueError("rows of another size")
            cells = [found[one] for one in numbers.tolist()]
            return list(zip(*[iter(cells)] * width, strict=True))
        raise ValueError(f"no kind {kind!r} of values")


def _index(number: object) -> int:
    """A number that counts from the front."""
    if type(number) is not int or number < 0:
        raise ValueError("a number that is no index")
    return number


def unpack(data: bytes | memoryview) -> Plain:
    """The value that `pack` packed; some exception where the bytes are of another kind or damaged."""
    view = memoryview(data)
    magic, size = _HEADER.unpack_from(view)
    if magic != _MAGIC:
        raise ValueError("these are no packed values")
    start = _HEADER.size

    def take(length: object) -> memoryview:
        nonlocal start
        begin, start = start, start + _index(length)
        if start > len(view):
            raise ValueError("the packed values are cut off")
        taken = view[begin:start]
        start += -start % _ALIGNMENT
        return taken

    tree, is_triple, text_size, sizes = json.loads(bytes(take(size)))
    triples = text_to_triples(bytes(take(text_size)))
    terms: list[Term] = [
        triple if one == "1" else triple.object for triple, one in zip(triples, is_triple, strict=True)
    ]
    return _Unpacker(terms, list(map(take, sizes))).value(tree)
