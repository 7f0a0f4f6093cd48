"""Explains a plan and how it is evaluated: as an indented text, or as one of the two graphs of C-SPARQL.

explain(plan)                                          the text
explain(plan, graph="operators", format="svg")         the O-Graph (section 3.4)
explain(plan, graph="denotational", format="mermaid")  the D-Graph (section 4)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from headwater.algebra.active_graphs import ActiveGraph, active_graph_inside, default_active_graph
from headwater.algebra.nodes import Aggregation, Bgp, ExistsPlan, Node, PathMatch
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import expressions_of, sub_expressions, visible_variables
from headwater.errors import SettingError
from headwater.explain.active_graph_text import active_graph_text, window_text
from headwater.explain.denotational_graph import denotational_graph
from headwater.explain.dot import to_dot, to_svg
from headwater.explain.drawing_model import Box, Drawing, PlanFormat, PlanGraph, Vertex
from headwater.explain.mermaid import to_mermaid
from headwater.explain.notation import Notation, duration_text, instant_text
from headwater.explain.operator_graph import operator_graph
from headwater.explain.operator_text import operator_lines
from headwater.language.stream_clauses import CountSpec, Dialect, RegistrationKind
from headwater.windows.settings import QuerySettings

_DIALECTS = {Dialect.CSPARQL: "C-SPARQL", Dialect.CQELS: "CQELS-QL", Dialect.RSPQL: "RSP-QL"}
_USUAL_EVALUATOR = "reference"


def explain(
    plan: QueryPlan,
    *,
    graph: PlanGraph | None = None,
    format: PlanFormat = "text",
    settings: QuerySettings | None = None,
    evaluator: str = _USUAL_EVALUATOR,
    static_parts: Sequence[Node] = (),
    shards: str | None = None,
    views: Sequence[str] = (),
    is_merged: bool = True,
) -> str:
    """The explanation of a plan.

    Without `graph`, text is the indented plan with its settings, and the other formats show the operators. `settings`
    are the policies under which the plan runs, `evaluator` names what evaluates it, and `static_parts` are its parts
    that read no stream; `views` says for each of them where its solutions are. `shards` describes how the work can be
    cut. `is_merged=False` draws each triple pattern as an operator. The format svg needs Graphviz (`GraphvizError`
    without it).
    """
    if graph not in (None, *get_args(PlanGraph)):
        raise SettingError(f"graph {graph!r} is not known; choose operators or denotational")
    if format not in get_args(PlanFormat):
        raise SettingError(f"format {format!r} is not known; choose text, mermaid, dot or svg")
    if format == "text" and graph is None:
        return explain_text(plan, settings, evaluator=evaluator, static_parts=static_parts, shards=shards, views=views)
    brief = format != "text"
    if graph == "denotational":
        drawing = denotational_graph(plan, brief=brief)
    else:
        drawing = operator_graph(plan, brief=brief, is_merged=is_merged)
    write = {"text": drawing_text, "mermaid": to_mermaid, "dot": to_dot, "svg": to_svg}[format]
    return write(drawing)


def explain_text(
    plan: QueryPlan,
    settings: QuerySettings | None = None,
    *,
    evaluator: str = _USUAL_EVALUATOR,
    static_parts: Sequence[Node] = (),
    shards: str | None = None,
    views: Sequence[str] = (),
) -> str:
    """The query's head, windows, evaluation, operators (a line each, inputs below) and notes."""
    notation = Notation.of(plan)
    lines = [f"{_title_of(plan)}: {plan.kind.name} in {_DIALECTS[plan.dialect]}"]
    lines += ["", "Windows", *(f"  {line}" for line in _window_lines(plan, notation, settings))]
    lines += ["", "Evaluation", f"  evaluator  {evaluator}"]
    for number, part in enumerate(static_parts):
        bound = notation.variables(v for v in visible_variables(part) if not notation.is_invented(v))
        where = views[number] if number < len(views) else "asked once of the reference"
        lines.append(f"  view       {bound or 'no variable'}: static data, {where}")
    lines += (f"  {line}" for line in _evaluation_lines(plan, settings))
    if shards is not None:
        lines.append(f"  shards     {shards}")
    lines += ["", "Plan", *_form_lines(plan, notation)]
    depth = 1 if plan.kind is QueryKind.SELECT else 2
    lines += _tree_lines(plan, plan.root, default_active_graph(plan), notation, depth)
    if plan.notes:
        lines += ["", "Notes", *(f"  {note}" for note in plan.notes)]
    return "\n".join(lines) + "\n"


def _title_of(plan: QueryPlan) -> str:
    stream = plan.registration is not None and plan.registration.kind is RegistrationKind.STREAM
    kind = "stream" if stream else "query"
    return kind if plan.name == kind else f"{kind} {plan.name}"


