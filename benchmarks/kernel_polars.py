"""The same results by re-evaluation in polars, on the same columns of ids.

A window is a pair of columns; they become frames without a copy where polars can. It is imported where it is used,
so that the other parts run without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.kernel.columns.ring_index import Ints

if TYPE_CHECKING:
    import polars as pl


def frame(rows: Ints, *names: str) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame({name: np.ascontiguousarray(rows[:, place]) for place, name in enumerate(names)})


def chain_join(first: Ints, second: Ints, third: Ints) -> pl.DataFrame:
    """R(x y) ⋈ S(y z) ⋈ T(z w)."""
    return frame(first, "x", "y").join(frame(second, "y", "z"), on="y").join(frame(third, "z", "w"), on="z")


def averages(rows: Ints, zero: int) -> pl.DataFrame:
    """AVG(?v) by ?g, of ids of integers."""
    import polars as pl

    return frame(rows, "g", "v").group_by("g").agg((pl.col("v") - zero).mean())


def least(left: Ints, right: Ints) -> pl.DataFrame:
    """MIN(?v) by ?g of R(g y) ⋈ S(y v)."""
    import polars as pl

    return frame(left, "g", "y").join(frame(right, "y", "v"), on="y").group_by("g").agg(pl.col("v").min())


def distinct(left: Ints, right: Ints) -> pl.DataFrame:
    """DISTINCT ?g ?v of R(g y) ⋈ S(y v)."""
    return frame(left, "g", "y").join(frame(right, "y", "v"), on="y").select("g", "v").unique()
