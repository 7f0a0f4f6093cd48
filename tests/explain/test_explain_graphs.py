"""The O-Graph and the D-Graph of plans: which vertices, edges and rectangles there are."""

from __future__ import annotations

from headwater.explain.denotational_graph import denotational_graph
from headwater.explain.drawing_model import Box, BoxKind, Drawing, Vertex, VertexKind
from headwater.explain.operator_graph import operator_graph
from tests.explain.explain_queries import EVERYTHING, NAMED_GRAPHS, PAPER, plan_of


def chain_from(drawing: Drawing, start: str) -> list[str]:
    """The first lines of the vertices from the one with this first line to the root."""
    by_id = {vertex.id: vertex for vertex in drawing.vertices}
    above = {edge.source: edge.target for edge in drawing.edges}
    here = next(vertex.id for vertex in drawing.vertices if vertex.lines[0] == start)
    found = [by_id[here].lines[0]]
    while here in above:
        here = above[here]
        found.append(by_id[here].lines[0])
    return found


def vertex(drawing: Drawing, text: str, kind: VertexKind = VertexKind.VARIABLE) -> Vertex:
    [found] = [v for v in drawing.vertices if v.lines == (text,) and v.kind is kind]
    return found


def pairs(drawing: Drawing) -> set[tuple[str, str]]:
    """The edges by the texts of their ends."""
    by_id = {v.id: " ".join(v.lines) for v in drawing.vertices}
    return {(by_id[edge.source], by_id[edge.target]) for edge in drawing.edges}


def members(drawing: Drawing, box: Box) -> set[str]:
    by_id = {v.id: " ".join(v.lines) for v in drawing.vertices}
    return {by_id[name] for name in box.vertices}


def box_of(drawing: Drawing, label: str) -> Box:
    [found] = [box for box in drawing.all_boxes() if label in box.label]
    return found


def test_the_o_graph_of_the_papers_example_is_figure_1() -> None:
    drawing = operator_graph(plan_of(PAPER))
    above_the_pattern = ["graph pattern", "filter", "aggregation", "project", "distinct", "result"]
    assert chain_from(drawing, "stream") == ["stream", "logical window ω", "default graph", *above_the_pattern]
    assert chain_from(drawing, "FROM") == ["FROM", "default graph", *above_the_pattern]
    assert len(drawing.vertices) == 10
    assert len(drawing.edges) == 9
    lines = {v.lines[0]: v.lines[1:] for v in drawing.vertices}
    assert lines["stream"] == ("<…/market.trdf>",)
    assert lines["logical window ω"] == ("[RANGE 1d TUMBLING]",)
    assert lines["graph pattern"] == ("?broker b:is_from ?country", "?broker x:does ?tx", "?tx x:with ?amount")
    assert lines["filter"] == ('?country = "CH" &&', "?amount >= 10")
    assert lines["aggregation"] == ("A(?total, SUM, ?amount, {?broker})",)
    assert lines["project"] == ("?broker ?total",)


def test_sources_that_are_named_feed_their_patterns_directly() -> None:
    drawing = operator_graph(plan_of(NAMED_GRAPHS))
    assert chain_from(drawing, "stream")[:4] == ["stream", "logical window ω", "graph pattern", "join"]
    assert chain_from(drawing, "FROM NAMED")[:3] == ["FROM NAMED", "graph pattern", "join"]


def test_two_windows_of_one_stream_share_the_stream() -> None:
    drawing = operator_graph(
        plan_of(
            "PREFIX : <http://ex.org/> "
            "SELECT * WHERE { STREAM :s [RANGE 1s] { ?a ?b ?c } STREAM :s [NOW] { ?c ?d ?e } }"
        )
    )
    kinds = [v.kind for v in drawing.vertices]
    assert (kinds.count(VertexKind.STREAM), kinds.count(VertexKind.WINDOW)) == (1, 2)


def test_a_stream_variable_ranges_over_the_known_streams() -> None:
    plan = plan_of("SELECT * WHERE { STREAM ?s [TRIPLES 5] { ?a ?b ?c } }", "http://ex.org/s1", "http://ex.org/s2")
    drawing = operator_graph(plan)
    assert ("union", "binds ?s") in {v.lines for v in drawing.vertices}
    pattern = next(v.id for v in drawing.vertices if v.kind is VertexKind.PATTERN)
    assert len([edge for edge in drawing.edges if edge.target == pattern]) == 2
    assert {v.lines[0] for v in drawing.vertices if v.kind is VertexKind.WINDOW} == {"physical window ω"}


