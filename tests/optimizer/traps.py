"""A query for each side condition of a rule, over data on which leaving the condition out would change the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyoxigraph import Quad, RdfFormat
from pyoxigraph import parse as parse_rdf

from headwater.algebra.nodes import Group, LeftJoin, Node, Project
from headwater.algebra.scope import visible_variables
from headwater.language.expressions import Expression, Operation
from headwater.optimizer.constant_values import effective_boolean_value
from headwater.optimizer.distribution import AggregateSplit
from headwater.terms.model import SECOND, Element, NamedNode, Triple, Variable
from headwater.terms.stored_forms import to_stored_quad
from headwater.windows.settings import Content
from tests.optimizer.random_queries import EX, PREFIXES, STREAMS, Case

WINDOWS = " ".join(f"FROM NAMED WINDOW :w{n} ON <{s}> [RANGE 10s TUMBLING]" for n, s in enumerate(STREAMS))
MERGED = f"FROM STREAM <{STREAMS[0]}> [RANGE 10s TUMBLING]"


@dataclass(frozen=True)
class Trap:
    """`broken` stands in for the function `condition` of the rule's module, which then no longer checks anything."""

    title: str
    module: str
    condition: str
    broken: Callable[..., Any]
    query: str
    static: str = ""
    graphs: tuple[str, ...] = ()
    streams: tuple[str, str] = (":some :thing :else .", "")
    source: str = WINDOWS
    content: Content = Content.SET
    base: str = ""

    def case(self) -> Case:
        head, where, tail = self.query.partition("WHERE")
        text = f"{self.base}{PREFIXES}{head}{self.source} {where}{tail}"
        quads = [*_quads(self.static)]
        for number, graph in enumerate(self.graphs, 1):
            quads += _quads(graph, NamedNode(f"{EX}g{number}"))
        first, second = (_elements(turtle) for turtle in self.streams)
        return Case(0, text, self.content, tuple(map(to_stored_quad, quads)), (first, second))


def _quads(turtle: str, graph: NamedNode | None = None) -> list[Quad]:
    found = parse_rdf(f"@prefix : <{EX}> . {turtle}", format=RdfFormat.TURTLE)
    return [Quad(q.subject, q.predicate, q.object, graph) if graph else q for q in found]


def _elements(turtle: str) -> tuple[Element, ...]:
    """A triple each second."""
    triples = (Triple(q.subject, q.predicate, q.object) for q in _quads(turtle))
    return tuple(Element((i + 1) * SECOND, (triple,), None, (i,)) for i, triple in enumerate(triples))


def always(*_: object) -> bool:
    return True


def never(*_: object) -> bool:
    return False


def nothing(*_: object) -> frozenset[Variable]:
    return frozenset()


def _the_first(node: Node) -> frozenset[Variable]:
    return frozenset(visible_variables(node)[:1])


def _is_a_projection(node: Node) -> bool:
    return isinstance(node, Project)


def _all_of_the_right(node: LeftJoin) -> frozenset[Variable]:
    return frozenset(visible_variables(node.right))


def _any_operands(condition: Expression) -> list[Expression]:
    return list(condition.operands) if isinstance(condition, Operation) else [condition]


def _errors_are_false(expression: Expression) -> bool:
    return bool(effective_boolean_value(expression))


def _rounded_splits(group: Group) -> tuple[AggregateSplit, ...]:
    """As if any sum could be added up from sums, and any count from counts."""
    return tuple(AggregateSplit(variable, aggregate, aggregate, "SUM") for variable, aggregate in group.aggregates)


def _same_kind(one: Node, other: Node) -> bool:
    return type(one) is type(other)


def _both_sides(node: Node) -> list[Node]:
    return [part for child in node.children for part in _both_sides(child)] if len(node.children) == 2 else [node]


def _all_of_them(promised: tuple[Expression, ...], _: object) -> tuple[Expression, ...]:
    return promised


