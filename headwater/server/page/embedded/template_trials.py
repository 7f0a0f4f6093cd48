"""Tries a template on a few rows: what it makes of them, and what is wrong."""

from __future__ import annotations

from headwater.errors import HeadwaterError
from headwater.server.page.embedded.recent_elements import element_text
from headwater.server.page.page_access import TemplateTrial
from headwater.terms.element_files import element_reader
from headwater.terms.model import BadElement
from headwater.terms.scratch_folders import ScratchFolder
from headwater.terms.template import RowTemplate

_MOST_ROWS = 50
_LONGEST_SAMPLE = 100_000


def try_rows(template: str, rows: str, ending: str) -> TemplateTrial:
    """What a template makes of the text of rows, which would stand in a file with this ending."""
    if len(rows) > _LONGEST_SAMPLE:
        return TemplateTrial(problems=(f"The sample is longer than {_LONGEST_SAMPLE:,} characters.",))
    try:
        compiled = RowTemplate(template, "template")
        with ScratchFolder("sample") as folder:
            file = folder / f"sample{ending}"
            file.write_text(rows if rows.endswith("\n") else f"{rows}\n", "utf-8", "surrogatepass")
            read = list(element_reader(file, template=compiled, source="sample").read())[:_MOST_ROWS]
    except HeadwaterError as error:
        return TemplateTrial(problems=(str(error),))
    bad = [one for one in read if isinstance(one, BadElement)]
    elements = tuple(element_text(one) for one in read if not isinstance(one, BadElement))
    problems = tuple(f"row in line {one.line}: {one.reason}" if one.line else one.reason for one in bad)
    return TemplateTrial(elements, problems)
