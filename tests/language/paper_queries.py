"""Every query that the four papers print, with the prefixes that they leave out "for brevity".

The texts are the papers' own, errors of print included. `PRINTED` parses as it stands; `BROKEN` does not, each with
the words that the error must contain and the text at which it must point.
"""

from __future__ import annotations

from dataclasses import dataclass

CITY = """PREFIX c: <http://linkedurbandata.org/city#>
PREFIX t: <http://linkedurbandata.org/traffic#>
"""

CONFERENCE = """PREFIX lv: <http://deri.org/floorplan/>
PREFIX dc: <http://purl.org/dc/elements/1.1/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX dcterms: <http://purl.org/dc/terms/>
PREFIX swrc: <http://swrc.ontoware.org/ontology#>
"""

CSPARQL: dict[str, str] = {
    "section 2.2, sensors per street": """PREFIX c: <http://linkedurbandata.org/city#>

SELECT DISTINCT ?street ?total-sensor
WHERE { ?sensor c:placedIn ?street . }
AGGREGATE { ( ?total-sensor, COUNT, {?street} )
            FILTER (?total-sensor > 5) }
""",
    "section 2.3, cars per tollgate": """PREFIX t: <http://linkedurbandata.org/traffic#>

SELECT DISTINCT ?tollgate ?passages
FROM STREAM <http://streams.org/citytollgates.trdf>
           [RANGE 10m STEP 1m]
WHERE { ?tollgate t:registers ?car . }
AGGREGATE { (?passages, COUNT, {?tollgate} ) }
""",
    "section 2.4, cars per district": CITY
    + """REGISTER QUERY CarsEnteringCityCenterPerDistrict
COMPUTED EVERY 5m AS

SELECT DISTINCT ?district ?passages
FROM STREAM <http://streams.org/citytollgates.trdf>
[RANGE 30m STEP 5m]
WHERE { ?tollgate t:registers ?car .
        ?tollgate c:placedIn ?street .
        ?district c:contains ?street . }
AGGREGATE {(?passages, COUNT, {?district})}
""",
    "section 2.5, cars per district as a stream": CITY
    + """REGISTER STREAM CarsEnteringCityCenterPerDistrict
COMPUTED EVERY 5m AS

CONSTRUCT {?district t:has-entering-cars ?passages}
FROM STREAM <http://streams.org/citytollgates.trdf>
[RANGE 30m STEP 5m]
WHERE { ?tollgate t:registers ?car .
        ?district c:contains ?street .
        ?tollgate c:placedIn ?street . }
AGGREGATE {(?passages,
            COUNT, {?district, ?tollgate, ?car})}
""",
    "section 2.6, full streets": CITY
    + """REGISTER QUERY FullStreets AS

SELECT ?street ?passages
FROM STREAM <http://streams.org/citytollgates.trdf>
[RANGE 5m TUMBLING]
FROM STREAM <http://streams.org/citycameras.trdf>
[RANGE 5m TUMBLING]
WHERE {
  ?street c:hasCapacity ?capacity .
  {
    GRAPH <http://streams.org/citytollgates.trdf> {
      ?tollgate t:registers ?car .
      ?tollgate c:placedIn ?street .
    }
  }
  UNION
  {
    GRAPH <http://streams.org/citycameras.trdf> {
      ?camera t:registers ?car .
      ?camera c:placedAt ?light .
      ?light c:crossing ?street .
    }
  }
}
AGGREGATE { ( ?passages, COUNT, {?street} )
            FILTER ( ?passages > (0.8 * ?capacity)) }
""",
    "section 2.7, cars turning": CITY
    + """REGISTER STREAM AllCarsTurningFromPalmIntoOak
COMPUTED EVERY 1m AS

SELECT DISTINCT ?car1
FROM STREAM <http://streams.org/citycameras.trdf>
[RANGE 5m STEP 1m]
WHERE {
  ?camera1 c:monitors c:Oak-Avenue .
  ?camera2 c:monitors c:Palm-Street .
  ?camera1 c:placedAt ?tr_light .
  ?camera2 c:placedAt ?tr_light .
  ?camera1 t:registers ?car1 .
  ?camera2 t:registers ?car2 .
  FILTER ( timestamp(?car1)>timestamp(?car2)
    && ?car1 = ?car2 ) }
""",
    "section 3.4, total amount per broker": """REGISTER QUERY TotalAmountPerDayAndBroker AS
PREFIX b: <http://brokerscentral.org/accounts#>
PREFIX x: <http://stockexchange.org/exchanges#>

SELECT DISTINCT ?broker ?total
FROM <http://brokerscentral.org/brokers.rdf>
FROM STREAM <http://stockexchange.org/market.trdf>
[RANGE 24h TUMBLING]
WHERE {
  ?broker b:is_from ?country .
  ?broker x:does ?tx .
  ?tx x:with ?amount .
  FILTER (?country = 'CH' ^^ ?amount >= 10)
}
AGGREGATE { (?total, SUM(?amount), ?broker) }
""",
    "section 4, its static part": """PREFIX b: <http://brokerscentral.org/accounts#>

SELECT DISTINCT ?broker ?country
FROM <http://brokerscentral.org/brokers.rdf>
WHERE { ?broker b:is_from ?country }
""",
    "section 5.2, movements per seller and market": """REGISTER QUERY SellerMarketMovementsPerDay AS

PREFIX x: <http://stockexchanges.org/exchanges#>

FROM <http://brokerscentral.org/brokers.rdf>
FROM STREAM <http://stockexchange.org/market.trdf>
[RANGE 24 hours TUMBLING]

SELECT DISTINCT ?seller, ?market, ?Tot
WHERE {
  GRAPH ?market {
    ?Transaction x:seller ?seller .
    ?Transaction x:with ?amount .
  }
}
AGGREGATE { (?tot, SUM(?amount), {?seller, ?market}) }
""",
}