def test_every_operator_of_a_plan_is_on_a_way_to_the_result() -> None:
    drawing = operator_graph(plan_of(EVERYTHING))
    below: dict[str, list[str]] = {}
    for edge in drawing.edges:
        below.setdefault(edge.target, []).append(edge.source)
    [root] = [v.id for v in drawing.vertices if v.kind is VertexKind.RESULT]
    seen, todo = set(), [root]
    while todo:
        here = todo.pop()
        seen.add(here)
        todo += below.get(here, [])
    assert seen == {v.id for v in drawing.vertices}
    assert ("ISTREAM",) in {v.lines for v in drawing.vertices}
    assert {edge.label for edge in drawing.edges} == {"", "optional", "P1"}


def test_filters_of_aggregate_clauses_and_the_form_are_operators_of_their_own() -> None:
    drawing = operator_graph(
        plan_of(
            "REGISTER STREAM Busy COMPUTED EVERY 5m AS CONSTRUCT { ?s <http://ex.org/n> ?n } "
            "FROM STREAM <http://ex.org/s> [RANGE 1h STEP 5m] WHERE { ?s ?p ?o } "
            "AGGREGATE { (?n, COUNT, {?s}) FILTER(?n > 3) }"
        )
    )
    chain = chain_from(drawing, "aggregation")
    assert (chain[1], chain[-2:]) == ("filter", ["construct", "result stream"])
    assert next(v.lines for v in drawing.vertices if v.kind is VertexKind.RESULT) == (
        "result stream",
        "Busy",
        "every 5m",
    )
    assert next(v.lines[1] for v in drawing.vertices if v.kind is VertexKind.AGGREGATION) == "A(?n, COUNT, *, {?s})"


def test_rules_1_and_2_terms_are_vertices_and_patterns_pairs_of_edges() -> None:
    drawing = denotational_graph(plan_of(PAPER))
    for name in ("?broker", "?country", "?tx", "?amount", "?total"):
        assert vertex(drawing, name)
    for name in ("b:is_from", "x:does", "x:with"):
        assert vertex(drawing, name, VertexKind.IRI)
    assert {
        ("?broker", "b:is_from"),
        ("b:is_from", "?country"),
        ("?broker", "x:does"),
        ("x:does", "?tx"),
        ("?tx", "x:with"),
        ("x:with", "?amount"),
    } <= pairs(drawing)


def test_rule_1_a_predicate_stands_once_per_pattern_and_other_terms_once_per_source() -> None:
    drawing = denotational_graph(
        plan_of("PREFIX : <http://ex.org/> SELECT * { ?a :p :x . ?b :p :x . ?a :q 5 . GRAPH :g { ?a :r :x } }")
    )
    texts = [v.lines[0] for v in drawing.vertices]
    assert (texts.count(":p"), texts.count(":x"), texts.count("?a"), texts.count("5")) == (2, 2, 1, 1)
    assert vertex(drawing, "5", VertexKind.LITERAL)


def test_rule_3_conjuncts_of_filters_are_remarks_on_their_variables() -> None:
    drawing = denotational_graph(plan_of(PAPER))
    assert vertex(drawing, "?country").remarks == ('?country = "CH"',)
    assert vertex(drawing, "?amount").remarks == ("?amount >= 10",)
    assert vertex(drawing, "?tx").remarks == ()
    both = denotational_graph(plan_of("SELECT * { ?a ?p ?b OPTIONAL { ?b ?q ?c FILTER(?a < ?c) } FILTER(1 = 1) }"))
    assert vertex(both, "?a").remarks == vertex(both, "?c").remarks == ("OPTIONAL 1: ?a < ?c",)
    assert vertex(both, "1 = 1", VertexKind.FILTER)


def test_rule_4_an_aggregation_is_a_hyper_node_around_the_one_of_its_group() -> None:
    drawing = denotational_graph(plan_of(PAPER))
    hyper = box_of(drawing, "aggregation")
    [group] = hyper.boxes
    assert (hyper.kind, group.kind) == (BoxKind.AGGREGATION, BoxKind.GROUP)
    assert members(drawing, hyper) == {"SUM", "?total"}
    key = vertex(drawing, "?broker", VertexKind.KEY)
    assert group.vertices == (key.id,)
    function, by_id = vertex(drawing, "SUM", VertexKind.FUNCTION), {v.id: v for v in drawing.vertices}
    into = {by_id[e.source].id for e in drawing.edges if e.target == function.id}
    assert into == {key.id, vertex(drawing, "?amount").id}
    assert [by_id[e.target].lines for e in drawing.edges if e.source == function.id] == [("?total",)]


