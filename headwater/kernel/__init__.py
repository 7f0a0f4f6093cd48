"""Incremental evaluation over columns of 64-bit ids, compiled with numba."""

from headwater.terms.compiled_code import forget_own_stale_code

forget_own_stale_code()
