"""Variables that can never be a literal: where the analysis must say so, and where it must not."""

from __future__ import annotations

import pytest
from pyoxigraph import Quad, Store

from headwater.algebra.build import plan_query
from headwater.algebra.non_literals import non_literal_variables
from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import SECOND, XSD, BlankNode, Element, Literal, NamedNode, Triple
from headwater.windows.settings import resolve_settings

EX = "http://example.org/"
INTEGER = NamedNode(XSD + "integer")
PATTERNS = {
    "?a :p ?b . ?b :q ?n": "ab",
    "?a ?p ?b": "ap",
    "{ ?a :p ?b } UNION { ?b :p ?n }": "a",
    "{ ?b :q ?a } UNION { ?b :p ?n }": "b",
    "?b :p ?n OPTIONAL { ?a :p ?b }": "ab",
    "?a :p ?b OPTIONAL { ?b :p ?n }": "a",
    "?x :p ?n OPTIONAL { ?a :q ?n }": "xa",
    "{ ?x :q ?y OPTIONAL { ?a :p ?x } } ?z :p ?a": "xz",
    "{ ?x :q ?y OPTIONAL { ?a :p ?x } } ?a :p ?z": "xa",
    "?a :p ?b MINUS { ?b :p ?n }": "a",
    "?a :p ?b BIND(?a AS ?c) BIND(?b AS ?d) BIND(STR(?a) AS ?e) BIND(:i AS ?f)": "acf",
    "?a :p ?b VALUES (?b ?c) { (:i :i) (UNDEF UNDEF) }": "ac",
    "?a :p ?b VALUES (?b ?c) { (:i :i) (:j 1) }": "ab",
    "{ SELECT ?b ?a WHERE { ?a :p ?b . ?c :q ?a } }": "a",
    "{ SELECT ?a (COUNT(*) AS ?n) (SAMPLE(?b) AS ?c) WHERE { ?a :p ?b } GROUP BY ?a }": "a",
    "{ SELECT ?k (COUNT(*) AS ?n) WHERE { ?a :p ?b } GROUP BY (?a AS ?k) }": "k",
    "{ SELECT ?k (COUNT(*) AS ?n) WHERE { ?a :p ?b } GROUP BY (?b AS ?k) }": "",
    "?a :p* ?b": "",
    "?a :p/:q ?b": "a",
    "GRAPH ?g { ?a :p ?b }": "ga",
    "SERVICE :x { ?a :p ?b }": "",
}
CONDITIONS = ("?x = ?y", "?x != ?y", "?y = ?x", "?x IN (?y, 1)", "?x NOT IN (?y)")
BODIES = (
    "?x :p ?v . ?y :q ?w",
    "?v :p ?x . ?w :q ?y",
    "?x :p ?v . ?w :q ?y",
    "{ { ?x :p ?v } UNION { ?v :p ?x } } ?w :q ?y",
    "{ ?w :q ?y } OPTIONAL { ?x :p ?w }",
    "{ ?w :q ?y } OPTIONAL { ?x :p ?w } { ?v :p ?x } UNION { ?v :r ?x }",
    "?v :p ?u BIND(?u AS ?x) ?w :q ?y",
    "?v :p ?u BIND(?v AS ?x) ?w :q ?y",
    "?w :q ?y VALUES ?x { :a 1 01 UNDEF }",
    "?w :q ?y VALUES ?x { :a :b }",
    "{ SELECT ?x WHERE { ?v :p ?x } } { SELECT ?y WHERE { ?y :q ?w } }",
    "{ SELECT (MAX(?v) AS ?x) WHERE { ?u :p ?v } } ?w :q ?y",
    "GRAPH :data { ?x :p ?v } ?w :q ?y",
    "GRAPH :data { ?v :p ?x } ?w :q ?y",
)


def term(text: str) -> NamedNode | BlankNode | Literal:
    if text[0].isdigit():
        return Literal(text, datatype=INTEGER)
    return BlankNode(text[1:]) if text[0] == "_" else NamedNode(EX + text)


def triples(text: str) -> list[Triple]:
    parts = [[term(word) for word in line.split()] for line in text.split(".")]
    return [Triple(s, p, o) for s, p, o in parts]  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_never_a_literal(pattern: str) -> None:
    plan = plan_query(parse(f"PREFIX : <{EX}> SELECT * WHERE {{ {pattern} }}"))
    found = {name for name in non_literal_variables(plan.root) if len(name) == 1}
    assert found == set(PATTERNS[pattern])


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_equality_is_that_of_the_definition(body: str, condition: str) -> None:
    """1 and 01 are equal and two terms; blank nodes and IRIs equal nothing but themselves."""
    text = f"""PREFIX : <{EX}> SELECT * FROM STREAM :s [RANGE 4s STEP 1s]
        WHERE {{ {body} FILTER({condition}) }}"""
    plan = plan_query(parse(text))
    static = Store()
    for one in triples("a p 1.a p 01.b p _n.b p a"):
        static.add(Quad(one.subject, one.predicate, one.object, NamedNode(EX + "data")))
    happened = ("a p 1.a q 01.b p b", "_n p 2.b q _n.a p a", "b p a.c q b.c q 1", "c p _n.c r 2.b r c")
    elements = [Element(second * SECOND, tuple(triples(line))) for second, line in enumerate(happened, 1)]

    def answers(make: type[KernelEvaluator] | type[ReferenceEvaluator]) -> list[object]:
        program = Program([RegisteredQuery(plan, resolve_settings(plan))], static, 0, make)
        return [(a.time, a.rows) for a in program.advance({EX + "s": elements}, ended=[EX + "s"]).answers]

    assert answers(KernelEvaluator) == answers(ReferenceEvaluator)
