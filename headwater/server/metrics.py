"""Metrics for Prometheus: the server, the engine, queries and streams, and numbers of answers where a query says so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from headwater.server.access import Caller
from headwater.server.server_services import ServerServices

_MOST_ROWS = 1_000
_RUN_COUNTERS = {
    "elements": "Elements that came in from streams",
    "late": "Elements that came after their time had been answered",
    "bad": "Elements that could not be read",
    "ahead": "Elements that jumped too far ahead in time",
    "batches": "Batches that were evaluated",
    "ticks": "Answers of all queries",
}
_QUERY_COUNTERS = {
    "elements": "Elements of the streams of a query",
    "ticks": "Answers of a query",
    "rows": "Rows of the answers of a query",
    "late": "Late elements of the streams of a query",
    "bad": "Bad elements of the streams of a query",
}
_QUERY_GAUGES = {
    "lag": ("lag_seconds", "How far its last tick is behind its newest element", 1e-6),
    "watermark": ("watermark_seconds", "How far its streams have come, since 1970", 1e-6),
    "rate": ("elements_per_second", "Elements a second in the last batch", 1.0),
    "state_rows": ("window_triples", "Triples in its windows", 1.0),
    "state_bytes": ("state_bytes", "Memory of its windows and operators", 1.0),
}
_STATES = ("running", "paused", "suspended", "failed", "waiting")
_NUMBERS = ("integer", "decimal", "double", "float", "int", "long", "short", "byte", "nonNegativeInteger")


class ServerCollector(Collector):
    """Makes the metrics from what is known when they are asked for.

    For a caller that is confined to some names, they have the queries and streams of those names alone, and no counts
    of the whole run.
    """

    def __init__(self, services: ServerServices, caller: Caller | None = None) -> None:
        self._services = services
        self._caller = Caller() if caller is None else caller

    def collect(self) -> Iterator[Any]:
        services = self._services
        yield _gauge("headwater_engine_up", "Whether the engine process takes calls", services.engine.is_ready)
        starts = CounterMetricFamily("headwater_engine_starts", "How often the engine process was begun")
        starts.add_metric([], services.engine.starts)
        yield starts
        status = services.visible_status(self._caller)
        yield _gauge("headwater_subscriptions", "Subscriptions that are open", status["subscriptions"])
        run = status["run"]
        for name, help in _RUN_COUNTERS.items() if self._caller.has_all else ():
            family = CounterMetricFamily(f"headwater_{name}", help)
            family.add_metric([], run.get(name, 0))
            yield family
        queries: dict[str, Any] = status["queries"]
        yield from _query_families(queries)
        unread = GaugeMetricFamily(
            "headwater_stream_unread_bytes", "Bytes that wait to be evaluated", labels=["stream"]
        )
        for name, stream in status["streams"].items():
            unread.add_metric([name], stream.get("unread_bytes", 0))
        yield unread
        values = GaugeMetricFamily(
            "headwater_answer_value",
            "Numbers of the newest answers of queries that are registered with gauges",
            labels=["query", "column", "row"],
        )
        for name, query in queries.items():
            if query.get("gauges"):
                for column, row, value in _numbers_of(self._latest(name)):
                    values.add_metric([name, column, row], value)
        yield values

    def _latest(self, query: str) -> dict[str, Any] | None:
        found = self._services.fan_out.reader(query).last_record()
        return None if found is None else json.loads(found[0].lines[-1])


def _gauge(name: str, help: str, value: float) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, help)
    family.add_metric([], float(value))
    return family


def _query_families(queries: dict[str, Any]) -> Iterator[Any]:
    states = GaugeMetricFamily("headwater_query_status", "1 for the state of a query", labels=["query", "status"])
    for name, query in queries.items():
        for state in _STATES:
            states.add_metric([name, state], float(query.get("status") == state))
    yield states
    for key, help in _QUERY_COUNTERS.items():
        counter = CounterMetricFamily(f"headwater_query_{key}", help, labels=["query"])
        for name, query in queries.items():
            counter.add_metric([name], query.get("counts", {}).get(key, 0))
        yield counter
    for key, (called, help, factor) in _QUERY_GAUGES.items():
        gauge = GaugeMetricFamily(f"headwater_query_{called}", help, labels=["query"])
        for name, query in queries.items():
            value = query.get("counts", {}).get(key)
            if value is not None:
                gauge.add_metric([name], value * factor)
        yield gauge


def _numbers_of(answer: dict[str, Any] | None) -> Iterable[tuple[str, str, float]]:
    """Column, row and value of each number of an answer; a row is called by its other columns."""
    if answer is None or "results" not in answer:
        return
    seen: set[tuple[str, str]] = set()
    for binding in answer["results"]["bindings"][:_MOST_ROWS]:
        numbers = {name: found for name, term in binding.items() if (found := _number(term)) is not None}
        others = [
            f"{name}={term['value']}" for name, term in binding.items() if name not in numbers and "value" in term
        ]
        row = ",".join(others)
        for column, value in numbers.items():
            # A metric may stand once only.
            if (column, row) not in seen:
                seen.add((column, row))
                yield column, row, value


def _number(term: dict[str, Any]) -> float | None:
    if term.get("datatype", "").rpartition("#")[2] not in _NUMBERS:
        return None
    try:
        return float(term["value"])
    except (TypeError, ValueError):
        return None


def make_registry(services: ServerServices) -> tuple[CollectorRegistry, Counter]:
    """The registry of a server, and the counter of its answers by method and status."""
    registry = CollectorRegistry()
    registry.register(ServerCollector(services))
    answers = Counter("headwater_http_responses", "Answers over HTTP", ["method", "status"], registry=registry)
    return registry, answers
