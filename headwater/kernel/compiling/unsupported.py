"""The error by which the kernel refuses a plan."""

from __future__ import annotations


class UnsupportedByKernel(Exception):
    """The kernel has no operator for a part of a plan; the message names the part."""
