"""Random queries over random data: all operators, expressions that err, variables that may be unbound.

A query is made from a seed, so that a number is enough to see it again. Terms, predicates and variables are few:
patterns meet, joins find something, and equal triples come twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from pyoxigraph import Quad, Store

from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryPlan
from headwater.language.errors import QueryError
from headwater.language.parser import parse
from headwater.terms.model import SECOND, XSD, BlankNode, Element, Literal, NamedNode, Triple
from headwater.terms.stored_forms import to_stored_quad
from headwater.windows.settings import Content, Options, QuerySettings, resolve_settings

EX = "http://example/"
STREAMS = (EX + "s0", EX + "s1")
VARIABLES = ("x", "y", "v", "w", "u")
SUBJECTS = ("x", "y")
PREDICATES = ("p", "q")
RESOURCES = ("a", "a", "b", "b", "c")
VALUES = (
    "1",
    "2",
    "3",
    '"x"',
    '"y"',
    '"x"@en',
    '"01"^^xsd:integer',
    "1.0",
    "2e0",
    "true",
    '"2"',
    '"2020-02-29"^^xsd:date',
)
COMPARISONS = ("=", "!=", "<", ">", "<=", ">=")
PREFIXES = f"PREFIX : <{EX}> PREFIX xsd: <{XSD}> "


def typed(text: str, name: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + name))


OBJECTS = (
    *(typed(number, "integer") for number in ("1", "1", "1", "2", "2", "3", "01")),
    *(Literal("x") for _ in range(2)),
    typed("1.0", "decimal"),
    typed("2", "double"),
    Literal("x"),
    Literal("y"),
    Literal("x", language="en"),
    typed("true", "boolean"),
    *(typed(text, "date") for text in ("2020-02-29", "2020-02-29Z", "2020-03-03Z")),
)


@dataclass(frozen=True)
class Case:
    """A query, how its windows are read, and what there is to read."""

    seed: int
    text: str
    content: Content
    static: tuple[Quad, ...]
    elements: tuple[tuple[Element, ...], tuple[Element, ...]]

    def plan(self) -> QueryPlan:
        return plan_query(parse(self.text), streams=STREAMS)

    def settings(self, plan: QueryPlan) -> QuerySettings:
        return resolve_settings(plan, Options(content=self.content, t0=0))

    def store(self) -> Store:
        store = Store()
        for name in ("g1", "g2"):
            store.add_graph(NamedNode(EX + name))
        store.extend(self.static)
        return store

    def streams(self) -> dict[str, list[Element]]:
        return dict(zip(STREAMS, map(list, self.elements), strict=True))


class Maker:
    """Makes one case. `depth` bounds how groups nest."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self._fresh = 0
        self._near: list[str] = []
        self.csparql = self.random.random() < 0.2
        self.timed = self.csparql and self.random.random() < 0.2

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def maybe(self, share: float) -> bool:
        return self.random.random() < share

    def fresh(self) -> str:
        self._fresh += 1
        return f"?n{self._fresh}"

    def variable(self) -> str:
        """Mostly one of the patterns near by."""
        return "?" + self.one(*self._near) if self._near and self.maybe(0.85) else "?" + self.one(*VARIABLES)

    def variable_of(self, *usual: str) -> str:
        """Mostly one that fits the place, so that patterns meet; now and then any."""
        return "?" + self.one(*(usual if self.maybe(0.92) else VARIABLES))

    def triple(self) -> str:
        subject = self.variable_of(*SUBJECTS) if self.maybe(0.92) else ":" + self.one(*RESOURCES)
        predicate = ":" + self.one(*PREDICATES) if self.maybe(0.93) else "?" + self.one("w", "u", "k")
        if self.maybe(0.05):
            predicate = self.one(":p*", ":p+", ":p/:q", "^:p", ":p|:q", ":p?")
        kind = self.random.random()
        if kind < 0.88:
            object_ = self.variable_of("v", "w", "u", "y")
        else:
            object_ = ":" + self.one(*RESOURCES) if kind < 0.93 else self.one("1", QUOTED, *VALUES)
        return f"{subject} {predicate} {object_} ."

    def triples(self) -> str:
        return " ".join(self.triple() for _ in range(self.random.choice((1, 1, 1, 1, 2, 2, 3))))

    def group(self, depth: int, scope: str = "") -> str:
        """The content of a group; `scope` is where its patterns are matched by default."""
        parts = [self.source(depth) if scope == "" and self.maybe(0.7) else self.triples()]
        for _ in range(self.random.choice((0, 0, 1, 1, 2)) if depth else 0):
            self.look_at(parts)
            parts.append(self.item(depth - 1, scope))
        self.look_at(parts)
        if self.maybe(0.45 if depth else 0.2):
            parts.append(f"FILTER({self.condition(2, depth)})")
        self.look_at(parts)
        return " ".join(parts)

    def look_at(self, parts: list[str]) -> None:
        self._near = [name for name in re.findall(r"\?(\w+)", " ".join(parts)) if name in VARIABLES]

    def source(self, depth: int) -> str:
        inner = self.group(depth - 1, "inside") if depth and self.maybe(0.5) else self.triples()
        name = self.one(
            "GRAPH :g1", "GRAPH :g1", "GRAPH :g2", "GRAPH ?g", "GRAPH ?g" if self.maybe(0.7) else "GRAPH ?x"
        )
        if not self.csparql and self.maybe(0.7):
            name = self.one("WINDOW :w0", "WINDOW :w0", "WINDOW :w1", "WINDOW ?g")
        return f"{name} {{ {inner} }}"

    def item(self, depth: int, scope: str) -> str:
        kind = self.random.random()
        if kind < 0.25:
            return f"OPTIONAL {{ {self.group(depth, scope)} }}"
        if kind < 0.37:
            return f"{{ {self.group(depth, scope)} }} UNION {{ {self.group(depth, scope)} }}"
        if kind < 0.45:
            return f"MINUS {{ {self.group(depth, scope)} }}"
        if kind < 0.55:
            name = self.fresh() if self.maybe(0.7) else self.variable()
            return f"BIND({self.value(2)} AS {name})"
        if kind < 0.62:
            rows = " ".join(self.one(*VALUES, ":a", ":b", "UNDEF") for _ in range(self.random.choice((1, 2, 3))))
            return f"VALUES {self.variable()} {{ {rows} }}"
        if kind < 0.72:
            return f"{{ {self.select(depth, scope)} }}"
        if kind < 0.85:
            return self.source(depth) if scope == "" else f"{{ {self.group(depth, scope)} }}"
        return self.triples()

    def select(self, depth: int, scope: str = "") -> str:
        where = self.group(depth, scope)
        names = list(dict.fromkeys(self.variable()[1:] for _ in range(self.random.choice((1, 2, 3)))))
        shown = " ".join("?" + name for name in names)
        tail = ""
        if self.maybe(0.3):
            return self.grouped(where, names)
        if self.maybe(0.25):
            shown += f" ({self.value(2)} AS {self.fresh()})"
        head = self.one("", "", "", "DISTINCT ", "REDUCED ")
        # Whether REDUCED removes anything is left open, so nothing may hang on it.
        head = "DISTINCT " if head == "REDUCED " and self.maybe(0.9) else head
        if self.maybe(0.2):
            tail = f" ORDER BY {self.one('', 'DESC')}({self.value(1)})"
        if self.maybe(0.2):
            tail += f" LIMIT {self.random.choice((0, 1, 2, 3, 4, 5))}"
        return f"SELECT {head}{shown} WHERE {{ {where} }}{tail}"

    def grouped(self, where: str, names: list[str]) -> str:
        keys = ["?" + name for name in names[: self.random.choice((0, 1, 1, 2))]]
        named = [(self.aggregate(), self.fresh()) for _ in range(self.random.choice((1, 1, 2)))]
        shown = " ".join([*keys, *(f"({aggregate} AS {name})" for aggregate, name in named)])
        by = f" GROUP BY {' '.join(keys)}" if keys else ""
        if keys and self.maybe(0.15):
            key = self.fresh()
            by += f" ({self.value(1)} AS {key})"
        having = ""
        if self.maybe(0.35):
            tested = self.one(*keys) if keys and self.maybe(0.6) else self.aggregate()
            having = f" HAVING({tested} {self.one(*COMPARISONS)} {self.one(*VALUES, ':a')})"
        return f"SELECT {shown} WHERE {{ {where} }}{by}{having}"

    def aggregate(self) -> str:
        kind = self.random.random()
        if kind < 0.25:
            return "COUNT(*)"
        if kind < 0.3:
            return "COUNT(DISTINCT *)"
        name = self.one("COUNT", "COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
        return (
            f"{name}({'DISTINCT ' if self.maybe(0.15) else ''}{self.value(1) if self.maybe(0.2) else self.variable()})"
        )

    def value(self, depth: int) -> str:
        kind = self.random.random()
        if depth == 0 or kind < 0.45:
            return self.variable() if self.maybe(0.7) else self.one(*VALUES, ":a", ":b")
        inner = self.value(depth - 1)
        if kind < 0.6:
            return f"({inner} {self.one('+', '-', '*', '/')} {self.value(depth - 1)})"
        if kind < 0.7:
            return f"COALESCE({inner}, {self.value(depth - 1)})"
        if kind < 0.8:
            return f"IF({self.condition(depth - 1, 0)}, {inner}, {self.value(depth - 1)})"
        if kind < 0.95:
            return f"{self.one('STR', 'DATATYPE', 'ISIRI', 'ABS', 'STRLEN', 'LANG', 'xsd:integer')}({inner})"
        if self.timed:
            return f"timestamp({self.variable()})"
        return self.one("(1 + 1)", "STRLEN(STRUUID())", 'CONCAT("x", "")', "(1 / 0)", "ISBLANK(BNODE())")

    def condition(self, depth: int, patterns: int) -> str:
        kind = self.random.random()
        if depth and kind < 0.3:
            joined = self.one("&&", "&&", "||")
            return f"({self.condition(depth - 1, patterns)} {joined} {self.condition(depth - 1, patterns)})"
        if depth and kind < 0.36:
            return f"!({self.condition(depth - 1, patterns)})"
        if kind < 0.42:
            return f"{self.variable_of(*SUBJECTS)} = {self.one(*SOME)}"
        if kind < 0.47:
            return f"{self.variable()} = {self.one(':a', ':a', QUOTED, QUOTED, '1', '01')}"
        if kind < 0.49:
            return f"?g = {self.one(':g1', ':w0')}"
        if kind < 0.51:
            return f"sameTerm({self.variable()}, {self.one(':a', ':b', '1', QUOTED)})"
        if kind < 0.57:
            return f"{self.variable()} != {self.one(':a', QUOTED, '1')}"
        if kind < 0.68:
            return f"{self.one('', '', '!')}BOUND({self.variable()})"
        if kind < 0.72:
            return f"{self.variable()} {self.one('IN', 'NOT IN')} ({self.value(0)}, {self.value(0)})"
        if patterns and not self.timed and kind < 0.82:
            return f"{self.one('', 'NOT ')}EXISTS {{ {self.group(patterns - 1, self.one('', 'inside'))} }}"
        if kind < 0.86:
            return self.one("RAND() < 2", "RAND() < 2", "1 = 1", "1 > 2", "1 / 0 = 1", "true", "1 < 3", "NOW() > 1")
        return f"{self.value(1)} {self.one(*COMPARISONS, '!=', '>=')} {self.value(1)}"

    def query(self) -> str:
        if self.csparql:
            content = f"FROM STREAM <{STREAMS[0]}> [RANGE 10s TUMBLING] FROM NAMED :g1 FROM NAMED :g2"
        else:
            windows = (f"FROM NAMED WINDOW :w{n} ON <{s}> [RANGE 10s TUMBLING]" for n, s in enumerate(STREAMS))
            content = " ".join(windows)
        kind = self.random.random()
        text = self.select(2) if kind < 0.45 else f"SELECT * WHERE {{ {self.group(3)} }}"
        if kind > 0.7:
            text = self.shaped()
        head, where, tail = text.partition(" WHERE ")
        clause = ""
        if self.csparql and self.maybe(0.4) and "GROUP BY" not in tail and "(" not in head:
            head, clause = self.aggregate_clause(head)
        return f"{PREFIXES}{head} {content}{where}{tail}{clause}"

    def shaped(self) -> str:
        """What pure chance makes too seldom: a grouping over branches or over a join, a filter behind OPTIONAL, one
        that two static graphs decide together."""
        first, second = (
            self.place(f"?x :p ?v {self.limits()}"),
            self.place(f"?x :q ?{self.one('v', 'w')} {self.limits()}"),
        )
        match self.random.randrange(5):
            case 0:
                labels = ("BIND(:a AS ?k)", f"BIND({self.one(':a', ':b')} AS ?k)") if self.maybe(0.4) else ("", "")
                branches = f"{{ {first} {labels[0]} }} UNION {{ {second} {labels[1]} }}"
                return self.grouped(branches, ["k" if labels[0] and self.maybe(0.8) else "x", "v"])
            case 1:
                return self.grouped(f"{first} {second}", self.random.sample(("x", "v", "w"), 2))
            case 2:
                optional = f"{first} OPTIONAL {{ {second} }} FILTER({self.condition(1, 0)})"
                return f"SELECT * WHERE {{ {optional} }}"
            case 3:
                static = f"GRAPH :g1 {{ ?x :q ?w }} GRAPH :g2 {{ {self.triple()} ?x :p ?u }}"
                stream = self.place("?x :p ?v") if self.csparql else "WINDOW :w0 { ?x :p ?v }"
                tests = f"?w {self.one(*COMPARISONS)} {self.one('?u', '?u', '?v')} && {self.condition(1, 0)}"
                return f"SELECT * WHERE {{ {stream} {static} FILTER({tests}) }}"
        nested = f"{first} {{ SELECT ?x ?w {{ {second} BIND({self.value(1)} AS ?k) }} }} FILTER({self.condition(1, 1)})"
        return f"SELECT {self.one('?x', '*', 'DISTINCT ?x ?v')} WHERE {{ {nested} }}"

    def place(self, inner: str) -> str:
        window = "GRAPH ?g" if self.csparql else self.one("WINDOW :w0", "WINDOW :w1")
        return self.one(f"{window} {{ {inner} }}", f"{window} {{ {inner} }}", f"GRAPH :g1 {{ {inner} }}", inner)

    def limits(self) -> str:
        self._near = ["x", "v"]
        return f"FILTER({self.condition(1, 0)})" if self.maybe(0.3) else self.one("", "", ". ?x :q ?u")

    def aggregate_clause(self, head: str) -> tuple[str, str]:
        name, group = self.fresh(), self.variable()
        function = self.one("COUNT", "SUM", "MIN", "MAX", "AVG")
        test = f" FILTER({self.one(group, name)} {self.one(*COMPARISONS)} {self.value(0)})" if self.maybe(0.5) else ""
        shown = head if "*" in head else f"{head} {name}"
        if self.maybe(0.5):
            shown = f"SELECT DISTINCT {self.one('', group)} {name}"
        return shown, f" AGGREGATE {{ ({name}, {function}({self.variable()}), {{{group}}}){test} }}"

    def data(self, most: int) -> list[Triple]:
        found: list[Triple] = []
        if self.maybe(0.03):
            return found
        for _ in range(self.random.randint(most // 2, most)):
            subject = self.random.choice(RESOURCES)
            predicate = NamedNode(EX + self.random.choice(PREDICATES))
            found.append(Triple(NamedNode(EX + subject), predicate, self.object()))
        return found

    def object(self) -> Literal | NamedNode | BlankNode:
        if self.maybe(0.03):
            return BlankNode("b0")
        return self.random.choice(OBJECTS) if self.maybe(0.5) else NamedNode(EX + self.random.choice(RESOURCES))

    def case(self) -> Case:
        static = [Quad(t.subject, t.predicate, t.object) for t in self.data(13)]
        for name in ("g1", "g2"):
            static += [Quad(t.subject, t.predicate, t.object, NamedNode(EX + name)) for t in self.data(13)]
        elements = []
        for _ in STREAMS:
            triples = self.data(16)
            elements.append(tuple(Element((i // 2 + 1) * SECOND, (t,), None, (i,)) for i, t in enumerate(triples)))
        content = self.random.choice((Content.SET, Content.SET, Content.BAG))
        quads = tuple(map(to_stored_quad, static))
        return Case(self.seed, self.query(), content, quads, (elements[0], elements[1]))


QUOTED = '"x"'
SOME = (":a", ":a", ":b")


def case_of(seed: int) -> Case:
    """The case of a seed; where a text happens to be wrong, the first of a row of others that is right."""
    while True:
        case = Maker(seed).case()
        try:
            case.plan()
        except QueryError:
            seed += 1_000_003
        else:
            return case
