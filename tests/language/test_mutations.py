"""A wrong query gives an error at the mistake or before it, whatever the mistake is.

Valid queries of all dialects are spoilt in one place: a token dropped, a keyword replaced, a bracket removed, a token
doubled, a stray token inserted. Where the result does not parse, the error points at most one token behind the spoilt
place, and it is always a `QueryError`.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from headwater.language.errors import QueryError
from headwater.language.lexer import tokenize
from headwater.language.parser import parse
from tests.language import benchmark_queries, paper_queries

KEYWORD_TEXT = """
SELECT WHERE FILTER OPTIONAL UNION GRAPH FROM NAMED STREAM WINDOW RANGE STEP SLIDE PREFIX BASE CONSTRUCT DESCRIBE ASK
GROUP BY HAVING ORDER LIMIT BIND VALUES MINUS SERVICE AS REGISTER QUERY COMPUTED EVERY AGGREGATE COUNT SUM AVG IF BOUND
DISTINCT TRIPLES NOW ALL TUMBLING ISTREAM SELCT STREM WHRE nonsense
"""
STRAY_TEXT = """
?stray :stray <http://stray> "stray" 42 . ; , ( ) { } [ ] FILTER stray && = * AS OPTIONAL SELECT ^^ @en - _:x a
"""
KEYWORDS = KEYWORD_TEXT.split()
STRAY = STRAY_TEXT.split()
KINDS = ("drop", "keyword", "close", "open", "double", "stray")

EXTRA = {
    "paths": """PREFIX : <http://e/>
        SELECT ?x (COUNT(DISTINCT ?y) AS ?n) WHERE {
          ?x :a/:b* ?y ; ^:c ?z , "lit"@en .
          OPTIONAL { ?y !(:p|^:q) [ :r 1 , 2 ; :s ( 1 2 ) ] }
          BIND(IF(?z > 3, "a", "b") AS ?kind)
          MINUS { ?x :gone true } FILTER NOT EXISTS { ?x :q ?q }
        } GROUP BY ?x HAVING (COUNT(?y) > 1) ORDER BY DESC(?n) LIMIT 5 OFFSET 2""",
    "registered": """PREFIX : <http://e/>
        REGISTER ISTREAM :out AS
        CONSTRUCT { ?s :hot ?v } FROM NAMED WINDOW :w ON :sensors [RANGE PT1H STEP PT10M]
        FROM NAMED WINDOW :old ON STREAM :sensors [FROM NOW-PT2H TO NOW-PT1H STEP PT10M] FROM <http://static>
        WHERE { WINDOW :w { ?s :value ?v } WINDOW :old { ?s :value ?before } SERVICE SILENT :end { ?s :label ?l }
                FILTER(?v > ?before && regex(?l, "^a")) }""",
    "nested": """PREFIX : <http://e/>
        REGISTER QUERY nested COMPUTED EVERY 30s AS SELECT ?s ?most
        FROM STREAM <http://s> [RANGE TRIPLES 100 STEP 10] FROM NAMED <http://g>
        WHERE { { SELECT ?s (MAX(?v) AS ?most) WHERE { ?s :value ?v } GROUP BY ?s }
                GRAPH ?g { ?s a :Sensor } { ?s :on true } UNION { ?s :off false } }
        AGGREGATE { (?n, COUNT(?s), {?g}) FILTER(?n > 2) } ORDER BY ?s""",
}


@dataclass(frozen=True)
class Mutation:
    """A spoilt text and the index of the token where it was spoilt."""

    kind: str
    text: str
    place: int


def mutate(text: str, kind: str, choice: random.Random) -> Mutation:
    tokens = tokenize(text).tokens[:-1]
    places = range(len(tokens))
    if kind == "keyword":
        place = choice.choice([index for index in places if tokens[index].is_word and tokens[index].text != "a"])
        token = tokens[place]
        word = choice.choice([keyword for keyword in KEYWORDS if keyword != token.key])
        return Mutation(f"{token.text} → {word}", f"{text[: token.start]} {word} {text[token.end :]}", place)
    if kind == "stray":
        place = choice.randrange(len(tokens) + 1)
        at = tokens[place].start if place < len(tokens) else len(text)
        stray = choice.choice(STRAY)
        return Mutation(f"inserted {stray}", f"{text[:at]} {stray} {text[at:]}", place)
    if kind in ("close", "open"):
        brackets = "})]" if kind == "close" else "{(["
        place = choice.choice([index for index in places if tokens[index].key in brackets])
    else:
        place = choice.choice(places)
    token = tokens[place]
    if kind == "double":
        return Mutation(f"doubled {token.text}", f"{text[: token.end]} {token.text} {text[token.end :]}", place + 1)
    return Mutation(f"dropped {token.text}", f"{text[: token.start]} {text[token.end :]}", place)


def fault(mutation: Mutation) -> str | None:
    """What is wrong with the error of a mutation; None where all is well, `""` where the text still parses."""
    try:
        parse(mutation.text)
    except QueryError as error:
        tokens = tokenize(mutation.text).tokens
        latest = tokens[min(mutation.place + 1, len(tokens) - 1)].start
        if error.offset <= latest:
            return None
        place = QueryError("", mutation.text, tokens[min(mutation.place, len(tokens) - 1)].start)
        return f"{mutation.kind} in line {place.line}, column {place.column}, but:\n{error}"
    return ""


def check(texts: dict[str, str], rounds: int, seed: int) -> Counter[str]:
    choice = random.Random(seed)
    outcome: Counter[str] = Counter()
    for _ in range(rounds):
        for name, text in texts.items():
            mutation = mutate(text, choice.choice(KINDS), choice)
            found = fault(mutation)
            assert not found, f"{name}: {found}"
            outcome["parses" if found == "" else "error"] += 1
    return outcome


def test_mutated_paper_queries_point_at_the_mistake() -> None:
    texts = paper_queries.PRINTED | EXTRA
    outcome = check(texts, rounds=60, seed=20100322)
    assert outcome["error"] > 900


def test_mutated_benchmark_queries_point_at_the_mistake() -> None:
    texts = benchmark_queries.query_files()
    collections = benchmark_queries.rspql_collections()
    texts |= {name: text for name, text in collections.items() if name not in benchmark_queries.BROKEN}
    assert len(texts) >= 40
    outcome = check(texts, rounds=25, seed=1)
    assert outcome["error"] > 1000


@pytest.mark.parametrize("name", paper_queries.PRINTED)
def test_every_dropped_bracket_is_found(name: str) -> None:
    text = paper_queries.PRINTED[name]
    tokens = tokenize(text).tokens
    brackets = [index for index, token in enumerate(tokens) if token.key in "{}()[]" and token.key != "end"]
    for place in brackets:
        token = tokens[place]
        found = fault(Mutation(f"dropped {token.text}", f"{text[: token.start]} {text[token.end :]}", place))
        assert found is None or (found == "" and token.key in "()"), found
