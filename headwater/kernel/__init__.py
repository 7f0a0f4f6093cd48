"""The incremental operators: columns of 64-bit ids, compiled with numba, no Spark."""
