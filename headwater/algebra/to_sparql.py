"""Algebra back to SPARQL text, such that the text means exactly the plan.

Items that a group joins in sequence are written side by side; whatever depends on its place in a group (filters,
OPTIONAL, MINUS, BIND) gets braces of its own where it is not on the left. Nodes that only streams have
(`Window`, `Aggregation`, `Timestamp`) have no SPARQL text: they are written in the dialects' notation for display.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    Distinct,
    ExistsPlan,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    OrderBy,
    PathMatch,
    Project,
    Reduced,
    Service,
    Slice,
    Union,
    Unit,
    Values,
    Window,
)
from headwater.algebra.scope import visible
from headwater.language.expressions import (
    Aggregate,
    Constant,
    Expression,
    FunctionCall,
    Operation,
    Timestamp,
    VariableReference,
)
from headwater.language.patterns import (
    Alternative,
    Inverse,
    Link,
    NegatedSet,
    OneOrMore,
    Path,
    Sequence,
    TriplePattern,
    ZeroOrMore,
    ZeroOrOne,
)
from headwater.terms.model import Literal, NamedNode, Term, Variable

Written: TypeAlias = Term | Variable | None


def to_sparql(plan: Node) -> str:
    """A SELECT query whose answer is the plan's."""
    return select_text(plan)


def term_text(term: Written) -> str:
    """A term as SPARQL writes it."""
    return "UNDEF" if term is None else str(term)


def path_text(path: Path) -> str:
    """A property path, with parentheses around every inner path."""
    match path:
        case Link(iri):
            return str(iri)
        case Inverse(inner):
            return f"^({path_text(inner)})"
        case Sequence(left, right):
            return f"({path_text(left)})/({path_text(right)})"
        case Alternative(left, right):
            return f"({path_text(left)})|({path_text(right)})"
        case ZeroOrMore(inner):
            return f"({path_text(inner)})*"
        case OneOrMore(inner):
            return f"({path_text(inner)})+"
        case ZeroOrOne(inner):
            return f"({path_text(inner)})?"
        case NegatedSet(forward, inverse):
            return "!(" + "|".join([*(str(iri) for iri in forward), *(f"^{iri}" for iri in inverse)]) + ")"
    raise TypeError(f"no text for {type(path).__name__}")


def triple_text(triple: TriplePattern) -> str:
    predicate = triple.predicate
    middle = path_text(predicate) if isinstance(predicate, Path) else term_text(predicate)
    return f"{term_text(triple.subject)} {middle} {term_text(triple.object)} ."


def expression_text(expression: Expression) -> str:
    """An expression, fully parenthesised."""
    match expression:
        case Constant(value):
            return term_text(value)
        case VariableReference(variable):
            return term_text(variable)
        case Operation("IN" | "NOT IN" as operator, operands):
            listed = ", ".join(expression_text(o) for o in operands[1:])
            return f"({expression_text(operands[0])} {operator} ({listed}))"
        case Operation(operator, (operand,)):
            return f"({operator.removeprefix('unary ')} {expression_text(operand)})"
        case Operation(operator, operands):
            return "(" + f" {operator} ".join(expression_text(o) for o in operands) + ")"
        case FunctionCall(name, arguments, distinct):
            called = term_text(name) if isinstance(name, NamedNode) else name
            return f"{called}({'DISTINCT ' if distinct else ''}{', '.join(map(expression_text, arguments))})"
        case ExistsPlan(plan, negated):
            return f"{'NOT ' if negated else ''}EXISTS {{ {group_text(plan)} }}"
        case Aggregate(function, argument, distinct, separator):
            inside = "*" if argument is None else expression_text(argument)
            if function == "GROUP_CONCAT":
                # It joins texts and gives a plain string; some engines would keep a language, or refuse numbers.
                inside = f"STR({inside})"
            tail = "" if separator is None else f" ; SEPARATOR = {_quoted(separator)}"
            return f"{function}({'DISTINCT ' if distinct else ''}{inside}{tail})"
        case Timestamp(variable, stream):
            return f"timestamp({term_text(variable)}{'' if stream is None else ', ' + term_text(stream)})"
    raise TypeError(f"no text for {type(expression).__name__}")


def _quoted(text: str) -> str:
    return str(Literal(text))


