"""The query files of the benchmarks, read in place, as texts that the parser is given.

Placeholders are filled in here. Prefixes that the RSP-QL collections leave out are put before them. `BROKEN` lists
what is plainly no query, with the reason and with the text at which the error must point.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from tests.shared_data import shared_data

OMITTED_PREFIXES = """PREFIX : <http://example.org/>
PREFIX srbench: <http://www.cwi.nl/SRBench/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX units: <http://www.opengis.net/def/uom/OGC/1.0/>
"""


@dataclass(frozen=True)
class Broken:
    """Why a text is no query, and the beginning of the text at which the error must point."""

    reason: str
    pointed_at: str


BROKEN: dict[str, Broken] = {
    "taxi 1": Broken("declares the window :wind and uses :win", "WINDOW :win {"),
    "taxi 2": Broken("the bracket before count is never closed", "(count(distinct ?taxi) as ?taxinumber"),
    "taxi 3": Broken("the stream is given as s, a prefix without its colon", "s [RANGE PT30M"),
    "taxi 7": Broken("no full stops between triples", "?newPickups gn:neighbourhood"),
    "taxi 8": Broken("writes ?as for AS, and FROM and CONSTRUCT inside a sub-query", "SUM(?total - ?tax - ?tips) ?as"),
    "srbench-rspql 4": Broken("declares the window :win and uses :w", "WINDOW :w {"),
    **{
        f"lsbench/wukong/{name}": Broken(
            "another notation: streams by bare name, arrows such as <-T after each triple", stream
        )
        for name, stream in {
            "Q1.txt": "poststream",
            "Q2.txt": "poststream",
            "Q3.txt": "poststream",
            "Q4.txt": "poststream",
            "Q5.txt": "photostream",
            "Q6.txt": "poststream",
        }.items()
    },
}


def query_files() -> dict[str, str]:
    """CityBench, CSRBench, SRBench and LSBench, by path below the data folder."""
    texts: dict[str, str] = {}
    for folder in ("citybench/queries/csparql", "citybench/queries/cqels", "srbench/queries", "lsbench/csparql"):
        for path in sorted(shared_data(*folder.split("/")).glob("*.rq")):
            texts[f"{folder}/{path.name}"] = path.read_text().replace("<{TEST_FILE}>", "<http://deri.org/poststream>")
    for path in sorted(shared_data("csrbench", "dialects").glob("*.rq")):
        text = path.read_text()
        for name, value in json.loads(path.with_suffix(".json").read_text())["vars"].items():
            text = text.replace(f"${{{name}}}", value)
        texts[f"csrbench/dialects/{path.name}"] = text
    return texts


def rspql_collections() -> dict[str, str]:
    """The queries inside the two Markdown collections, numbered in their order."""
    taxi = shared_data("taxi", "rspql-sample-queries.md").read_text()
    blocks = [
        block for block in re.findall(r"```\s*\n(.*?)```", taxi, re.DOTALL) if re.search("SELECT|CONSTRUCT", block)
    ]
    srbench = re.split(r"^##.*\n", shared_data("srbench", "rspql-queries.md").read_text(), flags=re.MULTILINE)[1:]
    numbered = [
        *((f"taxi {number}", text) for number, text in enumerate(blocks, 1)),
        *((f"srbench-rspql {number}", text) for number, text in enumerate(srbench, 1)),
    ]
    return {name: OMITTED_PREFIXES + text for name, text in numbered}


def wukong_files() -> dict[str, str]:
    """LSBench in the notation of another system."""
    return {
        f"lsbench/wukong/{path.name}": path.read_text()
        for path in sorted(shared_data("lsbench", "wukong").glob("*.txt"))
    }
