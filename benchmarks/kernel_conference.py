"""The conference scenario of the CQELS paper, invented at any size: authors and their papers, a floor plan, a stream.

Static triples: papers with creators, titles and proceedings, editors, names; a floor plan of 100 rooms in a named
graph. The stream says who was seen where, a hundred times a second. The watched author, whose name the queries
mention, has many co-authors at the conference and is seen with every fourth element.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode, Quad, Store, Triple

from headwater.terms.model import Element

STREAM = "http://deri.org/streams/rfid"
_FLOOR_PLAN = NamedNode("http://deri.org/floorplan/")
_LV, _EX = "http://deri.org/floorplan/", "http://example.org/"
_CREATOR, _TITLE = (NamedNode(f"http://purl.org/dc/elements/1.1/{name}") for name in ("creator", "title"))
_PART_OF = NamedNode("http://purl.org/dc/terms/partOf")
_EDITOR = NamedNode("http://swrc.ontoware.org/ontology#editor")
_NAME = NamedNode("http://xmlns.com/foaf/0.1/name")
_DETECTED_AT = NamedNode(_LV + "detectedAt")
_CREATORS = 3
APART = 10_000
"""Microseconds between two elements."""

_PREFIXES = """PREFIX lv: <http://deri.org/floorplan/>
PREFIX dc: <http://purl.org/dc/elements/1.1/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX dcterms: <http://purl.org/dc/terms/>
PREFIX swrc: <http://swrc.ontoware.org/ontology#>
"""
_BODIES = {
    "Q1": """SELECT ?locName ?locDesc FROM NAMED <http://deri.org/floorplan/> WHERE {
  STREAM <http://deri.org/streams/rfid> [NOW] {?person lv:detectedAt ?loc}
  GRAPH <http://deri.org/floorplan/> {?loc lv:name ?locName. ?loc lv:desc ?locDesc}
  ?person foaf:name "Author 0". }""",
    "Q2": """CONSTRUCT {?person1 lv:reachable ?person2} FROM NAMED <http://deri.org/floorplan/> WHERE {
  STREAM <http://deri.org/streams/rfid> [NOW]      {?person1 lv:detectedAt ?loc1}
  STREAM <http://deri.org/streams/rfid> [RANGE 3s] {?person2 lv:detectedAt ?loc2}
  GRAPH <http://deri.org/floorplan/> {?loc1 lv:connected ?loc2} }""",
    "Q3": """SELECT ?coAuthName FROM NAMED <http://deri.org/floorplan/> WHERE {
  STREAM <http://deri.org/streams/rfid> [TRIPLES 1] {?auth lv:detectedAt ?loc}
  STREAM <http://deri.org/streams/rfid> [RANGE 5s] {?coAuth lv:detectedAt ?loc}
  { ?paper dc:creator ?auth. ?paper dc:creator ?coAuth.
    ?auth foaf:name "Author 0". ?coAuth foaf:name ?coAuthName}
  FILTER (?auth != ?coAuth) }""",
    "Q4": """SELECT ?editorName WHERE {
  STREAM <http://deri.org/streams/rfid> [TRIPLES 1] {?auth lv:detectedAt ?loc1}
  STREAM <http://deri.org/streams/rfid> [RANGE 15s] {?editor lv:detectedAt ?loc2}
  GRAPH <http://deri.org/floorplan/> {?loc1 lv:connected ?loc2}
  ?paper dc:creator ?auth. ?paper dcterms:partOf ?proceeding.
  ?proceeding swrc:editor ?editor. ?editor foaf:name ?editorName.
  ?auth foaf:name "Author 0" }""",
    "Q5": """SELECT ?loc2 ?locName count(distinct ?coAuth) as ?noCoAuths FROM NAMED <http://deri.org/floorplan/> WHERE {
  STREAM <http://deri.org/streams/rfid> [TRIPLES 1] {?auth lv:detectedAt ?loc1}
  STREAM <http://deri.org/streams/rfid> [RANGE 30s] {?coAuth lv:detectedAt ?loc2}
  GRAPH <http://deri.org/floorplan/> {?loc2 lv:name ?locName. ?loc2 lv:connected ?loc1}
  {?paper dc:creator ?auth. ?paper dc:creator ?coAuth. ?auth foaf:name "Author 0"}
  FILTER (?auth != ?coAuth)}
GROUP BY ?loc2 ?locName""",
}
QUERIES = {name: _PREFIXES + body for name, body in _BODIES.items()}


ROOMS = [NamedNode(f"{_EX}room{i}") for i in range(100)]


def floor_plan() -> Iterator[Quad]:
    """The rooms and how they are connected, in a named graph."""
    for i, room in enumerate(ROOMS):
        yield Quad(room, NamedNode(_LV + "name"), Literal(f"Room {i}"), _FLOOR_PLAN)
        yield Quad(room, NamedNode(_LV + "desc"), Literal(f"Where talks of track {i} are given"), _FLOOR_PLAN)
        for step in (1, -1, 10, -10):
            yield Quad(room, NamedNode(_LV + "connected"), ROOMS[(i + step) % len(ROOMS)], _FLOOR_PLAN)


@dataclass(frozen=True)
class Attendance:
    """Who attends: the watched author first."""

    attendees: list[NamedNode]

    def elements(self, count: int) -> Iterator[Element]:
        """Who is seen where, each at another instant."""
        chance = random.Random(7)
        for number in range(count):
            person = self.attendees[0] if number % 4 == 0 else chance.choice(self.attendees)
            triple = Triple(person, _DETECTED_AT, chance.choice(ROOMS))
            yield Element((number + 1) * APART, (triple,), position=(number,))


@dataclass(frozen=True)
class Conference:
    """The static data, and who attends."""

    store: Store
    attendance: Attendance

    def elements(self, count: int) -> Iterator[Element]:
        """Who is seen where, each at another instant."""
        return self.attendance.elements(count)


def conference(triples: int) -> Conference:
    """A conference with about so many static triples."""
    chance = random.Random(8)
    # Each paper brings three creators, a title, proceedings, and the name of one more author.
    papers = [NamedNode(f"{_EX}paper{i}") for i in range(max(10, triples // (_CREATORS + 3)))]
    authors = [NamedNode(f"{_EX}author{i}") for i in range(len(papers))]
    proceedings = [NamedNode(f"{_EX}proceedings{i}") for i in range(max(1, len(papers) // 100))]
    attendees = authors[: min(len(authors), 1000)]
    quads = [Quad(author, _NAME, Literal(f"Author {i}")) for i, author in enumerate(authors)]
    for i, paper in enumerate(papers):
        quads.append(Quad(paper, _TITLE, Literal(f"On subject {i}")))
        quads.append(Quad(paper, _PART_OF, chance.choice(proceedings)))
        # The watched author writes forty papers, with others who attend.
        creators = [authors[0], *chance.sample(attendees, 2)] if i < 40 else chance.sample(authors, _CREATORS)
        quads.extend(Quad(paper, _CREATOR, creator) for creator in creators)
    for one in proceedings:
        quads.extend(Quad(one, _EDITOR, editor) for editor in chance.sample(attendees, 2))
    store = Store()
    store.bulk_extend([*quads, *floor_plan()])
    return Conference(store, Attendance(attendees))
