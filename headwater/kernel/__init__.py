"""Incremental evaluation over columns of 64-bit ids, compiled with numba."""
