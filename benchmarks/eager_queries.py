"""The queries of the Operator-aware paper's tables 1 and 2 as it ran them (section 5.3): count windows, eagerly.

The paper has neither texts nor the sizes of windows. The texts are those of SRBench and LSBench in CQELS-QL, their
time windows changed to count windows: at LSBench's thousand triples a second `RANGE 1s` is `TRIPLES 1000` and
`RANGE 15s` is `TRIPLES 15000`. Each triple is an element of its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyoxigraph import Literal, NamedNode, Quad, Store

from benchmarks.pipeline_data import (
    DATA,
    FOAF,
    GEO,
    OM,
    PERSON,
    SIB,
    SIOC,
    USER,
    WEATHER,
    Statements,
    linked_observation,
    post,
)

_SENSORS = 100
_USERS = 2000
_TAGS = 2000
_CHANNELS = 200
_FRIENDS = 20
_FLOAT = NamedNode("http://www.w3.org/2001/XMLSchema#float")

OBSERVATIONS = "http://www.cwi.nl/SRBench/observations"
POSTS = "http://deri.org/poststream"
POST_LIKES = "http://deri.org/likedpoststream"
PHOTOS = "http://deri.org/photostream"
PHOTO_LIKES = "http://deri.org/likedphotostream"

_PREFIXES = f"""PREFIX om-owl: <{OM}> PREFIX weather: <{WEATHER}> PREFIX wgs84_pos: <{GEO}> PREFIX sib: <{SIB}>
PREFIX sioc: <{SIOC}> PREFIX foaf: <{FOAF}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""


def _like(things: str) -> Statements:
    """One triple: somebody likes one of the things that were new a little before."""

    def statements(number: int, chance: random.Random) -> list[str]:
        thing = max(0, number - int(chance.random() * 200))
        return [f"<{USER}{int(chance.random() * _USERS)}> <{SIB}like> <{DATA}{things}{thing}>"]

    return statements


def _photo(number: int, chance: random.Random) -> list[str]:
    """One triple: who is on a photo."""
    return [f"<{DATA}photo{number}> <{SIB}usertag> <{USER}{int(chance.random() * _USERS)}>"]


def _channel_post(number: int, chance: random.Random) -> list[str]:
    """One triple: the channel of a post."""
    return [f"<{DATA}channel{int(chance.random() * _CHANNELS)}> <{SIOC}container_of> <{DATA}post{number}>"]


@dataclass(frozen=True)
class EagerStream:
    """A stream of single triples; `name` is that of its file."""

    name: str
    statements: Statements


_LINKED = {OBSERVATIONS: EagerStream("linked", linked_observation(_SENSORS))}
_POSTS = {POSTS: EagerStream("posts", post(_USERS, _TAGS))}
_CHANNEL_POSTS = {
    POSTS: EagerStream("channel-posts", _channel_post),
    POST_LIKES: EagerStream("post-likes", _like("post")),
}
_TAGGED_PHOTOS = {PHOTOS: EagerStream("photos", _photo), PHOTO_LIKES: EagerStream("photo-likes", _like("photo"))}


@dataclass(frozen=True)
class EagerQuery:
    """A query with a place for the size of its windows, and what the paper has for CQELS.

    `paper` is in triples per second (table 1), `paper_mb` in megabytes (table 2).
    """

    body: str
    paper: int
    paper_mb: int
    window: int
    streams: Mapping[str, EagerStream] = field(default_factory=lambda: _LINKED)

    def text(self, window: int | None = None) -> str:
        """The text in CQELS-QL, with count windows of this size."""
        return _PREFIXES + self.body.replace("$WINDOW", f"[TRIPLES {window or self.window}]")


_OBSERVED = f"STREAM <{OBSERVATIONS}> $WINDOW"
_POSTED = f"STREAM <{POSTS}> $WINDOW"

