"""What goes wrong with data sets, in words that say what to do."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from headwater.errors import HeadwaterError, report_file_errors


class DataSetError(HeadwaterError, RuntimeError):
    """A folder that is no data set, or not one that this version can use; a load or a change that cannot be done."""


class UpdateSyntaxError(DataSetError):
    """A SPARQL Update that is not written as the language wants it."""


class StrictLoadError(DataSetError):
    """With `strict`, the first line or file that cannot be read."""


def report_dataset_damage(folder: Path) -> AbstractContextManager[None]:
    """A context that turns what reading and writing the files of a data set raises into a `DataSetError`."""
    remedy = (
        "see that its files are there, that they may be used and that there is room, or load its files again into a "
        "new folder with: headwater load FILE… --into NEW-FOLDER"
    )
    return report_file_errors(DataSetError, f"the data set {folder}", remedy)
