"""The syntax tree of plain SPARQL 1.1, form by form and clause by clause."""

from __future__ import annotations

import pytest

from headwater.language.errors import QueryError
from headwater.language.expressions import (
    Aggregate,
    Constant,
    Exists,
    Expression,
    FunctionCall,
    Operation,
    VariableReference,
)
from headwater.language.parser import parse
from headwater.language.patterns import (
    Alternative,
    BindItem,
    FilterItem,
    GraphPattern,
    GroupItem,
    GroupPattern,
    InlineData,
    Inverse,
    Link,
    MinusPattern,
    NegatedSet,
    OneOrMore,
    OptionalPattern,
    Path,
    Sequence,
    ServicePattern,
    SubSelect,
    TriplePattern,
    TriplesBlock,
    UnionPattern,
    ZeroOrMore,
    ZeroOrOne,
)
from headwater.language.query import AskQuery, ConstructQuery, DescribeQuery, GroupKey, OrderKey, SelectQuery
from headwater.language.stream_clauses import Dialect, FromGraph
from headwater.terms.model import RDF, XSD, BlankNode, Literal, NamedNode, Variable

PREFIX = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
INTEGER = NamedNode(XSD + "integer")
X, Y, Z = (VariableReference(Variable(name)) for name in "xyz")


def iri(local: str) -> NamedNode:
    return NamedNode("http://e/" + local)


def number(value: int) -> Constant:
    return Constant(Literal(str(value), datatype=INTEGER))


def where(pattern: str) -> tuple[GroupItem, ...]:
    form = parse(f"{PREFIX} ASK {{ {pattern} }}").form
    assert isinstance(form, AskQuery)
    return form.where.items


def expression(text: str) -> Expression:
    (item,) = where(f"FILTER({text})")
    assert isinstance(item, FilterItem)
    return item.condition


def triples(pattern: str) -> list[tuple[str, ...]]:
    (block,) = where(pattern)
    assert isinstance(block, TriplesBlock)
    return [(str(each.subject), str(each.predicate), str(each.object)) for each in block.triples]


def select(text: str) -> SelectQuery:
    form = parse(PREFIX + text).form
    assert isinstance(form, SelectQuery)
    return form


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("?x || ?y && ?z", Operation("||", (X, Operation("&&", (Y, Z))))),
        ("?x + ?y * ?z", Operation("+", (X, Operation("*", (Y, Z))))),
        ("?x - ?y - ?z", Operation("-", (Operation("-", (X, Y)), Z))),
        ("?x-?y", Operation("-", (X, Y))),
        ("?x -1", Operation("-", (X, number(1)))),
        ("-1", number(-1)),
        ("- 1", Operation("unary -", (number(1),))),
        ("-?x", Operation("unary -", (X,))),
        ("!?x = ?y", Operation("=", (Operation("!", (X,)), Y))),
        ("?x < ?y + 1", Operation("<", (X, Operation("+", (Y, number(1)))))),
        ("(?x || ?y) && ?z", Operation("&&", (Operation("||", (X, Y)), Z))),
        ("?x IN (1, ?y)", Operation("IN", (X, number(1), Y))),
        ("?x NOT IN ()", Operation("NOT IN", (X,))),
        ("strlen(?x)", FunctionCall("STRLEN", (X,))),
        ("isURI(?x)", FunctionCall("ISIRI", (X,))),
        ("URI(?x)", FunctionCall("IRI", (X,))),
        ("coalesce()", FunctionCall("COALESCE", ())),
        ("rand()", FunctionCall("RAND", ())),
        (":f(DISTINCT ?x, 1)", FunctionCall(iri("f"), (X, number(1)), True)),
        (":f()", FunctionCall(iri("f"), ())),
        (":f", Constant(iri("f"))),
        ("EXISTS { }", Exists(GroupPattern(()))),
        ("NOT EXISTS { }", Exists(GroupPattern(()), True)),
    ],
)
def test_expressions(text: str, tree: Expression) -> None:
    assert expression(text) == tree


