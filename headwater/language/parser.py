"""The three languages, one grammar.

`parse` reads the whole of SPARQL 1.1 Query and the stream clauses of C-SPARQL, CQELS-QL and RSP-QL into one syntax
tree (`query`, `patterns`, `expressions`, `stream_clauses`). The dialect is recognised from the clauses in the text
(`dialects`) or given; it decides defaults later on, and in the grammar only what `^^` means. A text that cannot be
read, or cannot mean anything, raises `QueryError` with line, column, a caret line and what was expected.

>>> query = parse("SELECT ?x WHERE { STREAM <http://s> [RANGE 10s] { ?x a <http://Car> } }")
>>> query.dialect
<Dialect.CQELS: 'cqels'>

Accepted beyond the standards, because people and papers write so:

- keywords in any case (except `a`), also as prefixes and local names: `stream:x`, `?s :range 5`;
- `STEP` and `SLIDE` for each other, `STEP` alone for `TUMBLING`, blanks anywhere inside window brackets;
- durations `10m`, `24 hours`, `3000ms`, `1h30m`, `PT1H`, `pt1h`, and a bare integer for milliseconds;
- `REGISTER` before or after the prefixes; its name an identifier (`my-query`), an IRI, a prefixed name or a string;
- in `STREAM`, the window before or after the name; `RANGE TRIPLES n` and `TRIPLES n`, with a step or tumbling;
- `FROM NAMED WINDOW name ON s […]` and `FROM NAMED WINDOW ON STREAM s […] AS name`; `FROM GRAPH <g>` for `FROM <g>`;
- `AVERAGE` for `AVG`; `timestamp(?v)` in any case;
- strings in typographic quotes, ``` ``text`` ``` and `''text''`.

And only in a query with at least one clause of a stream language (plain SPARQL stays strict):

- FROM clauses before SELECT, commas between projected variables, `COUNT(?x) AS ?y` without brackets around it;
- aggregates without GROUP BY next to plain projected variables: the query groups by those (see `validation`);
- a hyphen in a variable that an AGGREGATE clause introduces: `?total-sensor` is the variable `total_sensor`;
- in C-SPARQL, `^^` between two conditions for `&&` where no datatype follows.

Relative IRIs resolve against BASE, else against the `base` given to `parse`, else against `headwater:/`.
Nothing here is forgiven silently that could mean something else: `RANGE 1h 30m`, a forgotten STEP, is an error.
"""

from __future__ import annotations

from headwater.language.brackets import bracket_error
from headwater.language.dialects import detect_dialect
from headwater.language.errors import QueryError
from headwater.language.lexer import tokenize
from headwater.language.parser_query import QueryParser
from headwater.language.query import (
    ParsedQuery,
)
from headwater.language.stream_clauses import (
    Dialect,
)
from headwater.language.validation import validate


def parse(text: str, dialect: Dialect | None = None, *, base: str | None = None) -> ParsedQuery:
    """Read a query, or raise `QueryError` at the place where a person would look.

    `dialect` overrides the one recognised from the text; `base` is what relative IRIs resolve against before BASE.
    """
    source = tokenize(text)
    recognised = detect_dialect(source.tokens)
    is_streaming = recognised is not None
    parser = QueryParser(source, dialect or recognised or Dialect.RSPQL, is_streaming, base)
    try:
        return validate(parser.query(), is_streaming)
    except QueryError as error:
        raise bracket_error(source, error.offset) or error from None
    except RecursionError:
        raise QueryError("this query is nested too deeply", text, parser.token.start) from None
