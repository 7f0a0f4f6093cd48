"""Which of the three languages a text is written in, detected by its clauses.

| in the text | language |
|---|---|
| FROM NAMED WINDOW | RSP-QL, whatever else stands there |
| FROM STREAM, AGGREGATE | C-SPARQL |
| the pattern STREAM … { … } | CQELS-QL |
| the pattern WINDOW … { … }, SELECT ISTREAM and the like | RSP-QL |
| REGISTER QUERY, COMPUTED EVERY | C-SPARQL |
| REGISTER STREAM, RSTREAM, ISTREAM, DSTREAM | RSP-QL |
| none of these | plain SPARQL, answered with the defaults of RSP-QL |

The first line that fits decides.
"""

from __future__ import annotations

from enum import IntEnum

from headwater.language.lexer import Token
from headwater.language.stream_clauses import Dialect

_OPERATORS = frozenset({"RSTREAM", "ISTREAM", "DSTREAM"})
_FORMS = frozenset({"SELECT", "CONSTRUCT", "DESCRIBE"})
_MARKS = frozenset({"REGISTER", "COMPUTED", "FROM", "STREAM", "WINDOW", "AGGREGATE", *_FORMS})


class _Mark(IntEnum):
    DECLARED_WINDOW = 0
    FROM_STREAM = 1
    STREAM_PATTERN = 2
    WINDOW_PATTERN = 3
    REGISTERED_QUERY = 4
    REGISTERED_STREAM = 5


_DIALECTS = {
    _Mark.DECLARED_WINDOW: Dialect.RSPQL,
    _Mark.FROM_STREAM: Dialect.CSPARQL,
    _Mark.STREAM_PATTERN: Dialect.CQELS,
    _Mark.WINDOW_PATTERN: Dialect.RSPQL,
    _Mark.REGISTERED_QUERY: Dialect.CSPARQL,
    _Mark.REGISTERED_STREAM: Dialect.RSPQL,
}


def detect_dialect(tokens: list[Token]) -> Dialect | None:
    """The dialect of a text; None: plain SPARQL."""
    best: _Mark | None = None
    for index, token in enumerate(tokens):
        if token.key in _MARKS:
            mark = _find_mark(tokens, index)
            if mark is not None and (best is None or mark < best):
                best = mark
    return None if best is None else _DIALECTS[best]


def _find_mark(tokens: list[Token], index: int) -> _Mark | None:
    """What a keyword and its neighbours show of the dialect; None: nothing."""
    key = tokens[index].key
    before = tokens[index - 1].key if index else ""
    after = tokens[min(index + 1, len(tokens) - 1)].key
    if key == "REGISTER":
        if after == "QUERY":
            return _Mark.REGISTERED_QUERY
        return _Mark.REGISTERED_STREAM if after == "STREAM" or after in _OPERATORS else None
    if key == "COMPUTED":
        return _Mark.REGISTERED_QUERY if after == "EVERY" else None
    if key == "AGGREGATE":
        return _Mark.FROM_STREAM if after == "{" else None
    if key in _FORMS:
        return _Mark.WINDOW_PATTERN if after in _OPERATORS else None
    if key == "STREAM" and before in ("FROM", "NAMED"):
        return _Mark.FROM_STREAM
    if key == "STREAM" and before not in ("REGISTER", "ON"):
        return _Mark.STREAM_PATTERN if after in ("iri", "pname", "var", "[") else None
    if key == "WINDOW" and before == "NAMED":
        return _Mark.DECLARED_WINDOW
    if key == "WINDOW":
        return _Mark.WINDOW_PATTERN if after in ("iri", "pname", "var") else None
    return None