def group_text(node: Node) -> str:
    """The node as the content of a group, without the braces around it."""
    match node:
        case Unit():
            return ""
        case Bgp(triples):
            return " ".join(triple_text(triple) for triple in triples)
        case PathMatch(subject, path, object_):
            return f"{term_text(subject)} {path_text(path)} {term_text(object_)} ."
        case Join(left, right):
            return f"{_left(left)} {_item(right)}"
        case LeftJoin(left, right, condition):
            # The explicit FILTER keeps a filter inside `right` from being read as the condition.
            test = "true" if condition is None else expression_text(condition)
            return f"{_left(left)} OPTIONAL {{ {_item(right)} FILTER({test}) }}"
        case Minus(left, right):
            return f"{_left(left)} MINUS {{ {group_text(right)} }}"
        case Union(left, right):
            return f"{_braced(left)} UNION {_braced(right)}"
        case Filter(inner, condition):
            return f"{_left(inner)} FILTER({expression_text(condition)})"
        case Extend(inner, variable, expression):
            return f"{_left(inner)} BIND({expression_text(expression)} AS {term_text(variable)})"
        case Values(variables, rows):
            return _values_text(variables, rows)
        case Graph(name, inner):
            return f"GRAPH {term_text(name)} {_braced(inner)}"
        case Window(windows, name, inner):
            shown = term_text(name) if name is not None else "#" + ",".join(map(str, windows))
            return f"WINDOW {shown} {_braced(inner)}"
        case Service(endpoint, inner, silent):
            return f"SERVICE {'SILENT ' if silent else ''}{term_text(endpoint)} {_braced(inner)}"
        case Aggregation(inner, clauses, conditions):
            shown = " ".join(
                f"({term_text(v)}, {expression_text(a)}, {{{' '.join(map(term_text, g))}}})" for v, a, g in clauses
            )
            tests = "".join(f" FILTER({expression_text(c)})" for c in conditions)
            return f"{_left(inner)} AGGREGATE {{ {shown}{tests} }}"
        case Project() | Distinct() | Reduced() | Slice() | OrderBy() | Group():
            return f"{{ {select_text(node)} }}"
    raise TypeError(f"no text for {type(node).__name__}")


def _values_text(variables: Iterable[Variable], rows: Iterable[Iterable[Written]]) -> str:
    head = " ".join(term_text(v) for v in variables)
    body = " ".join(f"({' '.join(term_text(t) for t in row)})" for row in rows)
    return f"VALUES ({head}) {{ {body} }}"


def _braced(node: Node) -> str:
    return f"{{ {group_text(node)} }}"


def _left(node: Node) -> str:
    """A node at the beginning of a group: only what floats over the whole group needs braces."""
    return _braced(node) if isinstance(node, Filter | Aggregation) else group_text(node)


def _item(node: Node) -> str:
    """A node among others in a group: side by side where it stands for itself, in braces otherwise."""
    alone = Bgp | PathMatch | Union | Values | Graph | Window | Service
    is_select = isinstance(node, Project | Distinct | Reduced | Slice | OrderBy | Group)
    return group_text(node) if isinstance(node, alone) or is_select else _braced(node)


def select_text(node: Node) -> str:
    """A node as a SELECT query, its modifiers taken from the nodes at the top."""
    tail = ""
    if isinstance(node, Slice):
        tail = (f" LIMIT {node.limit}" if node.limit is not None else "") + (
            f" OFFSET {node.offset}" if node.offset else ""
        )
        node = node.inner
    head = ""
    if isinstance(node, Distinct | Reduced):
        head = "DISTINCT " if isinstance(node, Distinct) else "REDUCED "
        node = node.inner
    variables: tuple[Variable, ...] = visible(node)
    if isinstance(node, Project):
        node = node.inner
    if isinstance(node, OrderBy):
        keys = " ".join(f"{'DESC' if down else 'ASC'}({expression_text(e)})" for e, down in node.keys)
        tail = f" ORDER BY {keys}{tail}"
        node = node.inner
    if isinstance(node, Group) and (set(variables) <= set(visible(node)) if not tail else variables == visible(node)):
        return _group_select(node, head, variables) + tail
    # `*` would show the variables of our own, too, and tell equal solutions apart by them.
    shown = " ".join(term_text(v) for v in variables) or "?hw_nothing"
    return f"SELECT {head}{shown} WHERE {{ {group_text(node)} }}{tail}"


def _group_select(node: Group, head: str, variables: tuple[Variable, ...]) -> str:
    aggregates = dict(node.aggregates)
    shown = " ".join(
        f"({expression_text(aggregates[v])} AS {term_text(v)})" if v in aggregates else term_text(v) for v in variables
    )
    if not shown:
        # A group with neither key nor aggregate still has to be written as one.
        shown = term_text(node.keys[0][0]) if node.keys else "(COUNT(*) AS ?hw_rows)"
    # Keys with expressions are bound before grouping: pyoxigraph rejects some forms of GROUP BY (… AS ?v).
    inner = node.inner
    for variable, expression in node.keys:
        if expression is not None:
            inner = Extend(inner, variable, expression)
    keys = " ".join(term_text(v) for v, _ in node.keys)
    by = f" GROUP BY {keys}" if keys else ""
    return f"SELECT {head}{shown} WHERE {{ {group_text(inner)} }}{by}"
