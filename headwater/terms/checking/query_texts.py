"""Refuses SPARQL text that pyoxigraph could not parse or evaluate without using up the stack.

pyoxigraph descends once for each bracket, and once more for each link of a chain: `a + b + c`, `{} UNION {} UNION {}`,
one OPTIONAL after the other. So the depth of a text is counted as the brackets that are open and the links before, in
each of them. The text of a query is made from its plan, whose depth is limited as well; the text of an update comes
from outside as it is.

What pyoxigraph takes for a string or a comment depends on the grammar, where `?a<?b#>` may be a comparison and a
comment, or an IRI. A text from outside that has such a place and very many brackets or operators is refused. In
the text of a plan there are blanks around each `<`.
"""

from __future__ import annotations

import re

from headwater.terms.checking.input_limits import deepest_nesting
from headwater.terms.checking.nesting import TooDeep, too_deep

LONGEST_CHAIN = 600
"""Links of chains along one way into a text. The stack of a thread, 8 MB, ends at about 2,500."""
DEEPEST_GENERATED = 500
"""Brackets within brackets of the text that is made from a plan."""

_CODEPOINT = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_TOKEN = re.compile(
    r""""{3}(?:[^"\\]++|\\.|"(?!""))*+"{3}|'{3}(?:[^'\\]++|\\.|'(?!''))*+'{3}
      |"(?:[^"\\\n\r]++|\\.)*+"|'(?:[^'\\\n\r]++|\\.)*+'
      |\#[^\r\n]*
      |(?P<iri><[^\x00-\x20<>"{}|^`\\]*>)
      |(?P<clause>(?:FILTER|BIND|VALUES)\b(?!:)|\{)
      |[?$]\w+|\w*:[\w.:%-]*|[A-Za-z_]\w*|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?
      |(?P<open>[(\[]|<<)
      |(?P<close>[)\]}]|>>)
      |(?P<operator>&&|\|\||[-+*/|!^])
      |(?P<end>[,;.])""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_SCHEME = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*://")
_DOUBTFUL = frozenset("()[]'#")


def check_update(text: str) -> None:
    """Raise `TooDeep` for an update that is nested too deeply, or has too long chains."""
    _check(text, deepest_nesting(), is_foreign=True)


def check_generated_query(text: str) -> None:
    """Raise `TooDeep` for the text of a plan that pyoxigraph could not evaluate."""
    _check(text, DEEPEST_GENERATED, is_foreign=False)


def _check(text: str, limit: int, *, is_foreign: bool) -> None:
    if len(text) <= limit:
        return
    if "\\" in text:
        # SPARQL replaces such escapes before it looks for tokens (section 19.2).
        text = _CODEPOINT.sub(_replace_codepoint, text)
    # For each bracket that is open, and for the text itself: its clauses so far, and the operators of its expression.
    levels = [[0, 0]]
    depth = 0
    has_doubt = False
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "operator":
            levels[-1][1] += 1
            depth += 1
        elif kind == "clause":
            levels[-1][0] += 1
            depth += 1
        elif kind == "end":
            depth -= levels[-1][1]
            levels[-1][1] = 0
            if len(levels) == 1:
                # Outside of all brackets, between two operations of an update.
                depth = levels[-1][0] = 0
        elif kind == "iri":
            has_doubt = has_doubt or (not _DOUBTFUL.isdisjoint(token[0]) and not _SCHEME.match(token[0]))
        if kind == "open" or token[0] == "{":
            levels.append([0, 0])
            depth += 1
            if len(levels) > limit + 1:
                raise too_deep(limit)
        elif kind == "close" and len(levels) > 1:
            depth -= 1 + sum(levels.pop())
        if depth > LONGEST_CHAIN:
            raise TooDeep(
                f"more than {LONGEST_CHAIN:,} operators, groups or clauses one after the other: split it into several"
            )
    if has_doubt and is_foreign and sum(map(text.count, "([{+-*/|!^&")) > LONGEST_CHAIN:
        raise TooDeep("an IRI with brackets, quotes or # in it cannot be told from a comparison: write blanks around <")


def _replace_codepoint(match: re.Match[str]) -> str:
    digits = match[1] or match[2]
    code = int(digits, 16) if digits else 0x110000
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else match[0]