def test_comparisons_do_not_chain() -> None:
    with pytest.raises(QueryError):
        expression("?x = ?y = ?z")


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("'a'", Literal("a")),
        ("'a'@en", Literal("a", language="en")),
        ("'1'^^xsd:integer", Literal("1", datatype=INTEGER)),
        ("'''it's'''", Literal("it's")),
        ('"""say ""hi"" \n"""', Literal('say ""hi"" \n')),
        (r"'\t\n\r\b\f\"\'\\'", Literal("\t\n\r\b\f\"'\\")),
        (r"'\u00e9\U0001F600'", Literal("é😀")),
        (r"'\\u0041'", Literal("\\u0041")),
        ("``$Name$``", Literal("$Name$")),
        ("''$Name$''", Literal("$Name$")),
        ("''", Literal("")),
        ("1", Literal("1", datatype=INTEGER)),
        ("+1", Literal("+1", datatype=INTEGER)),
        ("-1.5", Literal("-1.5", datatype=NamedNode(XSD + "decimal"))),
        (".5e3", Literal(".5e3", datatype=NamedNode(XSD + "double"))),
        ("1E-2", Literal("1E-2", datatype=NamedNode(XSD + "double"))),
        ("TRUE", Literal("true", datatype=NamedNode(XSD + "boolean"))),
        ("<rel>", NamedNode("headwater:/rel")),
        (":a.b-c:d", iri("a.b-c:d")),
        (r":a\,b\%25", iri("a,b%25")),
        (":1%20x", iri("1%20x")),
        (":", iri("")),
        (r"<http://e/\u00e9>", iri("é")),
        ("_:b.1", BlankNode("b.1")),
    ],
)
def test_terms(text: str, term: object) -> None:
    (block,) = where(f"?s ?p {text} .")
    assert isinstance(block, TriplesBlock)
    assert block.triples == (TriplePattern(Variable("s"), Variable("p"), term),)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (":a", iri("a")),
        ("(:a)", iri("a")),
        ("a", NamedNode(RDF + "type")),
        ("^:a", Inverse(Link(iri("a")))),
        (":a/:b", Sequence(Link(iri("a")), Link(iri("b")))),
        (":a|:b/:c", Alternative(Link(iri("a")), Sequence(Link(iri("b")), Link(iri("c"))))),
        (":a*", ZeroOrMore(Link(iri("a")))),
        (":a+", OneOrMore(Link(iri("a")))),
        (":a?", ZeroOrOne(Link(iri("a")))),
        ("(^:a)*", ZeroOrMore(Inverse(Link(iri("a"))))),
        ("^:a*", Inverse(ZeroOrMore(Link(iri("a"))))),
        ("!:a", NegatedSet((iri("a"),), ())),
        ("!(:a|^:b|^a)", NegatedSet((iri("a"),), (iri("b"), NamedNode(RDF + "type")))),
        ("!()", NegatedSet((), ())),
    ],
)
def test_paths(text: str, path: Path | NamedNode) -> None:
    (block,) = where(f"?s {text} ?o")
    assert block == TriplesBlock((TriplePattern(Variable("s"), path, Variable("o")),))


def test_a_sign_that_touches_a_number_belongs_to_it() -> None:
    (block,) = where("?s :p+5")
    assert isinstance(block, TriplesBlock)
    assert block.triples[0].predicate == iri("p")
    assert block.triples[0].object == Literal("+5", datatype=INTEGER)


def test_lists_of_predicates_and_objects() -> None:
    assert triples("?s :p 1 , 2 ; :q ?o ;; .") == [
        ("?s", "<http://e/p>", f'"1"^^<{XSD}integer>'),
        ("?s", "<http://e/p>", f'"2"^^<{XSD}integer>'),
        ("?s", "<http://e/q>", "?o"),
    ]


def test_blank_node_properties_avoid_the_labels_of_the_text() -> None:
    assert triples("_:b0 :p [ :q ?o ]") == [("_:b0", "<http://e/p>", "_:b1"), ("_:b1", "<http://e/q>", "?o")]
    assert triples("[ :q ?o ] .") == [("_:b0", "<http://e/q>", "?o")]


def test_collections() -> None:
    rows = triples("?s :p (1 ?y)")
    assert rows[0] == ("?s", "<http://e/p>", "_:b0")
    assert [(subject, predicate.rpartition("#")[2]) for subject, predicate, _ in rows[1:]] == [
        ("_:b0", "first>"),
        ("_:b0", "rest>"),
        ("_:b1", "first>"),
        ("_:b1", "rest>"),
    ]
    assert triples("?s :p ()") == [("?s", "<http://e/p>", f"<{RDF}nil>")]


def test_groups() -> None:
    items = where(
        "?x :p ?y OPTIONAL { } { ?x :q ?z } UNION { } UNION { } { } MINUS { } GRAPH ?g { } SERVICE SILENT :e { } "
        "BIND(1 AS ?one) VALUES ?v { 1 UNDEF :c } VALUES (?a ?b) { (1 UNDEF) } FILTER(true) { SELECT * { } }"
    )
    empty = GroupPattern(())
    assert isinstance(items[0], TriplesBlock)
    assert isinstance(items[2], UnionPattern)
    assert len(items[2].branches) == 3
    one = Literal("1", datatype=INTEGER)
    assert items[1:2] + items[3:11] == (
        OptionalPattern(empty),
        empty,
        MinusPattern(empty),
        GraphPattern(Variable("g"), empty),
        ServicePattern(iri("e"), empty, True),
        BindItem(number(1), Variable("one")),
        InlineData((Variable("v"),), ((one,), (None,), (iri("c"),))),
        InlineData((Variable("a"), Variable("b")), ((one, None),)),
        FilterItem(Constant(Literal("true", datatype=NamedNode(XSD + "boolean")))),
    )
    assert items[11] == GroupPattern((SubSelect(SelectQuery(None, empty)),))