def test_rule_4_holds_for_group_by_under_the_name_that_select_gives() -> None:
    drawing = denotational_graph(plan_of("SELECT ?a (COUNT(*) AS ?n) (SUM(?b) AS ?t) { ?a ?p ?b } GROUP BY ?a"))
    assert members(drawing, box_of(drawing, "aggregation")) == {"COUNT(*)", "?n", "SUM", "?t"}
    assert {("COUNT(*)", "?n"), ("SUM", "?t"), ("?b", "SUM"), ("?a", "SUM")} <= pairs(drawing)
    alone = denotational_graph(plan_of("SELECT (COUNT(*) AS ?n) { ?a ?p ?b }"))
    assert members(alone, box_of(alone, "group G")) == {"all solutions"}


def test_rule_5_the_variables_of_the_result_are_filled() -> None:
    def filled(text: str) -> set[str]:
        return {v.lines[0] for v in denotational_graph(plan_of(text)).vertices if v.is_filled}

    assert filled(PAPER) == {"?broker", "?total"}
    assert filled("CONSTRUCT { ?a <http://ex.org/p> 1 } WHERE { ?a ?p ?b }") == {"?a"}
    assert filled("DESCRIBE ?b WHERE { ?a ?p ?b }") == {"?b"}
    assert filled("ASK { ?a ?p ?b }") == set()


def test_rule_6_the_merged_default_graph_is_one_source() -> None:
    drawing = denotational_graph(plan_of(PAPER))
    source = drawing.boxes[0]
    assert source.kind is BoxKind.SOURCE
    assert source.label == ("default graph (stream <…/market.trdf> [RANGE 1d TUMBLING] and FROM <…/brokers.rdf>)")
    assert {"?broker", "?country", "?tx", "?amount"} <= members(drawing, source)
    implied = PAPER.replace("FROM <http://brokerscentral.org/brokers.rdf>\n", "")
    assert denotational_graph(plan_of(implied)).boxes[0].label == (
        "default graph (stream <…/market.trdf> [RANGE 1d TUMBLING] and static data: default graph)"
    )


def test_rule_6_separates_static_from_streaming_knowledge() -> None:
    drawing = denotational_graph(plan_of(NAMED_GRAPHS))
    static, streaming = drawing.boxes
    assert (static.label, streaming.label) == (
        "FROM NAMED <…/brokers.rdf>",
        "window <…/market.trdf> [RANGE 1d TUMBLING]",
    )
    assert members(drawing, static) == {"b:is_from", "?country"}
    assert members(drawing, streaming) == {"x:does", "?tx", "x:with", "?amount"}
    assert drawing.free_vertices == (vertex(drawing, "?broker").id,)


def test_parts_that_are_not_conjunctive_stand_apart_inside_their_source() -> None:
    drawing = denotational_graph(plan_of(EVERYTHING))
    window = box_of(drawing, "window :w2")
    assert [box.label for box in window.boxes] == ["UNION branch 1", "UNION branch 2"]
    assert {"?s", "?v"} <= members(drawing, window)
    assert members(drawing, box_of(drawing, "OPTIONAL 1")) == {":name", "?name"}
    assert box_of(drawing, "NOT EXISTS P1").kind is BoxKind.PART
    assert box_of(drawing, "SERVICE").kind is BoxKind.SOURCE
    assert box_of(drawing, "sub-query 1").label == "sub-query 1 (order by ASC(?big), slice LIMIT 5)"


def test_a_sub_query_hides_what_it_does_not_project() -> None:
    drawing = denotational_graph(plan_of(EVERYTHING))
    persons = [v for v in drawing.vertices if v.lines == ("?p",)]
    assert len(persons) == 2
    assert len([v for v in drawing.vertices if v.lines == ("?room",) and v.kind is VertexKind.VARIABLE]) == 1


def test_definitions_and_inline_data_are_remarks() -> None:
    drawing = denotational_graph(plan_of(EVERYTHING))
    assert vertex(drawing, "?sum").remarks == (":= ?v + ?big",)
    assert "VALUES (?room) { (:r1) (:r2) }" in vertex(drawing, "?room").remarks
    assert {("?v", "?sum"), ("?big", "?sum")} <= pairs(drawing)
    assert vertex(drawing, "?n").remarks == ("COUNT(DISTINCT ?p) > 3",)
