"""The table of section 2.5 of the C-SPARQL paper, from hundreds of cars, and the query of section 2.4 beside it."""

from __future__ import annotations

import pytest
from pyoxigraph import Quad, Store

from headwater.algebra.build import plan_query
from headwater.execution.answers import Answer
from headwater.execution.registered import RegisteredQuery
from headwater.language.parser import parse
from headwater.terms.model import SECOND, Element, Literal, NamedNode, Triple
from headwater.windows.settings import resolve_settings
from tests.reference_programs import reference_program

CITY, TRAFFIC = "http://linkedurbandata.org/city#", "http://linkedurbandata.org/traffic#"
PREFIXES = f"PREFIX c: <{CITY}> PREFIX t: <{TRAFFIC}>\n"
STREAM = "http://streams.org/citytollgates.trdf"
MINUTE = 60 * SECOND
FIRST, SECOND_EVALUATION = 400 * 5 * MINUTE, 401 * 5 * MINUTE

WHERE = f"""FROM STREAM <{STREAM}>
[RANGE 30m STEP 5m]
WHERE {{ ?tollgate t:registers ?car .
        ?district c:contains ?street .
        ?tollgate c:placedIn ?street . }}
"""
CONSTRUCT = "REGISTER STREAM CarsEnteringCityCenterPerDistrict\nCOMPUTED EVERY 5m AS\n" + (
    "CONSTRUCT {?district t:has-entering-cars ?passages}\n" + WHERE
)
SELECT = "REGISTER QUERY CarsEnteringCityCenterPerDistrict\nCOMPUTED EVERY 5m AS\n" + (
    "SELECT DISTINCT ?district ?passages\n" + WHERE
)


def city() -> Store:
    store = Store()
    for number in (1, 2, 3):
        street = NamedNode(f"{CITY}street{number}")
        store.add(Quad(NamedNode(f"{CITY}Distr{number}"), NamedNode(CITY + "contains"), street))
        store.add(Quad(NamedNode(f"{CITY}gate{number}"), NamedNode(CITY + "placedIn"), street))
    return store


def cars() -> list[Element]:
    """Cars such that the two evaluations see 100 and 75, then 130, 95 and 65: some stay, some go, some come."""
    made: list[tuple[int, int]] = []
    for gate, gone, staying, new in ((1, 40, 60, 70), (2, 35, 40, 55), (3, 0, 0, 65)):
        made += [(FIRST - 28 * MINUTE, gate)] * gone
        made += [(FIRST - 10 * MINUTE, gate)] * staying
        made += [(FIRST + 2 * MINUTE, gate)] * new
    return [
        Element(
            time,
            (
                Triple(
                    NamedNode(f"{CITY}gate{gate}"), NamedNode(TRAFFIC + "registers"), NamedNode(f"{CITY}car{number}")
                ),
            ),
        )
        for number, (time, gate) in enumerate(sorted(made))
    ]


def evaluations(text: str) -> dict[int, Answer]:
    plan = plan_query(parse(PREFIXES + text))
    step = reference_program([RegisteredQuery(plan, resolve_settings(plan))], city()).advance(
        {STREAM: cars()}, ended=[STREAM]
    )
    return {answer.time: answer for answer in step.answers}


def counts(answer: Answer) -> dict[str, int]:
    rows = answer.rows or tuple((triple.subject, triple.object) for triple in answer.triples)
    found = {}
    for district, number in rows:
        assert isinstance(district, NamedNode) and isinstance(number, Literal)
        found[district.value.removeprefix(CITY)] = int(number.value)
    return found


@pytest.mark.parametrize("form", [CONSTRUCT, SELECT], ids=["section 2.5", "section 2.4"])
def test_two_evaluations(form: str) -> None:
    answers = evaluations(form + "AGGREGATE {(?passages, COUNT, {?district})}")
    assert counts(answers[FIRST]) == {"Distr1": 100, "Distr2": 75}
    assert counts(answers[SECOND_EVALUATION]) == {"Distr1": 130, "Distr2": 95, "Distr3": 65}


def test_the_grouping_as_printed_counts_each_car_once() -> None:
    """Section 2.5 prints the groups as district, tollgate and car: then every group has one row, not the table's."""
    answers = evaluations(CONSTRUCT + "AGGREGATE {(?passages,\n COUNT, {?district, ?tollgate, ?car})}")
    assert counts(answers[SECOND_EVALUATION]) == {"Distr1": 1, "Distr2": 1, "Distr3": 1}
