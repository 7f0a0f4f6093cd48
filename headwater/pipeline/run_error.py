"""What went wrong on Spark, said in one line."""

from __future__ import annotations

import re

_PYTHON_ERROR = re.compile(r"^\s*((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Collision|Term)): (.+)$", re.MULTILINE)


class RunError(RuntimeError):
    """A run that Spark ended; the message is the innermost reason, the cause is Spark's own exception."""


def run_error(error: BaseException) -> RunError:
    """The reason inside an exception of Spark: the last line of the Python traceback in it, if there is one."""
    text = str(error)
    found = _PYTHON_ERROR.findall(text)
    inside = [(kind, reason) for kind, reason in found if not kind.startswith(("org.", "java.", "py4j."))]
    if inside:
        kind, reason = inside[-1]
        return RunError(f"{kind.rpartition('.')[2]}: {reason.strip()}")
    return RunError(text.strip().partition("\n")[0] or type(error).__name__)
