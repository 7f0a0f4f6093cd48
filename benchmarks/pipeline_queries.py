"""The queries of the pipeline's benchmark: a star, an aggregate, a join of streams, and those of SRBench and LSBench
with periodic windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    StreamShape,
    alert,
    linked_observation,
    observation,
    post,
    readings,
)

_SENSORS = 100
_USERS = 2000
_TAGS = 2000
OBSERVATIONS = "http://data.example/observations"
ALERTS = "http://data.example/checks"
POSTS = "http://deri.org/poststream"
_FLOAT = NamedNode("http://www.w3.org/2001/XMLSchema#float")

STAR_SHAPE = StreamShape("star", observation(_SENSORS), 4, 1000)
READINGS_SHAPE = StreamShape("readings", readings(_SENSORS), 4, 1000)
LINKED_SHAPE = StreamShape("linked", linked_observation(_SENSORS), 7, 1000)
ALERT_SHAPE = StreamShape("alert", alert(_SENSORS), 1, 250_000)
POST_SHAPE = StreamShape("post", post(_USERS, _TAGS), 3, 1000)

_PREFIXES = f"""PREFIX om: <{OM}> PREFIX w: <{WEATHER}> PREFIX geo: <{GEO}> PREFIX d: <{DATA}>
PREFIX sib: <{SIB}> PREFIX sioc: <{SIOC}> PREFIX foaf: <{FOAF}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""


def _window(width: str, step: str, stream: str = OBSERVATIONS, name: str = "w") -> str:
    return f"FROM NAMED WINDOW d:{name} ON <{stream}> [RANGE {width} STEP {step}]\n"


@dataclass(frozen=True)
class Workload:
    """A query and its streams; the first stream is the large one.

    Where much is computed for each triple, one `share`-th of them is enough.
    """

    text: str
    streams: Mapping[str, StreamShape] = field(default_factory=lambda: {OBSERVATIONS: STAR_SHAPE})
    share: int = 1


def _query(head: str, windows: str, body: str, tail: str = "") -> str:
    return f"{_PREFIXES}{head}\n{windows}WHERE {{ {body} }} {tail}"


_LINKED = {OBSERVATIONS: LINKED_SHAPE}
_POSTS = {POSTS: POST_SHAPE}
_TEMPERATURE = "a w:TemperatureObservation ; om:result ?tr . ?tr om:floatValue ?temperature"
_WIND = "a w:WindSpeedObservation ; om:result ?wr . ?wr om:floatValue ?windSpeed"
_SOME_USER = f"?user sioc:account_of <{PERSON}98>"

