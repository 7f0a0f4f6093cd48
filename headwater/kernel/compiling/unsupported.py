"""How the kernel says that it has no operator for a part of a plan."""

from __future__ import annotations


class NotForTheKernel(Exception):
    """Why a plan stays with the reference evaluator."""
