"""Random continuous queries with every construct that the kernel has, in all three languages, and random streams.

A query is made as text, so that parser and planner take part. Variables come from a small pool and data from a small
universe: joins meet, OPTIONAL and UNION leave variables unbound, filters have type errors, triples repeat.

Everything is drawn from a `random.Random`, so that a number is a case and thousands are made in a second; hypothesis'
own `st.randoms()` is one too, for a failing case that should be small.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from pyoxigraph import Quad, Store

from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryPlan
from headwater.language.parser import parse
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.model import XSD, Element, Literal, NamedNode, Triple
from headwater.terms.stored_forms import to_stored_quad
from headwater.terms.timed_graphs import GENERATED_AT_TIME, graph_time
from headwater.windows.model import Bounds
from headwater.windows.settings import Content, Options, QuerySettings, Report, resolve_settings

EX = "http://example.org/"
STREAMS = (EX + "s0", EX + "s1")
GRAPHS = (EX + "g0", EX + "g1")
NAMES = (None, EX + "n0", EX + "n1", EX + "a", "_:b0")
"""The names of graphs in streams."""
UNIT = 250_000
"""A quarter of a second: times with and without a fraction of a millisecond are in between."""

INTEGER, DECIMAL, DOUBLE = (NamedNode(XSD + kind) for kind in ("integer", "decimal", "double"))
RESOURCES = [NamedNode(EX + name) for name in "ab"]
MIXED_LITERALS = (Literal("10", datatype=INTEGER), Literal("1x"))
"""2 < 10 by value; 10 and 2 have no order with "1x", and by their texts "1x" would be between them."""
OBJECTS: list[NamedNode | Literal] = [
    *(Literal(text, datatype=INTEGER) for text in ("1", "2", "02")),
    *RESOURCES,
    Literal("1.5", datatype=DECIMAL),
    Literal("2.0E0", datatype=DOUBLE),
    Literal("one"),
    *(Literal(text, datatype=NamedNode(XSD + "date")) for text in ("2020-02-29", "2020-02-29Z")),
    *MIXED_LITERALS,
]
WRITTEN = ["1", "2", ":a", ":b", "1.5", '"one"', f'"2020-02-29"^^<{XSD}date>']
PREDICATES = [NamedNode(EX + name) for name in "pqr"]


def a_triple(random: Random) -> Triple:
    return Triple(
        random.choice(RESOURCES),
        random.choice([*PREDICATES, PREDICATES[0]]),
        random.choice([*OBJECTS, *OBJECTS[:4]]),
    )


@dataclass
class Writer:
    """Writes one query. `language` says where a pattern can be matched, `timed` whether timestamp() may stand in it."""

    random: Random
    language: str
    timed: bool = False
    fresh: int = 0
    bound: list[str] = field(default_factory=lambda: ["?x", "?y", "?v", "?w"])
    named: bool = False
    """Whether GRAPH may stand in the clause of a window."""
    graph_times: bool = False
    """Whether the times of graphs may stand in patterns."""
    inside: bool = False
    """Whether the pattern stands inside a window or graph already."""

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def seldom(self, times: int = 4) -> bool:
        """True once in so many times."""
        return self.random.randrange(times) == times - 1

    def variable(self) -> str:
        return self.pick(*self.bound)

    def new_variable(self) -> str:
        self.fresh += 1
        return f"?n{self.fresh}"

    def block(self) -> str:
        """One or two triple patterns."""
        return " . ".join(self.triple() for _ in range(2 if self.seldom(3) else 1)) + " ."

    def triple(self) -> str:
        subject = self.pick("?x", "?x", "?x", "?x", "?y", ":a")
        object_ = self.pick("?v", "?v", "?v", "?w", "?w", "?y", "1")
        return f"{subject} {self.predicate()} {object_}"

    def predicate(self) -> str:
        if self.graph_times and self.seldom(5):
            return self.pick(f"<{GENERATED_AT_TIME.value}>", f"^<{GENERATED_AT_TIME.value}>")
        paths = ["^:p", ":p|:q", ":p/:q", "!(:p|^:q)", "!:p", "(:p|^:q)/:r"]
        return self.pick(*paths) if self.seldom(8) else self.pick(":p", ":p", ":q", ":r", "?k")

    def placed(self, depth: int) -> str:
        """A pattern somewhere: in a window, a stream, a static graph or the default graph; in a graph of a window."""
        if self.inside:
            if not self.named or not self.seldom(2):
                return self.block()
            body = self.group(depth - 1) if depth > 0 and self.seldom(2) else self.block()
            return f"GRAPH {self.pick('?h', '?h', '?x', ':n0', ':n1')} {{ {body} }}"
        where = {
            "csparql": ["", "", "", "GRAPH :s0", "GRAPH :s1", "GRAPH ?g", "GRAPH :g0"],
            "rspql": ["WINDOW :w0", "WINDOW :w1", "WINDOW :w0", "WINDOW ?g", "", "GRAPH :g0", "GRAPH ?g"],
            "cqels": [f"STREAM :s0 {self.window()}", f"STREAM :s1 {self.window()}", f"STREAM ?g {self.window()}", ""],
        }[self.language]
        place = self.pick(*where)
        if not place:
            return self.block()
        self.inside = True
        if depth > 0 and self.seldom(3):
            body = self.group(depth - 1)
        else:
            body = self.placed(depth - 1) if self.named else self.block()
        self.inside = False
        return f"{place} {{ {body} }}"

    def window(self) -> str:
        return self.pick("[RANGE 2s]", "[NOW]", "[TRIPLES 4]", "[RANGE 2s SLIDE 1s]", "[RANGE 750ms]")

    def group(self, depth: int) -> str:
        """The inside of a group graph pattern."""
        parts = [self.placed(depth)]
        for _ in range(self.random.randrange(3) if depth > 0 else 0):
            parts.append(self.item(depth - 1))
        if self.seldom(4):
            parts.append(f"FILTER({self.condition(depth)})")
        return " ".join(parts)

    def item(self, depth: int) -> str:
        match self.pick("join", "optional", "union", "minus", "exists", "bind", "values", "select", "group"):
            case "join":
                return self.placed(depth)
            case "optional":
                return f"OPTIONAL {{ {self.group(depth)} }}"
            case "union":
                return f"{{ {self.group(depth)} }} UNION {{ {self.group(depth)} }}"
            case "minus":
                return f"MINUS {{ {self.group(depth)} }}"
            case "exists":
                return f"FILTER {self.exists(depth)}"
            case "bind":
                name = self.new_variable()
                text = f"BIND({self.value(depth)} AS {name})"
                self.bound.append(name)
                return text
            case "values":
                rows = " ".join(f"({self.pick(*WRITTEN, 'UNDEF')} {self.pick(*WRITTEN[:4], 'UNDEF')})" for _ in "ab")
                return f"VALUES (?v {self.pick('?y', '?w')}) {{ {rows} }}"
            case "select":
                return f"{{ {self.sub_select(depth)} }}"
        return f"{{ {self.group(depth)} }}"

    def exists(self, depth: int) -> str:
        kept = list(self.bound)
        text = f"{self.pick('EXISTS', 'NOT EXISTS')} {{ {self.group(depth)} }}"
        self.bound = kept
        return text

    def sub_select(self, depth: int) -> str:
        kept, self.bound = self.bound, ["?x", "?y", "?v", "?w"]
        text = self.select(depth, nested=True)
        self.bound = kept
        return text

    def condition(self, depth: int) -> str:
        kinds = ["compare", "compare", "bound", "now", "&&", "||", "!", "exists", "in", "text"]
        kinds += ["time"] * (4 if self.timed else 0)
        match self.pick(*kinds):
            case "compare":
                return f"{self.value(0)} {self.pick('=', '!=', '<', '>=')} {self.value(0)}"
            case "bound":
                return f"{self.pick('', '!')}BOUND({self.variable()})"
            case "now":
                return 'NOW() > "1970-01-01T00:00:01.5Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
            case "time":
                return f"{self.time()} {self.pick('<', '>=', '=')} {self.pick('1000', '1500', self.time())}"
            case "&&" | "||" as operator if depth > 0:
                return f"({self.condition(depth - 1)}) {operator} ({self.condition(depth - 1)})"
            case "!" if depth > 0:
                return f"!({self.condition(depth - 1)})"
            case "exists" if depth > 0:
                return self.exists(depth - 1)
            case "in":
                return f"{self.variable()} {self.pick('IN', 'NOT IN')} (1, :a, 'one', ?w)"
            case "text":
                return f"CONTAINS(STR({self.variable()}), 'o')"
        return f"{self.variable()} = {self.pick(*WRITTEN)}"

    def time(self) -> str:
        return f"timestamp({self.variable()}{self.pick('', '', ', :s0', ', :s1', ', ?g')})"

    def value(self, depth: int) -> str:
        kinds = ["variable", "variable", "constant", "sum", "text", "if", "now", "exists"]
        kinds += ["time"] * (4 if self.timed else 0)
        match self.pick(*kinds):
            case "constant":
                return self.pick(*WRITTEN)
            case "sum":
                return f"({self.variable()} + {self.pick('1', '1.5', self.variable())})"
            case "text":
                return f"CONCAT(STR({self.variable()}), '!')"
            case "if":
                return f"COALESCE({self.variable()} * 2, {self.variable()})"
            case "now":
                return f"{self.pick('SECONDS', 'STR')}(NOW())"
            case "time":
                return self.time()
            case "exists" if depth > 0:
                return f"({self.exists(depth - 1)})"
        return self.variable()

    def select(self, depth: int, *, nested: bool = False) -> str:
        """A SELECT query without its dataset clauses: `WHERE` and what follows, the head in front."""
        where = self.group(depth)
        is_grouped = self.seldom(3)
        head, tail = self.grouped(depth) if is_grouped else self.listed(depth)
        if "GRAPH ?h" in where and not is_grouped and head != "*" and "?h" not in head.split():
            head += " ?h"
        distinct = self.pick("", "", "DISTINCT ", "REDUCED ")
        dataset = "" if nested else "@DATASET@ "
        if self.language == "csparql" and not nested and head[0] == "?" and "(" not in head and self.seldom(3):
            where, head, tail = f"?x :p ?v . {where}", f"{head} ?sum", self.aggregate()
        return f"SELECT {distinct}{head} {dataset}WHERE {{ {where} }}{tail}{self.cut(nested)}"

    def aggregate(self) -> str:
        """C-SPARQL's AGGREGATE, which adds ?sum to each row."""
        call = self.pick("COUNT", "SUM(?v)", "MAX(?v)")
        keys = self.pick("?x", "?v", "?x, ?v")
        condition = f" FILTER(?sum {self.pick('>', '<')} {self.pick('1', '2', '?v')})" if self.seldom() else ""
        return f" AGGREGATE {{ (?sum, {call}, {{{keys}}}){condition} }}"

    def listed(self, depth: int) -> tuple[str, str]:
        if self.seldom(6):
            return "*", ""
        head = self.random.sample(self.bound, self.random.randint(1, 3))
        if self.seldom():
            head.append(f"({self.value(depth)} AS {self.new_variable()})")
        return " ".join(head), ""

    def grouped(self, depth: int) -> tuple[str, str]:
        keys = self.random.sample(self.bound[:4], self.random.randrange(3))
        argument = self.variable()
        call = self.pick("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "COUNT(*)", "COUNT(DISTINCT *)", "GROUP_CONCAT")
        distinct = self.pick("", "DISTINCT ")
        text = call if call.endswith(")") else f"{call}({distinct}{argument})"
        having = f" HAVING (COUNT(*) {self.pick('>', '<')} {self.pick('1', '2')})" if self.seldom() else ""
        by = f" GROUP BY {' '.join(keys)}" if keys else ""
        return f"{' '.join(keys)} ({text} AS {self.new_variable()})", by + having

    def cut(self, nested: bool) -> str:
        """ORDER BY, LIMIT and OFFSET."""
        order = f" ORDER BY {self.pick('?x', 'DESC(?x)')} ?v" if self.seldom() else ""
        limit = f" LIMIT {self.random.randint(1, 3)}" if self.seldom(2 if nested else 5) else ""
        return order + limit + (" OFFSET 1" if self.seldom(6) else "")

    def query(self, depth: int) -> str:
        """A whole query, its dataset clauses at the marks."""
        kind = self.pick("select", "select", "select", "select", "ask", "construct", "describe")
        match kind:
            case "ask":
                return f"ASK @DATASET@ WHERE {{ {self.group(depth)} }}"
            case "construct":
                return f"CONSTRUCT {{ ?x :of ?v . _:b :is ?x }} @DATASET@ WHERE {{ {self.group(depth)} }}"
            case "describe":
                return f"DESCRIBE ?x ?v @DATASET@ WHERE {{ {self.group(depth)} }}"
        return self.select(depth)


@dataclass(frozen=True)
class Case:
    """A query, how it runs, and what it reads."""

    text: str
    options: Options
    elements: dict[str, tuple[Element, ...]]
    quads: tuple[Quad, ...]

    def plan(self) -> tuple[QueryPlan, QuerySettings]:
        plan = plan_query(parse(self.text), streams=STREAMS)
        return plan, resolve_settings(plan, self.options)

    def store(self) -> Store:
        store = Store()
        for graph in GRAPHS:
            store.add_graph(NamedNode(graph))
        store.extend(map(to_stored_quad, self.quads))
        return store


def dataset(random: Random, language: str) -> str:
    specs = ["[RANGE 2s STEP 1s]", "[RANGE 1s TUMBLING]", "[TRIPLES 5]", "[RANGE 1500ms STEP 1s]"]
    if language == "csparql":
        named = ["", random.choice(["", "NAMED "])]
        return " ".join(f"FROM {named[i]}STREAM :s{i} {random.choice(specs)}" for i in range(2))
    if language == "rspql":
        streams = [0, random.randrange(2)]
        return " ".join(f"FROM NAMED WINDOW :w{i} ON :s{s} {random.choice(specs)}" for i, s in enumerate(streams))
    return ""


def a_stream(random: Random, graphs: tuple[str | None, ...] = (), *, graph_times: bool = False) -> tuple[Element, ...]:
    times = sorted(
        random.choice([random.randrange(12) * UNIT, 1_000_000, 1_000_250]) for _ in range(random.randint(4, 9))
    )
    return tuple(
        an_element(random, time, graphs, position, graph_times=graph_times) for position, time in enumerate(times)
    )


def an_element(
    random: Random, time: int, graphs: tuple[str | None, ...], position: int, *, graph_times: bool
) -> Element:
    """An element of some triples; a named one may have none, and sometimes it says its time itself."""
    graph = random.choice(graphs) if graphs else None
    triples = [a_triple(random) for _ in range(random.randint(1 if graph is None else 0, 5))]
    if graph_times and graph is not None and not graph.startswith("_:") and random.randrange(4) == 0:
        triples.append(graph_time(NamedNode(graph), random.choice([time, 0])))
    return Element(time, tuple(triples), graph, (position,))


def a_case(random: Random, depth: int = 2, *, named: bool = False) -> Case:
    """A query with its streams and data; `named` for streams of named graphs and queries that read them."""
    language = random.choice(["csparql", "rspql", "cqels"])
    timed = random.randrange(2) == 1
    graph_times = named and random.randrange(2) == 0
    writer = Writer(random, language, timed, named=named, graph_times=graph_times)
    if named:
        writer.bound.append("?h")
    text = writer.query(depth).replace("@DATASET@", dataset(random, language))
    data = [a_triple(random) for _ in range(random.randrange(5))]
    quads = [Quad(t.subject, t.predicate, t.object) for t in data]
    for graph in GRAPHS:
        found = [a_triple(random) for _ in range(random.randint(1, 4))]
        quads += [Quad(t.subject, t.predicate, t.object, NamedNode(graph)) for t in found]
    options = Options(
        bounds=random.choice([None, *Bounds]),
        # Without COMPUTED EVERY the period is the shortest width, which for NOW is a microsecond.
        report=random.choice([None, None, *(r for r in Report if r is not Report.PERIODIC or language != "cqels")]),
        emit=random.choice([None, None, *StreamOperator]),
        content=random.choice([None, *Content]),
    )
    names = NAMES if named else ()
    elements = {stream: a_stream(random, names, graph_times=graph_times) for stream in STREAMS}
    return Case(f"PREFIX : <{EX}> {text}", options, elements, tuple(quads))