def _window_lines(plan: QueryPlan, notation: Notation, settings: QuerySettings | None) -> Iterator[str]:
    if not plan.windows:
        yield "none: the query reads static data only"
    for number, window in enumerate(plan.windows):
        seen = []
        if window.in_default_graph:
            seen.append("in the default graph")
        if window.graph is not None:
            seen.append(f"as GRAPH {notation.iri(window.graph)}")
        shown = f", seen {' and '.join(seen)}" if seen else ""
        by_time = not isinstance(window.spec, CountSpec)
        bounds = f", bounds {_bounds(settings)}" if settings is not None and by_time else ""
        yield f"W{number + 1}  {window_text(plan, number, notation)}{bounds}{shown}"


def _bounds(settings: QuerySettings) -> str:
    text = str(settings.bounds.value)
    return f"{text[0]}open, close{text[1]}" if len(text) == 2 else text


def _evaluation_lines(plan: QueryPlan, settings: QuerySettings | None) -> Iterator[str]:
    if settings is not None:
        period = f" every {duration_text(settings.period)}" if settings.period is not None else ""
        yield f"report     {settings.report.value}{period}"
        yield f"emit       {str(settings.emit.value).upper()}"
        yield f"content    {settings.content.value}"
        if settings.t0 is not None:
            yield f"t0         {instant_text(settings.t0)}"
        return
    if plan.registration is not None and plan.registration.every is not None:
        yield f"report     periodic every {duration_text(plan.registration.every)}"
    if plan.stream_operator is not None:
        yield f"emit       {plan.stream_operator.name}"


def _form_lines(plan: QueryPlan, notation: Notation) -> list[str]:
    match plan.kind:
        case QueryKind.CONSTRUCT:
            return [f"  construct: {' . '.join(notation.triple(t) for t in plan.template)}"]
        case QueryKind.DESCRIBE:
            return [f"  describe: {' '.join(notation.term(t) for t in plan.described)}"]
        case QueryKind.ASK:
            return ["  ask: is there a solution?"]
    return []


def plan_lines(plan: QueryPlan, node: Node | None = None, active_graph: ActiveGraph | None = None) -> list[str]:
    """The operators of a plan, or of the part at a node whose patterns read `active_graph`, a line each."""
    return list(_tree_lines(plan, node or plan.root, active_graph or default_active_graph(plan), Notation.of(plan), 0))


def _tree_lines(
    plan: QueryPlan, node: Node, active_graph: ActiveGraph, notation: Notation, depth: int, name: str = ""
) -> Iterator[str]:
    """A line for each operator at and below a node, indented; those inside EXISTS under the name of their EXISTS."""
    title, *details = operator_lines(node, notation)
    separator = " . " if isinstance(node, Bgp) else "; "
    text = f"{title}: {separator.join(details).replace('&&; ', '&& ')}" if details else title
    if isinstance(node, Bgp | PathMatch):
        text += f"  in {active_graph_text(active_graph, plan, notation, by_number=True)}"
    bound = notation.variables(v for v in visible_variables(node) if not notation.is_invented(v))
    yield f"{'  ' * depth}{name}{text}  → {bound or 'no variable'}"
    if isinstance(node, Aggregation):
        for condition in node.conditions:
            yield f"{'  ' * (depth + 1)}where {notation.expression(condition)}"
    for expression in expressions_of(node):
        for part in sub_expressions(expression):
            if isinstance(part, ExistsPlan):
                yield from _tree_lines(
                    plan, part.plan, active_graph, notation, depth + 1, f"{notation.exists[part]} = "
                )
    within = active_graph_inside(plan, node, active_graph)
    for child in node.children:
        yield from _tree_lines(plan, child, within, notation, depth + 1)


def drawing_text(drawing: Drawing) -> str:
    """A drawing as text: the vertices by their rectangles, then the edges."""
    by_id = {vertex.id: vertex for vertex in drawing.vertices}
    lines = [drawing.title, "", "Vertices"]
    lines += [f"  {_vertex_text(by_id[name])}" for name in drawing.free_vertices]
    for box in drawing.boxes:
        lines += _box_text(box, by_id, "  ")
    lines += ["", "Edges"]
    for edge in drawing.edges:
        arrow = f"-{edge.label}->" if edge.label else "->"
        lines.append(f"  {_name(by_id[edge.source])} {arrow} {_name(by_id[edge.target])}")
    return "\n".join(lines) + "\n"


def _name(vertex: Vertex) -> str:
    return f"{vertex.id} {vertex.lines[0] if len(vertex.lines) == 1 else ' '.join(vertex.lines[:2])}"


def _vertex_text(vertex: Vertex) -> str:
    kind = f"{vertex.kind.value}, in the result" if vertex.is_filled else vertex.kind.value
    parts = [f"{vertex.id} {' | '.join(vertex.lines)}", f"({kind})"]
    parts += [f"[{remark}]" for remark in vertex.remarks]
    return "  ".join(parts)


def _box_text(box: Box, by_id: dict[str, Vertex], indent: str) -> Iterator[str]:
    yield f"{indent}{box.kind.value}: {box.label}"
    for name in box.vertices:
        yield f"{indent}  {_vertex_text(by_id[name])}"
    for inner in box.boxes:
        yield from _box_text(inner, by_id, indent + "  ")
