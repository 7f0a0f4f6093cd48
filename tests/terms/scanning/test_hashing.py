"""The hash of texts: compiled and plain Python agree, and it spreads texts that look alike."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.ids.term_key import ALL_HASH_BITS, choose_key
from headwater.terms.ids.text_hash import hash_and_check, hash_text
from headwater.terms.scanning.byte_hashes import hash_and_check_of, hash_texts
from headwater.terms.scanning.padded_text import PaddedText


def compiled_hash(text: bytes, before: bytes = b"", behind: bytes = b"") -> int:
    choose_key()
    padded = PaddedText.of(before + text + behind)
    return int(hash_and_check_of(padded.address + len(before), len(text))[0])


@given(st.binary(max_size=70), st.binary(max_size=9), st.binary(max_size=20))
def test_compiled_code_and_python_agree_wherever_the_text_stands(text: bytes, before: bytes, behind: bytes) -> None:
    assert compiled_hash(text, before, behind) == hash_text(text)
    assert 0 <= hash_text(text) <= ALL_HASH_BITS
    padded = PaddedText.of(before + text + behind)
    assert hash_and_check_of(padded.address + len(before), len(text)) == hash_and_check(text)
    hashes, checks = hash_texts([before, text])
    assert [*zip(hashes.tolist(), checks.tolist(), strict=True)] == [hash_and_check(before), hash_and_check(text)]


def test_checks_of_texts_with_one_hash_differ(collide: Callable[[int], None]) -> None:
    """With hashes of 12 bits, 2^14 texts have 2^27 / 2^12 pairs with one hash; their checks tell all of them apart."""
    collide(12)
    texts = [f"<http://example.org/sensor/{number}>".encode() for number in range(1 << 14)]
    hashes, checks = hash_texts(texts)
    assert len(np.unique(hashes)) <= 1 << 12
    assert len(np.unique(hashes.astype(np.uint64) << np.uint64(32) | checks)) == len(texts)
    for bit in range(32):
        share = float(((checks >> np.uint32(bit)) & np.uint32(1)).mean())
        assert abs(share - 0.5) < 0.02


def test_the_hash_of_a_key_never_changes() -> None:
    script = (
        "from headwater.terms.ids.term_key import adopt_key\n"
        "from headwater.terms.ids.text_hash import hash_text\n"
        "adopt_key(bytes(range(32)))\n"
        "print(hash_text(b'<http://example.org/city>'))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(run.stdout) == 1811057292228048095


def test_texts_that_look_alike_are_spread() -> None:
    """Among 2^17 texts, 40 bits collide twice (2^34 / 2^41 pairs are expected to), whichever 40 bits are looked at."""
    names = [f"<http://example.org/sensor/{number}>" for number in range(1 << 15)]
    names += [f"<http://example.org/{number}/value>" for number in range(1 << 15)]
    names += ["<urn:" + "0" * (number % 181) + f"{number}>" for number in range(1 << 15)]
    names += [f"<http://example.org/{number:015b}>" for number in range(1 << 15)]
    hashes = np.array([hash_text(name.encode()) for name in names], dtype=np.uint64)
    for shift in (0, 11, 23):
        assert len(np.unique((hashes >> np.uint64(shift)) & np.uint64((1 << 40) - 1))) >= len(names) - 2
    for bit in range(63):
        share = float(((hashes >> np.uint64(bit)) & np.uint64(1)).mean())
        assert abs(share - 0.5) < 0.01
