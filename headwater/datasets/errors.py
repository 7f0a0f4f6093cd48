"""What goes wrong with data sets, in words that say what to do."""

from __future__ import annotations

from headwater.errors import HeadwaterError


class DataSetError(HeadwaterError, RuntimeError):
    """A folder that is no data set, or not one that this version can use; a load or a change that cannot be done."""


class StrictLoadError(DataSetError):
    """With `strict`, the first line or file that cannot be read."""
