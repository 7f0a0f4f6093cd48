"""Invented bibliographies of any size that follow the DBLP schema of SP2Bench, as N-Triples.

    python -m benchmarks.dblp 10000000 > dblp.nt

Journals with articles, proceedings with papers, persons with names; attributes are as frequent as they are in DBLP, by
SP2Bench's counts; a few authors write much and most little. SP2Bench's persons are blank nodes; here they have IRIs,
because a stream speaks of them. Its special author is `Author 0` here, who writes forty papers in the first years, with
others who attend the conference, and then no more.

The bibliography of n triples begins that of more: what is asked of the first years has the same answers in all sizes.
Nothing but numbers is remembered, so memory does not grow.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import TextIO

_RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_SEE_ALSO = "<http://www.w3.org/2000/01/rdf-schema#seeAlso>"
_BENCH = "http://localhost/vocabulary/bench/"
_DC, _DCTERMS = "http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/"
_FOAF, _SWRC = "http://xmlns.com/foaf/0.1/", "http://swrc.ontoware.org/ontology#"
_TITLE, _CREATOR, _PUBLISHER = (f"<{_DC}{name}>" for name in ("title", "creator", "publisher"))
_ISSUED, _PART_OF, _REFERENCES = (f"<{_DCTERMS}{name}>" for name in ("issued", "partOf", "references"))
_NAME, _HOMEPAGE = f"<{_FOAF}name>", f"<{_FOAF}homepage>"
_EDITOR, _JOURNAL, _PAGES, _VOLUME = (f"<{_SWRC}{name}>" for name in ("editor", "journal", "pages", "volume"))
_YEAR = '"^^<http://www.w3.org/2001/XMLSchema#integer>'

FIRST_YEAR = 1936
ATTENDEES = 400
"""So many authors, the first ones, are there from ten thousand triples on."""
WATCHED_PAPERS = 40
_PAPERS, _ARTICLES = 25, 15
"""How many papers proceedings have, and articles a volume of a journal."""
_NEW_AUTHOR = 0.45
_BLOCKS_A_YEAR = 3


def person(number: int) -> str:
    """The IRI of an author."""
    return f"http://localhost/persons/author{number}"


def triples() -> Iterator[str]:
    """All lines, without an end."""
    chance = Random(11)
    authors = ATTENDEES
    for number in range(authors):
        yield from _person(number)
    documents = papers = block = 0
    while True:
        year = FIRST_YEAR + min(90, block // _BLOCKS_A_YEAR)
        for is_paper, count in ((True, _PAPERS), (False, _ARTICLES)):
            container = f"<http://localhost/{'proceedings' if is_paper else 'journals'}/{block}>"
            yield from _container(container, block, year, is_paper, chance, authors)
            for _ in range(count):
                is_watched = is_paper and papers < 2 * WATCHED_PAPERS and papers % 2 == 0
                papers += is_paper
                creators = _with_the_watched(chance) if is_watched else _creators(chance, authors)
                for creator in creators:
                    if creator >= authors:
                        authors = creator + 1
                        yield from _person(creator)
                yield from _document(documents, container, year, is_paper, creators, chance)
                documents += 1
        block += 1


def _person(number: int) -> tuple[str, ...]:
    subject = f"<{person(number)}>"
    return (f"{subject} {_RDF_TYPE} <{_FOAF}Person> .\n", f'{subject} {_NAME} "Author {number}" .\n')


def _with_the_watched(chance: Random) -> tuple[int, ...]:
    return (0, *chance.sample(range(1, ATTENDEES), 2))


def _creators(chance: Random, authors: int) -> tuple[int, ...]:
    """Who writes a document: some who have written much, some who are new."""
    random = chance.random
    found: dict[int, None] = {}
    for _ in range(1 + int(3.4 * random())):
        if random() < _NEW_AUTHOR:
            found[authors] = None
            authors += 1
        else:
            # The square makes early authors, who were often chosen before, be chosen more often.
            found[1 + int(random() ** 2 * (authors - 1))] = None
    return tuple(found)


def _container(name: str, number: int, year: int, is_paper: bool, chance: Random, authors: int) -> Iterator[str]:
    kind = "Proceedings" if is_paper else "Journal"
    yield f"{name} {_RDF_TYPE} <{_BENCH}{kind}> .\n"
    yield f'{name} {_TITLE} "{kind} {number} ({year})" .\n'
    yield f'{name} {_ISSUED} "{year}{_YEAR} .\n'
    if not is_paper:
        yield f'{name} {_VOLUME} "{number}{_YEAR} .\n'
        return
    yield f'{name} {_PUBLISHER} "Publisher {number % 50}" .\n'
    most = ATTENDEES if number < 2 * WATCHED_PAPERS // _PAPERS + 2 else authors
    for editor in {1 + int(chance.random() * (most - 1)) for _ in range(3)}:
        yield f"{name} {_EDITOR} <{person(editor)}> .\n"


def _document(
    number: int, container: str, year: int, is_paper: bool, creators: tuple[int, ...], chance: Random
) -> list[str]:
    name = f"<http://localhost/publications/{number}>"
    kind, inside = ("Inproceedings", _PART_OF) if is_paper else ("Article", _JOURNAL)
    lines = [
        f"{name} {_RDF_TYPE} <{_BENCH}{kind}> .\n",
        f'{name} {_TITLE} "On subject {number} and what follows from it" .\n',
        f"{name} {inside} {container} .\n",
        f'{name} {_ISSUED} "{year}{_YEAR} .\n',
    ]
    lines += [f"{name} {_CREATOR} <{person(creator)}> .\n" for creator in creators]
    random = chance.random
    if random() < 0.95:
        lines.append(f'{name} {_PAGES} "{1 + number % 400}" .\n')
    if random() < 0.6:
        lines.append(f'{name} {_SEE_ALSO} "http://localhost/ee/{number}" .\n')
    if random() < 0.6:
        lines.append(f'{name} {_HOMEPAGE} "http://localhost/home/{number}" .\n')
    if number and random() < 0.1:
        lines.append(f"{name} {_REFERENCES} <http://localhost/publications/{int(random() * number)}> .\n")
    return lines


def write(count: int, out: TextIO) -> None:
    """The first so many triples."""
    lines = triples()
    while count > 0:
        out.write("".join(islice(lines, min(count, 100_000))))
        count -= 100_000


def write_file(count: int, path: Path) -> None:
    """The first so many triples into a file."""
    with path.open("w", encoding="utf-8", newline="\n", buffering=1 << 20) as out:
        write(count, out)


if __name__ == "__main__":
    write(int(sys.argv[1]), sys.stdout)