CQELS_Q5 = """SELECT ?loc2 ?locName count(distinct ?coAuth) as ?noCoAuths
FROM NAMED <http://deri.org/floorplan/>
WHERE {
  STREAM <http://deri.org/streams/rfid> [TRIPLES 1] {?auth lv:detectedAt ?loc1}
  STREAM <http://deri.org/streams/rfid> [RANGE 30s] {?coAuth lv:detectedAt ?loc2}
  GRAPH <http://deri.org/floorplan/> {?loc2 lv:name ?locName. loc2 lv:connected ?loc1}
  {?paper dc:creator ?auth. ?paper dc:creator ?coAuth. ?auth foaf:name ``$Name$``}
  FILTER (?auth != ?coAuth)}
GROUP BY ?loc2 ?locName
"""

CQELS: dict[str, str] = {
    "Q1": CONFERENCE
    + """SELECT ?locName ?locDesc
FROM NAMED <http://deri.org/floorplan/>
WHERE {
  STREAM <http://deri.org/streams/rfid> [NOW] {?person lv:detectedAt ?loc}
  GRAPH <http://deri.org/floorplan/> {?loc lv:name ?locName. ?loc lv:desc ?locDesc}
  ?person foaf:name ``$Name$``. }
""",
    "Q2": CONFERENCE
    + """CONSTRUCT {?person1 lv:reachable ?person2}
FROM NAMED <http://deri.org/floorplan/>
WHERE {
  STREAM <http://deri.org/streams/rfid> [NOW]      {?person1 lv:detectedAt ?loc1}
  STREAM <http://deri.org/streams/rfid> [RANGE 3s] {?person2 lv:detectedAt ?loc2}
  GRAPH <http://deri.org/floorplan/>              {?loc1 lv:connected ?loc2} }
""",
    "Q3": CONFERENCE
    + """SELECT ?coAuthName
FROM NAMED <http://deri.org/floorplan/>
WHERE {
  STREAM <http://deri.org/streams/rfid> [TRIPLES 1] {?auth lv:detectedAt ?loc}
  STREAM <http://deri.org/streams/rfid> [RANGE 5s] {?coAuth lv:detectedAt ?loc}
  { ?paper dc:creator ?auth. ?paper dc:creator ?coAuth.
    ?auth foaf:name ``$Name$``. ?coAuth foaf:name ?coAuthName}
  FILTER (?auth != ?coAuth) }
""",
    "Q4": CONFERENCE
    + """SELECT ?editorName
WHERE {
  STREAM <http://deri.org/streams/rfid> [TRIPLES 1] {?auth lv:detectedAt ?loc1}
  STREAM <http://deri.org/streams/rfid> [RANGE 15s] {?editor lv:detectedAt ?loc2}
  GRAPH <http://deri.org/floorplan/> {?loc1 lv:connected ?loc2}
  ?paper dc:creator ?auth. ?paper dcterms:partOf ?proceeding.
  ?proceeding swrc:editor ?editor. ?editor foaf:name ?editorName.
  ?auth foaf:name ``$Name$`` }
""",
    "Q5, with ?loc2 in place of loc2": CONFERENCE + CQELS_Q5.replace(" loc2 lv:", " ?loc2 lv:"),
}

TAXI = """SELECT ?taxi (AVERAGE(?fare/(?tripTime/3600)) AS ?hourlyRate)
FROM NAMED WINDOW :W1 ON nyctaxi:fare [COUNT 1000]
FROM NAMED WINDOW :W2 ON nyctaxi:pickup
[RANGE PT2H @:pickupTime]
FROM NAMED WINDOW :W3 ON nyctaxi:dropoff
[RANGE PT1H @:dropoffTime]
WHERE {
  WINDOW :W1{ ?trans :fare ?fare. ?trans :pickupTime ?pTime}
  WINDOW :W2{ ?ride :taxi ?taxi. ?ride :pickupTime ?pTime}
  WINDOW :W3{ ?ride :tripTime ?tripTime}
}
GROUP BY ?taxi
"""

TAXI_PREFIXES = """PREFIX : <http://example.org/taxi#>
PREFIX nyctaxi: <http://example.org/streams/>
"""

INFLUENTIAL_USERS = """REGISTER STREAM Ans(q) AS CONSTRUCT{ ?user a :InfluentialUser }
WHERE {
WINDOW W(200,20) ON S { ?user :isMentionedIn ?post [...] }
SERVICE BKG{ ?user :hasFollowers ?followerCount }
... }
"""

PRINTED: dict[str, str] = {
    **{f"C-SPARQL {name}": text for name, text in CSPARQL.items()},
    **{f"CQELS {name}": text for name, text in CQELS.items()},
    "Operator-aware taxi query": TAXI_PREFIXES + TAXI,
}


@dataclass(frozen=True)
class BrokenQuery:
    """A printed text that is no query, and what the error says and points at."""

    text: str
    reason: str
    message: str
    pointed_at: str


BROKEN: dict[str, BrokenQuery] = {
    "CQELS Q5": BrokenQuery(
        CONFERENCE + CQELS_Q5,
        "the question mark of ?loc2 is missing",
        "did you mean ?loc2",
        "loc2 lv:connected",
    ),
    "View maintenance, listing 1.1": BrokenQuery(
        INFLUENTIAL_USERS,
        "a sketch: Ans(q) is no name, W(200,20) no window, [...] stands for what was left out",
        "( cannot stand here",
        "(q) AS",
    ),
}
