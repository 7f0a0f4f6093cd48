"""The graphs that a request names for the WHERE clauses of an update, written into its text.

SPARQL 1.1 Protocol, section 2.2.3: `using-graph-uri` and `using-named-graph-uri` mean the same as USING and
USING NAMED in each operation that has a WHERE clause.

    DELETE { … } WHERE { … }    →    DELETE { … } USING <g> WHERE { … }
    DELETE WHERE { … }          →    DELETE { … } USING <g> WHERE { … }
"""

from __future__ import annotations

from headwater.language.lexer import tokenize
from headwater.server.problems import Problem
from headwater.server.protocol.data_service import GraphChoice
from headwater.terms.model import NamedNode


def with_graph_choice(text: str, graphs: GraphChoice) -> str:
    """The update over the graphs of the request; a `Problem` where its text names some, too."""
    if not graphs:
        return text
    clauses = [f"USING {NamedNode(name)}" for name in graphs.default]
    clauses += [f"USING NAMED {NamedNode(name)}" for name in graphs.named]
    using = " ".join(clauses) + " "
    parts: list[str] = []
    done = depth = 0
    before = ""
    short_form: int | None = None
    for token in tokenize(text).tokens:
        if token.key == "{":
            if depth == 0 and short_form is not None:
                short_form = token.start
            before = ""
            depth += 1
        elif token.key == "}":
            depth -= 1
            if depth == 0 and short_form is not None:
                parts.append(f" {text[short_form : token.end]} {using}WHERE ")
                done, short_form = short_form, None
        elif depth == 0 and token.key in ("USING", "WITH"):
            raise Problem(
                400,
                "The graphs are named twice",
                f"The update has {token.key}, and the request has using-graph-uri or using-named-graph-uri: "
                "name the graphs in one of them.",
            )
        elif depth == 0 and token.key == "WHERE":
            parts.append(text[done : token.start])
            done = token.start
            if before == "DELETE":
                # The pattern is the template, too, and both are written out.
                parts[-1] = parts[-1].rstrip()
                short_form = token.end
            else:
                parts.append(using)
        if depth == 0 and token.is_word:
            before = token.key
    return "".join([*parts, text[done:]])
