"""Reading bytes inside compiled code: words, and classes of 32 bytes at a time.

Addresses are plain integers, so that a function of the scanner takes and gives nothing but integers. The caller of
compiled code keeps the memory alive and has put `PADDING` bytes behind the text, which may be read but mean nothing.

A test for a class of bytes takes a block of 32. Its result has a bit for every byte, the lowest for the first, as in
`stops = iri_stops(address)`; `lowest_bit(stops)` is then the place of the first byte that needs a look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import addressof
from typing import Any

import llvmlite.binding as _llvm
from numba.core import cgutils as _cgutils
from numba.core import types
from numba.extending import intrinsic

from headwater.terms.ids.term_key import KEY_WORDS

BLOCK = 32
PADDING = 64
"""How many bytes behind the end of a text may be read."""

_KEY_SYMBOL = "headwater_term_key"
"""The name by which compiled code finds the key of this process, also compiled code from the cache."""
_binding: Any = _llvm
_binding.add_symbol(_KEY_SYMBOL, addressof(KEY_WORDS))

_cg: Any = _cgutils
_types: Any = types
_Generator = Callable[[Any, Any, Any], Any]


def _load_value(builder: Any, address: Any, kind: Any) -> Any:
    loaded = builder.load(builder.inttoptr(address, kind.as_pointer()))
    loaded.align = 1
    return loaded


def _of_address(result: Any, generate: _Generator) -> Any:
    """An intrinsic that takes an address; `generate` gets the types of LLVM, the builder and the address."""

    def define(typing_context: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return generate(_cg.ir, builder, arguments[0])

        return result(_types.int64), code

    return intrinsic(define)


def _load(bits: int) -> _Generator:
    def generate(ir: Any, builder: Any, address: Any) -> Any:
        loaded = _load_value(builder, address, ir.IntType(bits))
        return loaded if bits == 64 else builder.zext(loaded, ir.IntType(64))

    return generate


def _stops(singles: Sequence[str], ranges: Sequence[tuple[int, int]]) -> _Generator:
    """The bytes of a block that are one of some characters or lie in one of some ranges, first and last included."""

    def generate(ir: Any, builder: Any, address: Any) -> Any:
        kind = ir.VectorType(ir.IntType(8), BLOCK)

        def all_of(value: int) -> Any:
            return ir.Constant(kind, [value] * BLOCK)

        block = _load_value(builder, address, kind)
        tests = [builder.icmp_unsigned("==", block, all_of(ord(single))) for single in singles]
        for first, last in ranges:
            shifted = builder.sub(block, all_of(first)) if first else block
            tests.append(builder.icmp_unsigned("<=", shifted, all_of(last - first)))
        found = tests[0]
        for test in tests[1:]:
            found = builder.or_(found, test)
        return builder.zext(builder.bitcast(found, ir.IntType(BLOCK)), ir.IntType(64))

    return generate


byte_at: Any = _of_address(_types.int64, _load(8))
"""The byte at an address."""

word_at: Any = _of_address(_types.uint64, _load(64))
"""Eight bytes at an address, the first one lowest."""

iri_stops: Any = _of_address(_types.uint64, _stops("%<>`", [(0, 0x22), (0x5B, 0x5E), (0x7B, 0xFF)]))
"""Bytes that end an IRI or need a closer look; all others are fine in its path, query and fragment, but for `#`."""

string_stops: Any = _of_address(_types.uint64, _stops('"\\', [(0, 0x1F), (0x7F, 0xFF)]))
"""Bytes that end a string or need a closer look."""

line_feeds: Any = _of_address(_types.uint64, _stops("\n", []))
"""Line feeds."""

number_signs: Any = _of_address(_types.uint64, _stops("#", []))
"""The character that begins a fragment."""

colons: Any = _of_address(_types.uint64, _stops(":@", []))
"""Characters that have a meaning in the authority of an IRI."""


def _store(typing_context: Any, address: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], _cg.ir.IntType(64).as_pointer())
        builder.store(arguments[1], place, align=1)
        return context.get_dummy_value()

    return _types.void(_types.int64, _types.uint64), code


def _store_low(typing_context: Any, address: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = _cg.ir.IntType(8)
        builder.store(builder.trunc(arguments[1], byte), builder.inttoptr(arguments[0], byte.as_pointer()))
        return context.get_dummy_value()

    return _types.void(_types.int64, _types.int64), code


def _lowest_bit(typing_context: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], _cg.true_bit)

    return _types.int64(_types.uint64), code


def _count_bits(typing_context: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return _types.int64(_types.uint64), code


def _swap_bytes(typing_context: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return _types.uint64(_types.uint64), code


def _key_word(typing_context: Any, place: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words = context.get_c_value(builder, _cg.ir.ArrayType(_cg.ir.IntType(64), len(KEY_WORDS)), _KEY_SYMBOL)
        return builder.load(builder.gep(words, [_cg.ir.IntType(64)(0), arguments[0]]))

    return _types.uint64(_types.int64), code


def _mix_product(typing_context: Any, one: Any, other: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, wide = _cg.ir.IntType(64), _cg.ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        high = builder.trunc(builder.lshr(product, wide(64)), word)
        return builder.xor(builder.xor(*arguments), builder.xor(builder.trunc(product, word), high))

    return _types.uint64(_types.uint64, _types.uint64), code


def _double_bits(typing_context: Any, number: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], _cg.ir.IntType(64))

    return _types.int64(_types.float64), code


store_word: Any = intrinsic(_store)
"""Writes eight bytes to an address."""

store_byte: Any = intrinsic(_store_low)
"""Writes the low byte of a number to an address."""

lowest_bit: Any = intrinsic(_lowest_bit)
"""The place of the lowest bit of a value that is not zero."""

count_bits: Any = intrinsic(_count_bits)
"""How many bits of a value are set."""

swap_bytes: Any = intrinsic(_swap_bytes)
"""A word with its bytes in the other order."""

mix_product: Any = intrinsic(_mix_product)
"""Two factors and both halves of their product, mixed by xor (`headwater.terms.ids.text_hash`)."""

key_word: Any = intrinsic(_key_word)
"""One of the words of the key of this process (`headwater.terms.ids.term_key`)."""

double_bits: Any = intrinsic(_double_bits)
"""The bits of a double."""
