"""Each operator of a plan as text: its name, then a line per detail.

The names are those of the C-SPARQL paper's algebra (AND, OPT, UNION, FILTER, AGG; figure 1) in the notation of SPARQL.
"""

from __future__ import annotations

from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    Distinct,
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
    WindowGraph,
)
from headwater.algebra.scope import conjuncts_of, visible_variables
from headwater.explain.notation import Notation, duration_text
from headwater.language.expressions import Aggregate, Expression
from headwater.language.service_options import RatesSource, ServiceOptions, strategy_of
from headwater.terms.model import Literal, NamedNode, Variable

_ROWS_SHOWN = 4


def operator_lines(node: Node, notation: Notation) -> tuple[str, ...]:
    """The name of the operator and its details."""
    match node:
        case Unit():
            return ("empty pattern", "one empty solution")
        case Bgp(triples):
            return ("graph pattern", *(notation.triple(triple) for triple in triples))
        case PathMatch(subject, path, object_):
            ends = notation.term(subject), notation.term(object_)
            return ("path pattern", f"{ends[0]} {notation.path(path, 2)} {ends[1]}")
        case Join(left, right):
            return ("join", _shared_variables(left, right, notation))
        case LeftJoin(left, right, condition):
            return ("optional", _shared_variables(left, right, notation), *_conditions(condition, notation))
        case Union():
            return ("union",)
        case Minus(left, right):
            return ("minus", _shared_variables(left, right, notation))
        case Filter(_, condition):
            return ("filter", *_conditions(condition, notation))
        case Extend(_, variable, expression):
            return ("extend", f"{notation.variable(variable)} := {notation.expression(expression)}")
        case Values(variables, rows):
            return ("values", f"({notation.variables(variables)})", *_rows(rows, notation))
        case Graph(name, _):
            return ("graph", f"GRAPH {notation.term(name)}")
        case WindowGraph(name, _):
            return ("graph", f"GRAPH {notation.term(name)} of the window")
        case Window(windows, name, _):
            numbers = ", ".join(f"W{number + 1}" for number in windows) or "no window"
            return ("window", numbers if name is None else f"{notation.variable(name)} in {numbers}")
        case Service(endpoint, _, silent, options):
            named = f"SERVICE {'SILENT ' if silent else ''}{notation.term(endpoint)}"
            return ("service", named, f"by {strategy_of(options).value}", *_goals(options))
        case Group(_, keys, aggregates):
            shown = [_key(variable, expression, notation) for variable, expression in keys]
            by = f"by {' '.join(shown)}" if keys else "all solutions as one group"
            return ("group", by, *(notation.expression(aggregate) for _, aggregate in aggregates))
        case Aggregation(_, clauses, _):
            return ("aggregation", *(clause_text(*clause, notation) for clause in clauses))
        case OrderBy(_, keys):
            shown = [f"{'DESC' if down else 'ASC'}({notation.expression(key)})" for key, down in keys]
            return ("order by", *shown)
        case Project(_, variables):
            return ("project", notation.variables(variables) or "no variable")
        case Distinct():
            return ("distinct",)
        case Reduced():
            return ("reduced",)
        case Slice(_, offset, limit):
            parts = [f"OFFSET {offset}"] if offset else []
            return ("slice", " ".join(([f"LIMIT {limit}"] if limit is not None else []) + parts))
    raise TypeError(f"no words for {type(node).__name__}")


def clause_text(variable: Variable, aggregate: Aggregate, group: tuple[Variable, ...], notation: Notation) -> str:
    """An AGGREGATE clause as the paper's A(v, f, p, G)."""
    distinct = "DISTINCT " if aggregate.distinct else ""
    argument = "*" if aggregate.argument is None else distinct + notation.expression(aggregate.argument)
    return f"A({notation.variable(variable)}, {aggregate.function}, {argument}, {{{notation.variables(group)}}})"


def _conditions(condition: Expression | None, notation: Notation) -> list[str]:
    if condition is None:
        return []
    parts = conjuncts_of(condition)
    texts = [notation.expression(part, 3 if len(parts) > 1 else 0) for part in parts]
    return [f"{text} &&" for text in texts[:-1]] + texts[-1:]


def _shared_variables(left: Node, right: Node, notation: Notation) -> str:
    others = set(visible_variables(right))
    shared = [variable for variable in visible_variables(left) if variable in others]
    return f"on {notation.variables(shared)}" if shared else "no shared variable"


def _rows(rows: tuple[tuple[NamedNode | Literal | None, ...], ...], notation: Notation) -> list[str]:
    shown = [f"({' '.join(notation.term(term) for term in row)})" for row in rows[:_ROWS_SHOWN]]
    rest = len(rows) - len(shown)
    return shown + ([f"and {rest} more"] if rest else [])


def _key(variable: Variable, expression: Expression | None, notation: Notation) -> str:
    name = notation.variable(variable)
    if expression is None:
        return name
    text = notation.expression(expression)
    return text if name.startswith("_:") else f"({text} AS {name})"


def _rates_text(rates: RatesSource) -> str:
    return str(rates) if isinstance(rates, NamedNode) else f'"{rates}"'


def _goals(options: ServiceOptions | None) -> tuple[str, ...]:
    """The options of a SERVICE clause as they are written."""
    if options is None:
        return ()
    values = {
        "ACCURACY": options.accuracy,
        "LATENCY": options.latency and duration_text(options.latency),
        "BUDGET": options.budget,
        "PREFER": options.prefer and options.prefer.name,
        "POLICY": options.policy,
        "RATES": options.rates and _rates_text(options.rates),
        "ENTRIES": options.entries,
        "CLOCK": options.clock and options.clock.name,
    }
    shown = [f"{name} {value}" for name, value in values.items() if value is not None]
    shown += ["FILL"] if options.fill else []
    return (", ".join(shown),) if shown else ()
