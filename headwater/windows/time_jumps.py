"""Elements whose time is far ahead of those before them: wrong clocks, seconds taken for milliseconds, typing errors.

    10:00:01  10:00:02  [next day 10:00:03]  10:00:04      one row a day ahead would make all that follow late

Such an element is put aside if it is more than a limit above the highest time before it. But a feed may pause for
longer than the limit. So the third element in a row that is ahead, each within the limit of the one before, is taken:
time has moved on. All this depends on the elements of the stream alone, in the order of their arrival.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from headwater.terms.ids.term_texts import Ints

BELIEVED_FROM = 3
"""So many elements in a row that are ahead are no mistake."""

Jump: TypeAlias = tuple[int, int]
"""How many elements in a row were ahead, and the time of the last of them."""
NO_JUMP: Jump = (0, 0)


def find_jumps(times: Ints, highest: int | None, limit: int, jump: Jump) -> tuple[npt.NDArray[np.bool_], Jump]:
    """Which of some times, in arrival order, are ahead of those before, and the last elements that were.

    `highest` is the highest time before them, None where there is none, and `jump` what was given for those before.
    """
    is_ahead = np.zeros(len(times), dtype=np.bool_)
    if not _can_have_jump(times, highest, limit):
        return is_ahead, NO_JUMP
    count, last = jump
    for place, time in enumerate(times.tolist()):
        if highest is None or time <= highest + limit:
            highest = time if highest is None else max(highest, time)
            count = 0
            continue
        count = count + 1 if count and abs(time - last) <= limit else 1
        last = time
        if count >= BELIEVED_FROM:
            highest, count = time, 0
        else:
            is_ahead[place] = True
    return is_ahead, (count, last)


def _can_have_jump(times: Ints, highest: int | None, limit: int) -> bool:
    """Whether some time is ahead of the highest before it; most batches end here."""
    if highest is not None and int(times.max()) <= highest + limit:
        return False
    before = np.maximum.accumulate(times)
    if highest is not None:
        before = np.append(highest, np.maximum(before[:-1], highest))
    else:
        before = np.append(before[0], before[:-1])
    return bool((times - before > limit).any())