def _all_of_both(left: tuple[Expression, ...], right: tuple[Expression, ...]) -> tuple[Expression, ...]:
    return (*left, *right)


TRAPS = [
    Trap(
        "what is shown besides the group keeps its solutions apart",
        *("rewrites.group_aggregates", "is_decided_by_group", always),
        "SELECT DISTINCT ?x ?v ?n WHERE { ?x :p ?v } AGGREGATE { (?n, SUM(?v), {?x}) }",
        static=":a :p 1, 2 . :b :p 1 .",
        source=MERGED,
    ),
    Trap(
        "a filter of AGGREGATE reads what the group does not decide",
        *("rewrites.group_aggregates", "is_decided_by_group", always),
        "SELECT DISTINCT ?x ?n WHERE { ?x :p ?v } AGGREGATE { (?n, COUNT(?v), {?x}) FILTER(?v > 1) }",
        static=":a :p 1, 2 . :b :p 1 .",
        source=MERGED,
    ),
    Trap(
        "OPTIONAL's variable is not known to the left side",
        *("rewrites.push_filters", "is_decided_by", always),
        "SELECT * WHERE { ?x :p ?v OPTIONAL { ?x :q ?w } FILTER(!BOUND(?w)) }",
        static=":a :p 1 ; :q 2 . :b :p 1 .",
    ),
    Trap(
        "the condition of OPTIONAL sees the left side too",
        *("rewrites.push_filters", "is_decided_by", always),
        "SELECT * WHERE { ?x :p ?v OPTIONAL { ?x :q ?w FILTER(?v < ?w) } }",
        static=":a :p 1 ; :q 2 . :b :p 1 .",
    ),
    Trap(
        "a variable that may be unbound gets its value from the other side of a join",
        *("rewrites.push_filters", "is_decided_by", always),
        "SELECT * WHERE { { ?x :p ?v } UNION { ?x :q ?w } ?y :r ?v FILTER(?v = 1 || ?v = 2) }",
        static=":a :p 1 . :b :q 5 . :c :r 1 , 2 .",
    ),
    Trap(
        "timestamp() is the newest of all patterns that bind the variable",
        *("rewrites.push_filters", "can_move", always),
        "SELECT * WHERE { ?x :p ?v . ?y :q ?v FILTER(timestamp(?v) >= 2000) }",
        streams=(":a :p 1 . :b :q 1 .", ""),
        source=MERGED,
    ),
    Trap(
        "inside EXISTS a filter may look outside, a sub-query may not",
        *("rewrites.push_filters", "is_independent_of_outside", always),
        "SELECT * WHERE { ?x :p ?v FILTER EXISTS { { SELECT ?y { ?y :q ?w } } FILTER(?v >= 1) } }",
        static=":a :p 1 ; :q 2 .",
    ),
    Trap(
        "the optional part is thinned out only by what it binds itself",
        *("rewrites.push_filters", "is_decided_by_both", always),
        "SELECT * WHERE { ?x :p ?v OPTIONAL { ?x :q ?w } FILTER(?v != 5) }",
        static=":a :p 1 ; :q 2 .",
    ),
    Trap(
        "MINUS is thinned out only by what it binds itself",
        *("rewrites.push_filters", "is_decided_by_both", always),
        "SELECT * WHERE { ?x :p ?v MINUS { ?x :q ?w } FILTER(?v != 5) }",
        static=":a :p 1 ; :q 2 .",
    ),
    Trap(
        "BIND's variable is not there below it",
        *("rewrites.push_filters", "reads_extended_variable", never),
        "SELECT * WHERE { ?x :p ?v BIND(?v + 1 AS ?k) FILTER(?k > 1) }",
        static=":a :p 1 .",
    ),
    Trap(
        "inside GRAPH ?g the variable is not bound yet",
        *("rewrites.push_filters", "is_same_inside_graph", always),
        "SELECT * WHERE { GRAPH ?g { ?x :p ?v } FILTER(?g != :g1) }",
        graphs=(":a :p 1 .", ":b :p 2 ."),
    ),
    Trap(
        "EXISTS looks at the graph around it",
        *("rewrites.push_filters", "is_same_inside_graph", always),
        "SELECT * WHERE { GRAPH :g1 { ?x :p ?v } FILTER EXISTS { ?x :q ?w } }",
        static=":b :q 1 .",
        graphs=(":a :p 1 ; :q 1 . :b :p 2 .",),
    ),
    Trap(
        "a variable that a sub-query hides is another one",
        *("rewrites.push_filters", "has_projected_variables", always),
        "SELECT * WHERE { { SELECT ?x { ?x :p ?v } } FILTER(!BOUND(?v)) }",
        static=":a :p 1 .",
    ),
    Trap(
        "EXISTS does not meet a variable that a sub-query hides",
        *("rewrites.push_filters", "has_projected_variables", always),
        "SELECT * WHERE { { SELECT ?x { ?x :p ?v } } FILTER EXISTS { ?x :q ?v } }",
        static=":a :p 1 ; :q 2 .",
    ),
    Trap(
        "HAVING on an aggregate comes after the grouping",
        *("rewrites.push_filters", "is_decided_by_group", always),
        "SELECT ?x (COUNT(*) AS ?n) WHERE { ?x :p ?v } GROUP BY ?x HAVING(COUNT(*) > 1)",
        static=":a :p 1 , 2 . :b :p 1 .",
    ),
    Trap(
        "a FILTER of AGGREGATE that cuts through groups comes after them",
        *("rewrites.push_filters", "is_decided_by_group", always),
        "SELECT ?x ?v ?n WHERE { ?x :p ?v } AGGREGATE { (?n, COUNT(?v), {?x}) FILTER(?v > 1) }",
        streams=(":a :p 1 , 2 .", ""),
        source=MERGED,
    ),
    Trap(
        "a filter that the left side decides does not ask for the optional part",
        *("rewrites.optional_to_join", "is_null_rejecting", always),
        "SELECT * WHERE { ?x :p ?v OPTIONAL { ?x :q ?w } FILTER(?v != 5) }",
        static=":a :p 1 .",
    ),
    Trap(
        "three-valued logic: an error or true is true",
        *("rewrites.optional_to_join", "is_null_rejecting", always),
        "SELECT * WHERE { ?x :p ?v OPTIONAL { ?x :q ?w } FILTER(?w > 1 || ?v = 1) }",
        static=":a :p 1 .",
    ),
    Trap(
        "a variable of both sides is bound without the optional part",
        *("rewrites.optional_to_join", "optional_only_variables", _all_of_the_right),
        "SELECT * WHERE { ?x :p ?v OPTIONAL { ?x :q ?w } FILTER(?x != :b) }",
        static=":a :p 1 .",
    ),
    Trap(
        "inside EXISTS the variable may be bound outside",
        *("rewrites.optional_to_join", "can_be_bound_outside", never),
        "SELECT * WHERE { ?x :p ?v FILTER EXISTS { ?y :q ?w OPTIONAL { ?y :r ?v } FILTER(BOUND(?v)) } }",
        static=":a :p 1 . :b :q 2 .",
    ),
    Trap(
        "inside EXISTS a constant would cut off the solution outside",
        *("rewrites.bind_equalities", "is_tied_to_outside", never),
        "SELECT * WHERE { ?x :p ?v FILTER EXISTS { ?y :q ?v FILTER(?v = :a) } }",
        static=":a :p :b . :c :q :a , :b .",
    ),
    Trap(
        "where the variable may be unbound the equality is an error",
        *("rewrites.bind_equalities", "is_always_bound", always),
        "SELECT * WHERE { { ?x :p ?v } UNION { ?x :q ?w } FILTER(?v = :a) }",
        static=":a :p :a . :b :q :a .",
    ),
    Trap(
        "numbers are equal by value",
        *("rewrites.bind_equalities", "is_equal_only_to_itself", always),
        "SELECT * WHERE { ?x :p ?v FILTER(?v = 1) }",
        static=":a :p 1 . :b :p 01 . :c :p 1.0 .",
    ),
    Trap(
        "MINUS without a shared variable removes nothing",
        *("rewrites.bind_equalities", "is_shared_with_minus", never),
        "SELECT * WHERE { ?v :p ?x MINUS { ?v :q ?y } FILTER(?v = :a) }",
        static=":a :p 1 ; :q 2 .",
    ),
    Trap(
        "GRAPH <iri> has solutions in a graph that is not there",
        *("rewrites.bind_equalities", "needs_triple", always),
        "SELECT * WHERE { GRAPH ?g { { SELECT (COUNT(*) AS ?n) { ?x :p ?v } } } FILTER(?g = :nowhere) }",
        graphs=(":a :p 1 .",),
    ),
    Trap(
        "EXISTS is tied by the variable",
        *("rewrites.bind_equalities", "_can_substitute", always),
        "SELECT * WHERE { ?x :p ?v FILTER EXISTS { ?v :q ?w } FILTER(?v = :a) }",
        static=":c :p :a . :b :q 1 .",
    ),
    Trap(
        "timestamp() of a variable that a constant stands for has no pattern",
        *("rewrites.bind_equalities", "has_timestamps", never),
        "SELECT ?x (timestamp(?v) AS ?t) WHERE { ?x :p ?v FILTER(?v = :a) }",
        streams=(":a :p :a .", ""),
        source=MERGED,
    ),
    Trap(
        "timestamp() does not see into a projection",
        *("rewrites.push_projections", "has_timestamps", never),
        "SELECT ?x (timestamp(?x) AS ?t) WHERE { GRAPH :s0 { ?x :p ?v . ?x :q ?w } }",
        streams=(":a :p 1 ; :q 2 .", ""),
        source=MERGED.replace("FROM", "FROM NAMED"),
    ),
    Trap(
        "two graphs are not one",
        *("rewrites.merge_patterns", "has_same_graph", _same_kind),
        "SELECT * WHERE { GRAPH :g1 { ?x :p ?v } GRAPH :g2 { ?x :q ?w } }",
        graphs=(":a :p 1 .", ":a :q 1 ."),
    ),
    Trap(
        "two windows are not one",
        *("rewrites.merge_patterns", "has_same_graph", _same_kind),
        "SELECT * WHERE { WINDOW :w0 { ?x :p ?v } WINDOW :w1 { ?x :q ?w } }",
        streams=(":a :p 1 .", ":a :q 1 ."),
    ),
    Trap(
        "timestamp() does not see into a sub-query, even one that hides nothing",
        *("rewrites.drop_unused", "has_timestamps", never),
        "SELECT ?x ?v (timestamp(?x) AS ?t) WHERE { { SELECT ?x ?v { ?x :p ?v } } }",
        streams=(":a :p 1 .", ""),
        source=MERGED,
    ),
    Trap(
        "a variable that a sub-query hides is not joined",
        *("rewrites.drop_unused", "is_identity_projection", _is_a_projection),
        "SELECT * WHERE { { SELECT ?x { ?x :p ?v } } ?x :q ?v }",
        static=":a :p 1 ; :q 2 .",
    ),
    Trap(
        "DISTINCT looks at all variables",
        *("required_variables", "whole_solution_variables", _the_first),
        "SELECT ?x WHERE { { SELECT DISTINCT ?x ?k { ?x :p ?v BIND(?v + 1 AS ?k) } } }",
        static=":a :p 1 , 2 .",
    ),
    Trap(
        "LIMIT settles its order by all variables",
        *("required_variables", "whole_solution_variables", _the_first),
        "SELECT ?x WHERE { { SELECT ?v ?x { ?x :p ?v } LIMIT 1 } }",
        static=":b :p 1 . :a :p 2 .",
    ),
    Trap(
        "COUNT(DISTINCT *) looks at all variables",
        *("required_variables", "whole_solution_variables", _the_first),
        "SELECT ?x (COUNT(DISTINCT *) AS ?n) WHERE { { SELECT ?x ?v { ?x :p ?v } } } GROUP BY ?x",
        static=":a :p 1 , 2 .",
    ),
    Trap(
        "a join looks at the variables of both sides",
        *("required_variables", "join_variables", nothing),
        "SELECT ?x WHERE { { SELECT ?x ?v { ?x :p ?v } } { SELECT ?y ?v { ?y :q ?v } } }",
        static=":a :p 1 . :b :q 2 .",
    ),
    Trap(
        "MINUS looks at the variables of both sides",
        *("required_variables", "join_variables", nothing),
        "SELECT ?x WHERE { { SELECT ?x ?v { ?x :p ?v } } MINUS { ?y :q ?v } }",
        static=":a :p 1 . :b :q 1 .",
    ),
    Trap(
        "aggregates look at their arguments",
        *("required_variables", "variables_of_aggregates", nothing),
        "SELECT ?x (SUM(?k) AS ?n) WHERE { ?x :p ?v BIND(?v + 1 AS ?k) } GROUP BY ?x",
        static=":a :p 1 .",
    ),
    Trap(
        "without keys there is a group of nothing",
        *("rewrites.prune_empty", "has_no_group_if_empty", always),
        "SELECT (COUNT(*) AS ?n) WHERE { ?x :p ?v FILTER(1 > 2) }",
    ),
    Trap(
        "an error is not false",
        *("rewrites.fold_constants", "effective_boolean_value", _errors_are_false),
        "SELECT * WHERE { ?x :p ?v FILTER(!((1/0 = 1) && BOUND(?v))) }",
        static=":a :p 1 .",
    ),
    Trap(
        "NOW() is the tick",
        *("constant_values", "is_deterministic", always),
        "SELECT (YEAR(NOW()) AS ?year) WHERE { }",
    ),
    Trap(
        "a store would change the literal",
        *("constant_values", "is_kept", always),
        'SELECT ?x (STR("01"^^xsd:integer) AS ?k) WHERE { ?x :p ?v }',
        static=":a :p 1 .",
    ),
    Trap(
        "a disjunction is not two filters",
        *("rewrites.split_filters", "conjuncts_of", _any_operands),
        "SELECT * WHERE { ?x :p ?v FILTER(!BOUND(?v) || BOUND(?x)) }",
        static=":a :p 1 .",
    ),
    Trap(
        "the sides of OPTIONAL are not inputs of a join",
        *("rewrites.order_joins", "join_operands", _both_sides),
        "SELECT * WHERE { { ?x :p ?v OPTIONAL { ?x :q ?w } } ?x :r ?k }",
        static=":a :p 1 ; :r 2 .",
    ),
    Trap(
        "groups that lie in several branches are not whole in any",
        *("rewrites.push_aggregates", "is_partitioned_by_branch", always),
        "SELECT ?x (COUNT(*) AS ?n) WHERE { { WINDOW :w0 { ?x :p ?v } } UNION { WINDOW :w1 { ?x :p 2 } } } GROUP BY ?x",
        streams=(":a :p 1 .", ":a :p 2 ."),
    ),
    Trap(
        "the minimum of an empty window is an error",
        *("rewrites.push_aggregates", "can_merge_empty_parts", always),
        "SELECT (MIN(?v) AS ?n) WHERE { { WINDOW :w0 { ?x :p ?v } } UNION { WINDOW :w1 { ?x :p ?v } } }",
        streams=(":a :p 1 .", ""),
    ),
    Trap(
        "rounded sums do not add up",
        *("rewrites.push_aggregates", "split_all", _rounded_splits),
        "SELECT ?x (SUM(?v) AS ?n) WHERE { { WINDOW :w0 { ?x :p ?v } } UNION { WINDOW :w1 { ?x :p ?v } } } GROUP BY ?x",
        streams=(":a :p 0.1e0 , 0.2e0 .", ":a :p 0.3e0 ."),
    ),
    Trap(
        "DISTINCT must see all values together",
        *("rewrites.push_aggregates", "split_all", _rounded_splits),
        "SELECT ?x (COUNT(DISTINCT ?v) AS ?n) "
        "WHERE { { WINDOW :w0 { ?x :p ?v } } UNION { WINDOW :w1 { ?x :p ?v } } } GROUP BY ?x",
        streams=(":a :p 1 , 2 .", ":a :p 2 ."),
    ),
    Trap(
        "the argument comes from the static side",
        *("rewrites.push_aggregates", "has_arguments_from_stream", always),
        "SELECT ?x (MIN(?w) AS ?n) WHERE { WINDOW :w0 { ?x :p ?v } ?x :q ?w } GROUP BY ?x",
        static=":a :q 7 .",
        streams=(":a :p 1 .", ""),
    ),
    Trap(
        "the static side may leave open what the stream binds",
        *("rewrites.narrow_static_parts", "has_all_variables", always),
        "SELECT * WHERE { WINDOW :w0 { ?x :p ?v FILTER(?v > 1) } { GRAPH :g1 { ?y :q ?u } OPTIONAL { ?y :r ?v } } }",
        graphs=(":b :q 5 .",),
        streams=(":a :p 2 .", ""),
    ),
    Trap(
        "what the stream leaves open the static side binds",
        *("rewrites.narrow_static_parts", "is_implied_by_filter", always),
        "SELECT * WHERE { WINDOW :w0 { ?x :p ?u OPTIONAL { ?x :q ?v } FILTER(!BOUND(?v)) } GRAPH :g1 { ?y :q ?v } }",
        graphs=(":b :q 5 .",),
        streams=(":a :p 2 .", ""),
    ),
    Trap(
        "EXISTS looks at the window",
        *("rewrites.narrow_static_parts", "is_implied_by_filter", always),
        "SELECT * WHERE { WINDOW :w0 { ?x :p ?v FILTER EXISTS { ?v :r :c } } GRAPH :g1 { ?y :q ?v } }",
        graphs=(":b :q :a .",),
        streams=(":a :p :a . :a :r :c .", ""),
    ),
    Trap(
        "NaN is a term like others, and equal to nothing",
        *("rewrites.narrow_static_parts", "is_equal_only_to_itself", always),
        "SELECT * WHERE { WINDOW :w0 { ?x :p ?v VALUES ?v { 'NaN'^^xsd:double } } GRAPH :g1 { ?y :q ?v } }",
        graphs=(":b :q 'NaN'^^<http://www.w3.org/2001/XMLSchema#double> .",),
        streams=(":a :p 'NaN'^^<http://www.w3.org/2001/XMLSchema#double> .", ""),
    ),
    Trap(
        "a variable that a sub-query hides is another one",
        *("rewrites.narrow_static_parts", "project_conditions", _all_of_them),
        "SELECT * WHERE { { SELECT ?v { WINDOW :w0 { ?x :p ?v FILTER(?x != :b) } } } GRAPH :g1 { ?x :q ?v } }",
        graphs=(":b :q 1 .",),
        streams=(":a :p 1 .", ""),
    ),
    Trap(
        "a promise of one branch is none of the other",
        *("rewrites.narrow_static_parts", "conditions_of_union", _all_of_both),
        "SELECT * WHERE { { WINDOW :w0 { ?x :p ?v FILTER(?v > 1) } } UNION { WINDOW :w1 { ?x :p ?v } } ?y :q ?v }",
        static=":b :q 1 .",
        streams=("", ":a :p 1 ."),
    ),
]
