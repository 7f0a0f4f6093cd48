"""What arrays give up stays in the process, for the arrays that follow.

Every batch makes arrays of some megabytes. Where the C library gives freed memory back, the system clears each page
anew, which can take as long as to fill it: a quarter of the time in which a body is taken over HTTP.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

_TRIM_THRESHOLD, _MAP_THRESHOLD = -1, -3
"""The options of glibc's `mallopt`."""
_KEPT_BYTES = 256 << 20
_OWN_MAPPING_BYTES = 32 << 20
"""Larger arrays are given back at once."""


def keep_freed_memory() -> None:
    """Have the C library keep up to 256 MB of what is given up.

    The setting holds for all of a process: this is for processes that run nothing but an engine. Does nothing where the
    C library has no such setting, or `MALLOC_TRIM_THRESHOLD_` gives another.
    """
    if "MALLOC_TRIM_THRESHOLD_" in os.environ:
        return
    with suppress(OSError, AttributeError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(_TRIM_THRESHOLD, _KEPT_BYTES)
        set_option(_MAP_THRESHOLD, _OWN_MAPPING_BYTES)
