"""Queries that the tests of explanations share."""

from __future__ import annotations

from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryPlan
from headwater.language.parser import parse

PAPER = """
REGISTER QUERY TotalAmountPerDayAndBroker AS
PREFIX b: <http://brokerscentral.org/accounts#>
PREFIX x: <http://stockexchange.org/exchanges#>
SELECT DISTINCT ?broker ?total
FROM <http://brokerscentral.org/brokers.rdf>
FROM STREAM <http://stockexchange.org/market.trdf> [RANGE 24h TUMBLING]
WHERE {
  ?broker b:is_from ?country .
  ?broker x:does ?tx .
  ?tx x:with ?amount .
  FILTER (?country = 'CH' && ?amount >= 10)
}
AGGREGATE { (?total, SUM(?amount), ?broker) }
"""
"""The example of section 3.4 of the C-SPARQL paper, its conjunction spelt as SPARQL spells it."""

NAMED_GRAPHS = """
PREFIX b: <http://brokerscentral.org/accounts#>
PREFIX x: <http://stockexchange.org/exchanges#>
SELECT ?broker
FROM NAMED <http://brokerscentral.org/brokers.rdf>
FROM NAMED STREAM <http://stockexchange.org/market.trdf> [RANGE 24h TUMBLING]
WHERE {
  GRAPH <http://brokerscentral.org/brokers.rdf> { ?broker b:is_from ?country }
  GRAPH <http://stockexchange.org/market.trdf> { ?broker x:does ?tx . ?tx x:with ?amount }
}
"""
"""The same with each source named, so that static and streaming knowledge stand apart."""

EVERYTHING = """
PREFIX : <http://ex.org/>
SELECT ISTREAM ?room (COUNT(DISTINCT ?p) AS ?n) (AVG(?v) * 2 AS ?twice)
FROM NAMED WINDOW :w1 ON :people [RANGE PT10M STEP PT1M]
FROM NAMED WINDOW :w2 ON :temperatures [ELEMENTS 100]
WHERE {
  WINDOW :w1 { ?p :in ?room . OPTIONAL { ?p :name ?name FILTER(?name != "x") } }
  WINDOW :w2 { { ?s :at ?room ; :value ?v } UNION { ?s :in/:part* ?room . ?s :old [ :value ?v ] } }
  { SELECT ?room (MAX(?z) AS ?big) { ?room :has ?z . ?p :is ?z } GROUP BY ?room ORDER BY ?big LIMIT 5 }
  GRAPH ?g { ?room a :Room }
  MINUS { ?room :closed true }
  BIND(?v + ?big AS ?sum)
  VALUES ?room { :r1 :r2 }
  FILTER NOT EXISTS { ?p :left ?room . ?p :why ?why }
  FILTER(?v > 3)
  SERVICE <http://end/point> { ?room :label ?label }
}
GROUP BY ?room HAVING (COUNT(DISTINCT ?p) > 3) ORDER BY DESC(?n) LIMIT 10
"""
"""Every operator that a plan can have, save those of C-SPARQL."""


def plan_of(text: str, *streams: str) -> QueryPlan:
    """The plan of a query text."""
    return plan_query(parse(text), streams=streams)