def test_select_and_modifiers() -> None:
    form = select(
        "SELECT DISTINCT ?x (SUM(DISTINCT ?y) AS ?sum) (GROUP_CONCAT(?y; separator='|') AS ?all) (COUNT(*) AS ?n) "
        "WHERE { ?x :p ?y } GROUP BY ?x (STR(?x) AS ?text) STRLEN(?y) HAVING (COUNT(?y) > 1) (true) "
        "ORDER BY DESC(?sum) ?x STR(?x) OFFSET 3 LIMIT 7 VALUES ?x { :a }"
    )
    assert form.distinct
    assert form.projections is not None
    assert [projection.expression for projection in form.projections] == [
        None,
        Aggregate("SUM", Y, True),
        Aggregate("GROUP_CONCAT", Y, False, "|"),
        Aggregate("COUNT", None),
    ]
    modifiers = form.modifiers
    assert modifiers.group_by == (
        GroupKey(X),
        GroupKey(FunctionCall("STR", (X,)), Variable("text")),
        GroupKey(FunctionCall("STRLEN", (Y,))),
    )
    assert len(modifiers.having) == 2
    descending = OrderKey(VariableReference(Variable("sum")), True)
    assert modifiers.order_by == (descending, OrderKey(X), OrderKey(FunctionCall("STR", (X,))))
    assert (modifiers.limit, modifiers.offset) == (7, 3)
    assert form.values == InlineData((Variable("x"),), ((iri("a"),),))


def test_average_is_another_spelling() -> None:
    form = select("SELECT (AVERAGE(?y) AS ?m) { ?x :p ?y }")
    assert form.projections is not None
    assert form.projections[0].expression == Aggregate("AVG", Y)


def test_construct_and_its_short_form() -> None:
    long = parse(PREFIX + "CONSTRUCT { ?s :p [] } FROM :g FROM NAMED :h WHERE { ?s :p ?o }")
    assert isinstance(long.form, ConstructQuery)
    assert len(long.form.template) == 1
    assert long.dataset == (FromGraph(iri("g")), FromGraph(iri("h"), True))
    short = parse(PREFIX + "CONSTRUCT WHERE { ?s :p ?o . }").form
    assert isinstance(short, ConstructQuery)
    assert short.where == GroupPattern((TriplesBlock(short.template),))


def test_describe_and_ask() -> None:
    described = parse(PREFIX + "DESCRIBE ?x :a WHERE { ?x :p ?y } LIMIT 1").form
    assert isinstance(described, DescribeQuery)
    assert described.terms == (Variable("x"), iri("a"))
    assert parse(PREFIX + "DESCRIBE :a").form == DescribeQuery((iri("a"),), None)
    assert parse(PREFIX + "DESCRIBE * { }").form == DescribeQuery(None, GroupPattern(()))
    assert parse("ASK { }").form == AskQuery(GroupPattern(()))


def test_prologue_and_base() -> None:
    query = parse("BASE <http://a/b/c> PREFIX x: <d/> BASE <../e/> PREFIX y: <f> ASK { x:1 y:2 <#3> }")
    assert query.prefixes == (("x", "http://a/b/d/"), ("y", "http://a/e/f"))
    assert query.base == "http://a/e/"
    assert isinstance(query.form, AskQuery)
    (block,) = query.form.where.items
    assert isinstance(block, TriplesBlock)
    assert [str(term) for term in (block.triples[0].subject, block.triples[0].object)] == [
        "<http://a/b/d/1>",
        "<http://a/e/#3>",
    ]
    assert parse("ASK FROM <g> { }", base="http://b/x").dataset == (FromGraph(NamedNode("http://b/g")),)


def test_a_prefix_may_be_declared_again() -> None:
    query = parse("PREFIX x: <http://1/> PREFIX x: <http://2/> ASK FROM x:g { }")
    assert query.dataset == (FromGraph(NamedNode("http://2/g")),)


def test_comments_and_codepoint_escapes_in_names() -> None:
    text = "# a comment { \nPREFIX : <http://e/> ASK { # not } here\n ?\\u0078 :\\u0070 '#' }"
    assert parse(text).form == parse(PREFIX + "ASK { ?x :p '#' }").form


@pytest.mark.parametrize(
    "text",
    [
        "PREFIX stream: <http://e/> SELECT ?select { ?select stream:range stream:stream }",
        "PREFIX range: <http://e/> PREFIX s: <http://s/> SELECT ?s { ?s range:window 5 ; s:s ?step }",
        "PREFIX a: <http://e/> select * where { ?x a a:a ; a:b ?y }",
    ],
)
def test_keywords_are_not_reserved(text: str) -> None:
    assert parse(text).dialect is Dialect.RSPQL
