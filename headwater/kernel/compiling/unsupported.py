"""The error by which the kernel refuses a plan."""

from __future__ import annotations

from headwater.execution.evaluator import UnsupportedPlan


class UnsupportedByKernel(UnsupportedPlan):
    """The kernel has no operator for a part of a plan; the message names the part."""