WORKLOADS: dict[str, Workload] = {
    "star": Workload(
        _query(
            "SELECT ?sensor ?value ?unit",
            _window("PT10S", "PT10S"),
            "WINDOW d:w { ?o a w:RainfallObservation ; om:procedure ?sensor ; om:floatValue ?value ; om:uom ?unit }",
        ),
    ),
    "aggregate": Workload(
        _query(
            "SELECT ?sensor (AVG(?value) AS ?mean) (COUNT(?value) AS ?n)",
            _window("PT60S", "PT1S"),
            "WINDOW d:w { ?sensor om:floatValue ?value }",
            "GROUP BY ?sensor",
        ),
        {OBSERVATIONS: READINGS_SHAPE},
    ),
    "join": Workload(
        _query(
            "SELECT ?sensor ?value ?person",
            _window("PT30S", "PT5S") + _window("PT30S", "PT5S", ALERTS, "c"),
            "WINDOW d:w { ?o a w:RainfallObservation ; om:procedure ?sensor ; om:floatValue ?value } "
            "WINDOW d:c { ?sensor d:checkedBy ?person } FILTER(?value > 99)",
        ),
        {OBSERVATIONS: STAR_SHAPE, ALERTS: ALERT_SHAPE},
    ),
    "rises": Workload(
        _query(
            "SELECT ?sensor (COUNT(*) AS ?rises)",
            _window("PT4S", "PT4S"),
            "WINDOW d:w { ?sensor om:floatValue ?low , ?high } FILTER(?high > ?low)",
            "GROUP BY ?sensor",
        ),
        {OBSERVATIONS: READINGS_SHAPE},
        share=8,
    ),
    "srbench_q1": Workload(
        _query(
            "SELECT DISTINCT ?sensor ?value ?uom",
            _window("PT1M", "PT1M"),
            "WINDOW d:w { ?o om:procedure ?sensor ; a w:RainfallObservation ; om:result ?r . "
            "?r om:floatValue ?value ; om:uom ?uom }",
        ),
        _LINKED,
    ),
    "srbench_q4": Workload(
        _query(
            "SELECT ?sensor (AVG(?windSpeed) AS ?wind) (AVG(?temperature) AS ?warmth)",
            _window("PT5S", "PT5S"),
            f"WINDOW d:w {{ ?t om:procedure ?sensor ; {_TEMPERATURE} . ?s om:procedure ?sensor ; {_WIND} }} "
            'FILTER(?temperature > "32"^^xsd:float)',
            "GROUP BY ?sensor",
        ),
        _LINKED,
    ),
    "srbench_q5": Workload(
        _query(
            "SELECT ?sensor",
            _window("PT2S", "PT2S"),
            "WINDOW d:w { ?sensor om:generatedObservation ?o0 , ?o1 , ?o2 . ?o0 a w:SnowfallObservation . "
            f"?o1 om:observedProperty w:_AirTemperature ; {_TEMPERATURE} . "
            f"?o2 om:observedProperty w:_WindSpeed ; {_WIND} }}",
            'GROUP BY ?sensor HAVING (AVG(?temperature) < "32"^^xsd:float && MIN(?windSpeed) > "4"^^xsd:float)',
        ),
        _LINKED,
    ),
    "srbench_q8": Workload(
        _query(
            "SELECT ?sensor (MIN(?temperature) AS ?low) (MAX(?temperature) AS ?high)",
            _window("PT1M", "PT10S"),
            "?sensor om:processLocation ?place . "
            '?place geo:alt "6300"^^xsd:float ; geo:lat "32.892"^^xsd:float ; geo:long "-116.4199"^^xsd:float . '
            "WINDOW d:w { ?sensor om:generatedObservation ?o . ?o om:observedProperty w:_AirTemperature ; "
            "om:result ?r . ?r om:floatValue ?temperature }",
            "GROUP BY ?sensor",
        ),
        _LINKED,
    ),
    "srbench_q10": Workload(
        _query(
            "SELECT DISTINCT ?lat ?long ?alt",
            _window("PT1M", "PT1M"),
            "WINDOW d:w { ?sensor om:generatedObservation ?o . ?o a w:SnowfallObservation } "
            "?sensor om:processLocation ?place . ?place geo:alt ?alt ; geo:lat ?lat ; geo:long ?long",
        ),
        _LINKED,
    ),
    "lsbench_q1": Workload(
        _query("SELECT ?p ?o", _window("PT1S", "PT1S", POSTS), f"WINDOW d:w {{ <{USER}984> ?p ?o }}"),
        _POSTS,
    ),
    "lsbench_q2": Workload(
        _query(
            "SELECT ?post", _window("PT1S", "PT1S", POSTS), f"WINDOW d:w {{ ?user sioc:creator_of ?post }} {_SOME_USER}"
        ),
        _POSTS,
    ),
    "lsbench_q3": Workload(
        _query(
            "SELECT ?friend ?post",
            _window("PT1S", "PT1S", POSTS),
            f"WINDOW d:w {{ ?friend sioc:creator_of ?post }} {_SOME_USER} . ?user foaf:knows ?friend",
        ),
        _POSTS,
    ),
    "lsbench_q4": Workload(
        _query(
            "SELECT ?post1 ?post2 ?tag",
            _window("PT15S", "PT1S", POSTS),
            "WINDOW d:w { ?post1 sib:hashtag ?tag . ?post2 sib:hashtag ?tag . "
            "?user sioc:creator_of ?post1 , ?post2 } FILTER(?post1 != ?post2)",
        ),
        _POSTS,
    ),
    "lsbench_q10": Workload(
        _query(
            "SELECT ?tag (COUNT(?post) AS ?posts)",
            _window("PT1M", "PT1S", POSTS),
            "WINDOW d:w { ?post sib:hashtag ?tag } FILTER(?tag = d:tag1 || ?tag = d:tag2)",
            "GROUP BY ?tag",
        ),
        _POSTS,
    ),
}


def static_data() -> Store:
    """Where the sensors are, and who knows whom."""
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
        for friend in range(1, 21):
            quads.append(
                Quad(user, NamedNode(FOAF + "knows"), NamedNode(f"{USER}{(number * 7 + friend * 31) % _USERS}"))
            )
    store.bulk_extend(quads)
    return store