QUERIES: dict[str, EagerQuery] = {
    "srbench_q1": EagerQuery(
        f"SELECT DISTINCT ?sensor ?value ?uom WHERE {{ {_OBSERVED} {{ ?observation om-owl:procedure ?sensor ; "
        "a weather:RainfallObservation ; om-owl:result ?result . "
        "?result om-owl:floatValue ?value ; om-owl:uom ?uom } }",
        25_147,
        206,
        1000,
    ),
    "srbench_q4": EagerQuery(
        "SELECT ?sensor (AVG(?windSpeed) AS ?averageWindSpeed) (AVG(?temperature) AS ?averageTemperature) "
        f"WHERE {{ {_OBSERVED} {{ ?t om-owl:procedure ?sensor ; a weather:TemperatureObservation ; om-owl:result ?tr . "
        "?tr om-owl:floatValue ?temperature . ?w om-owl:procedure ?sensor ; a weather:WindSpeedObservation ; "
        "om-owl:result ?wr . ?wr om-owl:floatValue ?windSpeed } "
        'FILTER(?temperature > "32"^^xsd:float) } GROUP BY ?sensor',
        20_161,
        327,
        1000,
    ),
    "srbench_q5": EagerQuery(
        f"SELECT ?sensor WHERE {{ {_OBSERVED} {{ ?sensor om-owl:generatedObservation ?o0 , ?o1 , ?o2 . "
        "?o0 a weather:PressureObservation . ?o1 a weather:TemperatureObservation ; "
        "om-owl:observedProperty weather:_AirTemperature ; om-owl:result ?r1 . ?r1 om-owl:floatValue ?temperature . "
        "?o2 a weather:WindSpeedObservation ; om-owl:observedProperty weather:_WindSpeed ; om-owl:result ?r2 . "
        "?r2 om-owl:floatValue ?windSpeed } } "
        'GROUP BY ?sensor HAVING (AVG(?temperature) < "32"^^xsd:float && MIN(?windSpeed) > "40.0"^^xsd:float)',
        13_966,
        370,
        1000,
    ),
    "srbench_q8": EagerQuery(
        "SELECT (MIN(?temperature) AS ?minTemperature) (MAX(?temperature) AS ?maxTemperature) WHERE { "
        '?sensor om-owl:processLocation ?place . ?place wgs84_pos:alt "6300"^^xsd:float ; '
        'wgs84_pos:lat "32.892"^^xsd:float ; wgs84_pos:long "-116.4199"^^xsd:float . '
        f"{_OBSERVED} {{ ?sensor om-owl:generatedObservation ?o . "
        "?o om-owl:observedProperty weather:_AirTemperature ; om-owl:result ?r . ?r om-owl:floatValue ?temperature } "
        "} GROUP BY ?sensor",
        22_278,
        248,
        1000,
    ),
    "srbench_q10": EagerQuery(
        "SELECT DISTINCT ?lat ?long ?alt WHERE { ?sensor om-owl:processLocation ?place . "
        "?place wgs84_pos:alt ?alt ; wgs84_pos:lat ?lat ; wgs84_pos:long ?long . "
        f"{_OBSERVED} {{ ?sensor om-owl:generatedObservation ?o . ?o a weather:PressureObservation }} }}",
        29_463,
        218,
        1000,
    ),
    "lsbench_q1": EagerQuery(f"SELECT ?p ?o WHERE {{ {_POSTED} {{ <{USER}984> ?p ?o }} }}", 118_924, 374, 1000, _POSTS),
    "lsbench_q2": EagerQuery(
        f"SELECT ?post WHERE {{ {_POSTED} {{ ?user sioc:creator_of ?post }} ?user sioc:account_of <{PERSON}984> }}",
        96_789,
        370,
        1000,
        _POSTS,
    ),
    "lsbench_q3": EagerQuery(
        f"SELECT ?friend ?post WHERE {{ {_POSTED} {{ ?friend sioc:creator_of ?post }} "
        f"?user sioc:account_of <{PERSON}984> . ?user foaf:knows ?friend }}",
        88_647,
        380,
        1000,
        _POSTS,
    ),
    "lsbench_q4": EagerQuery(
        f"SELECT ?post1 ?post2 ?tag WHERE {{ {_POSTED} {{ ?post1 sib:hashtag ?tag . ?post2 sib:hashtag ?tag . "
        "?user sioc:creator_of ?post1 . ?user sioc:creator_of ?post2 } FILTER(?post1 != ?post2) }",
        60_467,
        398,
        15_000,
        _POSTS,
    ),
    "lsbench_q5": EagerQuery(
        f"SELECT ?user ?friend ?photo WHERE {{ STREAM <{PHOTOS}> $WINDOW {{ ?photo sib:usertag ?user }} "
        f"STREAM <{PHOTO_LIKES}> $WINDOW {{ ?friend sib:like ?photo }} ?user foaf:knows ?friend }}",
        52_890,
        389,
        1000,
        _TAGGED_PHOTOS,
    ),
    "lsbench_q6": EagerQuery(
        f"SELECT ?user ?friend ?post ?channel WHERE {{ {_POSTED} {{ ?channel sioc:container_of ?post }} "
        f"STREAM <{POST_LIKES}> $WINDOW {{ ?friend sib:like ?post }} "
        "?user sioc:subscriber_of ?channel . ?user foaf:knows ?friend }",
        44_391,
        402,
        1000,
        _CHANNEL_POSTS,
    ),
    "lsbench_q10": EagerQuery(
        f"SELECT ?tag (COUNT(?post) AS ?posts) WHERE {{ {_POSTED} {{ ?post sib:hashtag ?tag }} }} GROUP BY ?tag",
        103_698,
        370,
        15_000,
        _POSTS,
    ),
}


def write_triples(path: Path, statements: Callable[[int, random.Random], list[str]], triples: int, first: int) -> None:
    """Write single triples, two milliseconds apart from the time `first` on: two streams take turns."""
    chance = random.Random(7)
    path.parent.mkdir(parents=True, exist_ok=True)
    number = written = 0
    with open(path, "w", encoding="ascii") as stream:
        while written < triples:
            for statement in statements(number, chance):
                stream.write(f"{first + 2 * written}\t{statement} .\n")
                written += 1
            number += 1


def static_data() -> Store:
    """Where the sensors are, who knows whom, and who reads which channel."""
    store = Store()
    quads: list[Quad] = []
    for number in range(_SENSORS):
        sensor, place = NamedNode(f"{DATA}sensor{number}"), NamedNode(f"{DATA}place{number}")
        quads.append(Quad(sensor, NamedNode(OM + "processLocation"), place))
        where = ("6300", "32.892", "-116.4199") if number % 10 == 0 else (str(number), f"{number}.5", f"-{number}.25")
        for name, value in zip(("alt", "lat", "long"), where, strict=True):
            quads.append(Quad(place, NamedNode(GEO + name), Literal(value, datatype=_FLOAT)))
    for number in range(_USERS):
        user = NamedNode(f"{USER}{number}")
        quads.append(Quad(user, NamedNode(SIOC + "account_of"), NamedNode(f"{PERSON}{number}")))
        quads.append(Quad(user, NamedNode(SIOC + "subscriber_of"), NamedNode(f"{DATA}channel{number % _CHANNELS}")))
        for friend in range(1, _FRIENDS + 1):
            known = (number * 7 + friend * 31) % _USERS
            quads.append(Quad(user, NamedNode(FOAF + "knows"), NamedNode(f"{USER}{known}")))
    store.bulk_extend(quads)
    return store
