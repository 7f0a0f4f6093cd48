"""What a run does when it falls behind its sources."""

from __future__ import annotations

from typing import Literal, get_args

from headwater.errors import SettingError

Overload = Literal["wait", "coarsen"]


def check_overload(overload: Overload, *, in_process: bool, has_checkpoint: bool) -> bool:
    """Whether ticks may be skipped; a `SettingError` where that would break the promise of a checkpoint.

    Which ticks are skipped depends on the time that evaluation takes. A batch that is repeated after a failure would
    others, and its answers would not be those that may have been delivered already.
    """
    if overload not in get_args(Overload):
        raise SettingError(f"overload is {overload!r}: use one of {', '.join(get_args(Overload))}")
    if overload == "wait":
        return False
    if not in_process:
        raise SettingError(
            "overload='coarsen' needs in_process: Spark may repeat a batch, which would skip other ticks"
        )
    if has_checkpoint:
        raise SettingError(
            "overload='coarsen' and a checkpoint exclude each other: a batch that is repeated would skip other ticks"
        )
    return True
