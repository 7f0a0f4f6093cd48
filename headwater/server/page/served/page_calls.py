"""What the engine process does for the page alone: it reads what is there, and changes nothing.

Values are plain: the fields of the dataclasses of `page_access` by their names.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from headwater.datasets.dataset import DataSet
from headwater.engine.engine import Engine
from headwater.engine.query_handle import Query
from headwater.errors import StateError
from headwater.server.page.embedded.engine_inspection import EngineInspection, WindowSpan, memory_bytes
from headwater.server.page.embedded.linked_data_queries import answer_sparql
from headwater.server.page.embedded.page_values import joins_table
from headwater.server.page.embedded.recent_elements import readable_source
from headwater.server.page.embedded.template_trials import try_rows
from headwater.server.process.call_errors import UnknownName
from headwater.server.process.engine_service import EngineService
from headwater.sources.source import SourceError
from headwater.terms.names import iri_to_name, name_to_iri

PAGE_CALLS = (
    *("page_plan", "page_windows", "page_why", "page_stream", "page_completions", "page_process"),
    *("page_sparql", "page_template"),
)
"""The methods that may be called."""


class PageCalls:
    """Looks at the engine of a service, for the page."""

    def __init__(self, service: EngineService) -> None:
        self._service = service
        self._datasets: dict[str, DataSet] = {}
        self._reading = threading.Lock()

    def _inspect(self) -> EngineInspection:
        service = self._service
        sources = {name_to_iri(name).value: source for name, source in service.sources().items()}
        return EngineInspection(sources, service.engine.queries, self._open_datasets(), service.letters)

    def _open_datasets(self) -> dict[str, DataSet]:
        """The data sets of the engine, each opened once for the page."""
        with self._reading:
            found: dict[str, DataSet] = {}
            for name, folder in self._service.data_folders.items():
                data = self._datasets.get(name)
                found[name] = data if data is not None and data.folder == folder else DataSet.open(folder)
            self._datasets = found
            return found

    def _query(self, name: str) -> Query:
        for query in self._service.engine.queries:
            if query.name == name:
                return query
        raise StateError(f"the query {iri_to_name(name)} is not evaluated now: resume it first")

    def page_plan(self, name: str) -> dict[str, Any]:
        """The plan of a query, and what its joins chose."""
        query = self._query(name)
        joins = joins_table(query.progress.choices)
        return {
            "mermaid": query.explain(format="mermaid", graph="operators"),
            "text": query.explain(),
            "columns": list(joins.columns),
            "rows": [list(row) for row in joins.rows],
        }

    def page_windows(self, name: str, spans: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
        """What the windows of a query held over these spans: label, from, before, how much."""
        inspection = self._inspect()
        found = inspection.windows(self._query(name), [WindowSpan(*span) for span in spans])
        return [asdict(one) for one in found]

    def page_why(self, name: str, time: int) -> list[dict[str, Any]]:
        """How many solutions each step of the plan has at a tick."""
        self._query(name)
        engine = Engine(in_process=True, locate_streams=False, egress=[])
        for folder in dict.fromkeys(self._service.data_folders.values()):
            engine.dataset(folder)
        for stream, source in self._service.sources().items():
            readable = readable_source(source)
            if readable is not None:
                engine.stream(stream, readable)
        for other, entry in self._service.active_entries().items():
            engine.register(entry.text, name=other, **entry.options)
        try:
            explanation = engine.why(name, time)
        except SourceError as error:
            raise StateError(str(error)) from None
        return [
            {"depth": one.depth, "text": one.text, "solutions": one.solutions, "is_end": one.is_end}
            for one in explanation.steps
        ]

    def page_stream(self, name: str) -> dict[str, Any]:
        """What a stream brought last."""
        iri = name_to_iri(name).value
        inspection = self._inspect()
        if iri not in inspection.sources:
            raise UnknownName(f"there is no stream {iri_to_name(iri)}")
        return asdict(inspection.stream_details(iri))

    def page_completions(self) -> list[dict[str, Any]]:
        """What the editor may offer."""
        return [asdict(one) for one in self._inspect().completions()]

    def page_process(self) -> dict[str, Any]:
        """The data sets, and the memory of the process."""
        return {"datasets": [asdict(one) for one in self._inspect().describe_datasets()], "memory": memory_bytes()}

    def page_sparql(self, text: str) -> dict[str, Any]:
        """The result of a SPARQL query over the linked data."""
        return asdict(answer_sparql(text, list(dict.fromkeys(self._service.data_folders.values()))))

    def page_template(self, template: str, rows: str, ending: str) -> dict[str, Any]:
        """What a template makes of rows."""
        return asdict(try_rows(template, rows, ending))
