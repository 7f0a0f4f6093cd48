"""Queries that differ only in constants, evaluated as one."""
