"""Plans as SPARQL text that is equivalent to them.

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
from headwater.algebra.scope import visible_variables
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
    return select_to_sparql(plan)


def term_to_sparql(term: Written) -> str:
    """A term as SPARQL writes it."""
    return "UNDEF" if term is None else str(term)


def path_to_sparql(path: Path) -> str:
    """A property path, with parentheses around every inner path."""
    match path:
        case Link(iri):
            return str(iri)
        case Inverse(inner):
            return f"^({path_to_sparql(inner)})"
        case Sequence(left, right):
            return f"({path_to_sparql(left)})/({path_to_sparql(right)})"
        case Alternative(left, right):
            return f"({path_to_sparql(left)})|({path_to_sparql(right)})"
        case ZeroOrMore(inner):
            return f"({path_to_sparql(inner)})*"
        case OneOrMore(inner):
            return f"({path_to_sparql(inner)})+"
        case ZeroOrOne(inner):
            return f"({path_to_sparql(inner)})?"
        case NegatedSet(forward, inverse):
            return "!(" + "|".join([*(str(iri) for iri in forward), *(f"^{iri}" for iri in inverse)]) + ")"
    raise TypeError(f"no text for {type(path).__name__}")


def triple_to_sparql(triple: TriplePattern) -> str:
    predicate = triple.predicate
    middle = path_to_sparql(predicate) if isinstance(predicate, Path) else term_to_sparql(predicate)
    return f"{term_to_sparql(triple.subject)} {middle} {term_to_sparql(triple.object)} ."


def expression_to_sparql(expression: Expression) -> str:
    """An expression, fully parenthesised."""
    match expression:
        case Constant(value):
            return term_to_sparql(value)
        case VariableReference(variable):
            return term_to_sparql(variable)
        case Operation("IN" | "NOT IN" as operator, operands):
            listed = ", ".join(expression_to_sparql(o) for o in operands[1:])
            return f"({expression_to_sparql(operands[0])} {operator} ({listed}))"
        case Operation(operator, (operand,)):
            return f"({operator.removeprefix('unary ')} {expression_to_sparql(operand)})"
        case Operation(operator, operands):
            return "(" + f" {operator} ".join(expression_to_sparql(o) for o in operands) + ")"
        case FunctionCall(name, arguments, distinct):
            called = term_to_sparql(name) if isinstance(name, NamedNode) else name
            return f"{called}({'DISTINCT ' if distinct else ''}{', '.join(map(expression_to_sparql, arguments))})"
        case ExistsPlan(plan, negated):
            return f"{'NOT ' if negated else ''}EXISTS {{ {group_to_sparql(plan)} }}"
        case Aggregate(function, argument, distinct, separator):
            inside = "*" if argument is None else expression_to_sparql(argument)
            if function == "GROUP_CONCAT":
                # It joins texts and gives a plain string; some engines would keep a language, or refuse numbers.
                inside = f"STR({inside})"
            tail = "" if separator is None else f" ; SEPARATOR = {_quote(separator)}"
            return f"{function}({'DISTINCT ' if distinct else ''}{inside}{tail})"
        case Timestamp(variable, stream):
            return f"timestamp({term_to_sparql(variable)}{'' if stream is None else ', ' + term_to_sparql(stream)})"
    raise TypeError(f"no text for {type(expression).__name__}")


def _quote(text: str) -> str:
    return str(Literal(text))


def group_to_sparql(node: Node) -> str:
    """The node as the content of a group, without the braces around it."""
    match node:
        case Unit():
            return ""
        case Bgp(triples):
            return " ".join(triple_to_sparql(triple) for triple in triples)
        case PathMatch(subject, path, object_):
            return f"{term_to_sparql(subject)} {path_to_sparql(path)} {term_to_sparql(object_)} ."
        case Join(left, right):
            return f"{_first_to_sparql(left)} {_item(right)}"
        case LeftJoin(left, right, condition):
            # The explicit FILTER keeps a filter inside `right` from being read as the condition.
            test = "true" if condition is None else expression_to_sparql(condition)
            return f"{_first_to_sparql(left)} OPTIONAL {{ {_item(right)} FILTER({test}) }}"
        case Minus(left, right):
            return f"{_first_to_sparql(left)} MINUS {{ {group_to_sparql(right)} }}"
        case Union(left, right):
            return f"{_brace(left)} UNION {_brace(right)}"
        case Filter(inner, condition):
            return f"{_first_to_sparql(inner)} FILTER({expression_to_sparql(condition)})"
        case Extend(inner, variable, expression):
            return f"{_first_to_sparql(inner)} BIND({expression_to_sparql(expression)} AS {term_to_sparql(variable)})"
        case Values(variables, rows):
            return _values_text(variables, rows)
        case Graph(name, inner):
            return f"GRAPH {term_to_sparql(name)} {_brace(inner)}"
        case Window(windows, name, inner):
            shown = term_to_sparql(name) if name is not None else "#" + ",".join(map(str, windows))
            return f"WINDOW {shown} {_brace(inner)}"
        case Service(endpoint, inner, silent):
            return f"SERVICE {'SILENT ' if silent else ''}{term_to_sparql(endpoint)} {_brace(inner)}"
        case Aggregation(inner, clauses, conditions):
            shown = " ".join(
                f"({term_to_sparql(v)}, {expression_to_sparql(a)}, {{{' '.join(map(term_to_sparql, g))}}})"
                for v, a, g in clauses
            )
            tests = "".join(f" FILTER({expression_to_sparql(c)})" for c in conditions)
            return f"{_first_to_sparql(inner)} AGGREGATE {{ {shown}{tests} }}"
        case Project() | Distinct() | Reduced() | Slice() | OrderBy() | Group():
            return f"{{ {select_to_sparql(node)} }}"
    raise TypeError(f"no text for {type(node).__name__}")


def _values_text(variables: Iterable[Variable], rows: Iterable[Iterable[Written]]) -> str:
    head = " ".join(term_to_sparql(v) for v in variables)
    body = " ".join(f"({' '.join(term_to_sparql(t) for t in row)})" for row in rows)
    return f"VALUES ({head}) {{ {body} }}"


def _brace(node: Node) -> str:
    return f"{{ {group_to_sparql(node)} }}"


def _first_to_sparql(node: Node) -> str:
    """A node at the beginning of a group: only what applies to the whole group needs braces."""
    return _brace(node) if isinstance(node, Filter | Aggregation) else group_to_sparql(node)


def _item(node: Node) -> str:
    """A node after others in a group: in braces if its meaning depends on what is before it."""
    alone = Bgp | PathMatch | Union | Values | Graph | Window | Service
    is_select = isinstance(node, Project | Distinct | Reduced | Slice | OrderBy | Group)
    return group_to_sparql(node) if isinstance(node, alone) or is_select else _brace(node)


def select_to_sparql(node: Node) -> str:
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
    variables: tuple[Variable, ...] = visible_variables(node)
    if isinstance(node, Project):
        node = node.inner
    if isinstance(node, OrderBy):
        keys = " ".join(f"{'DESC' if down else 'ASC'}({expression_to_sparql(e)})" for e, down in node.keys)
        tail = f" ORDER BY {keys}{tail}"
        node = node.inner
    if isinstance(node, Group) and (
        set(variables) <= set(visible_variables(node)) if not tail else variables == visible_variables(node)
    ):
        return _group_select(node, head, variables) + tail
    # `*` would project generated variables, too, and make equal solutions different.
    shown = " ".join(term_to_sparql(v) for v in variables) or "?hw_nothing"
    return f"SELECT {head}{shown} WHERE {{ {group_to_sparql(node)} }}{tail}"


def _group_select(node: Group, head: str, variables: tuple[Variable, ...]) -> str:
    """GROUP BY as a SELECT; `head` is DISTINCT, REDUCED or nothing, `variables` are the columns."""
    aggregates = dict(node.aggregates)
    shown = " ".join(
        f"({expression_to_sparql(aggregates[v])} AS {term_to_sparql(v)})" if v in aggregates else term_to_sparql(v)
        for v in variables
    )
    if not shown:
        # A group with neither key nor aggregate still has to be written as one.
        shown = term_to_sparql(node.keys[0][0]) if node.keys else "(COUNT(*) AS ?hw_rows)"
    # Keys with expressions are bound before grouping: pyoxigraph rejects some forms of GROUP BY (… AS ?v).
    inner = node.inner
    for variable, expression in node.keys:
        if expression is not None:
            inner = Extend(inner, variable, expression)
    keys = " ".join(term_to_sparql(v) for v, _ in node.keys)
    by = f" GROUP BY {keys}" if keys else ""
    return f"SELECT {head}{shown} WHERE {{ {group_to_sparql(inner)} }}{by}"
