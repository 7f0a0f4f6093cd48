"""Query files as the commands take them: a path, or `-` for standard input."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryPlan
from headwater.commands.ending import WrongInput
from headwater.language.errors import QueryError
from headwater.language.parser import parse
from headwater.language.stream_clauses import Dialect
from headwater.linting.unknown_functions import refuse_unknown_functions
from headwater.terms.names import name_to_iri

EVERY_STREAM = name_to_iri("every-stream").value
"""What `STREAM ?s` reads where the streams are not known yet."""


@dataclass(frozen=True)
class QueryFile:
    """The text of a query, and what to call it where the text itself does not."""

    shown: str
    name: str
    text: str

    @classmethod
    def read(cls, path: str) -> QueryFile:
        """The file at a path; `-` is standard input."""
        if path == "-":
            return cls("stdin", "query", sys.stdin.read())
        try:
            return cls(path, Path(path).stem, Path(path).read_text("utf-8-sig"))
        except OSError as error:
            raise WrongInput(f"{path}: {error.strerror}; give the path of a query file, or - for stdin") from None
        except UnicodeDecodeError:
            raise WrongInput(f"{path}: this is not UTF-8 text, and a query must be") from None

    def plan(self, dialect: Dialect | None = None) -> QueryPlan:
        """What the query means, or where it is wrong."""
        try:
            query = parse(self.text, dialect)
            name = None if query.registration else self.name
            plan = plan_query(query, name=name, streams=(EVERY_STREAM,))
            refuse_unknown_functions(plan)
            return plan
        except QueryError as error:
            raise WrongInput(f"{self.shown}: {error}") from None
