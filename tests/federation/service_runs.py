"""A query with SERVICE over a small stream of mentions, fed as a test wants."""

from __future__ import annotations

from collections.abc import Iterable

from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.answers import Answer
from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.federation.service_evaluator import ServiceEvaluator, make_evaluator_factory
from headwater.federation.services import Services
from headwater.federation.strategies import ViewStrategy
from headwater.language.parser import parse
from headwater.terms.model import SECOND, BlankNode, Element, NamedNode, Term, Triple
from headwater.windows.settings import resolve_settings
from tests.reference_programs import reference_program

EX = "http://example.org/"
MENTIONS = EX + "mentions"


def iri(name: str) -> NamedNode:
    return NamedNode(EX + name)


def mention(second: float, who: str, post: str = "post") -> Element:
    """Someone is mentioned in a post; `_:` begins a blank node."""
    subject = BlankNode(who[2:]) if who.startswith("_:") else iri(who)
    return Element(round(second * SECOND), (Triple(subject, iri("mentionedIn"), iri(post)),))


def heartbeat(second: float) -> Element:
    """Something that moves the time on and that no query here looks at."""
    return Element(round(second * SECOND), (Triple(iri("heart"), iri("beats"), iri("on")),))


class Run:
    """One query, evaluated by the kernel with `services`, or by the definition without."""

    def __init__(self, text: str, services: Services | None = None, static: Store | None = None) -> None:
        self.text = f"PREFIX : <{EX}> {text}"
        plan = plan_query(parse(self.text), streams=[MENTIONS])
        registered = [RegisteredQuery(plan, resolve_settings(plan))]
        data = static or Store()
        self.program = (
            reference_program(registered, data)
            if services is None
            else Program(registered, data, 0, make_evaluator_factory(services))
        )

    @property
    def evaluator(self) -> ServiceEvaluator:
        (found,) = self.program.evaluators.values()
        assert isinstance(found, ServiceEvaluator), "the kernel does not evaluate this"
        return found

    @property
    def maintained(self) -> ViewStrategy:
        """The view behind the only SERVICE clause."""
        (clause,) = self.evaluator.clauses
        assert isinstance(clause.strategy, ViewStrategy)
        return clause.strategy

    def feed(self, elements: Iterable[Element], ended: bool = False) -> list[Answer]:
        return list(self.program.advance({MENTIONS: list(elements)}, ended=[MENTIONS] if ended else ()).answers)

    def all(self, elements: Iterable[Element]) -> list[Answer]:
        return self.feed(elements, ended=True)


def shown(answers: Iterable[Answer]) -> list[list[tuple[str, ...]]]:
    """The rows of each answer in short words."""
    return [[tuple(map(_word, row)) for row in answer.rows] for answer in answers]


def _word(term: Term | None) -> str:
    return "-" if term is None else str(getattr(term, "value", term)).removeprefix(EX)
