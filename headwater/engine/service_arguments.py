"""SERVICE as the API has it: goals for all clauses of a query, and settings of endpoints.

    engine.endpoint("https://example.org/sparql", per_second=5, bearer=token)
    engine.register(text, service=ServiceOptions(latency=200_000, budget=10))
    engine.register(text, service={"latency": "200ms", "strategy": "view", "prefer": "latency"})

What a clause says itself in OPTION (…) holds against what is said for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from inspect import signature
from os import PathLike
from typing import Any

from headwater.algebra.nodes import Node, Service
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import map_plan, nodes_of
from headwater.egress.credentials import Credentials
from headwater.egress.policy import EgressPolicy
from headwater.errors import SettingError
from headwater.execution.registered import RegistrationError
from headwater.federation.endpoint.endpoint_settings import EndpointSettings, QueryMethod
from headwater.federation.endpoint.limits import Limits
from headwater.language.service_options import Preference, ServiceClock, ServiceOptions, Strategy, strategy_of
from headwater.terms.arguments import check_text, check_type
from headwater.terms.durations import parse_duration
from headwater.terms.model import Variable


def read_service_options(given: ServiceOptions | Mapping[str, Any] | None) -> ServiceOptions | None:
    """Options as they are, or from names and values: words in any case, a latency as µs or as a duration."""
    if given is None or isinstance(given, ServiceOptions):
        return given
    check_type("service", given, Mapping, "ServiceOptions(…), or a mapping such as {'budget': 10}")
    known = {field.name for field in fields(ServiceOptions)}
    for name in given.keys() - known:
        raise SettingError(f"{name!r} is no option of SERVICE: use {', '.join(sorted(known))}")
    values = dict(given)
    if isinstance(latency := values.get("latency"), str):
        values["latency"] = parse_duration(latency)
    if isinstance(rates := values.get("rates"), PathLike):
        values["rates"] = str(rates)
    for name, kind in (("prefer", Preference), ("strategy", Strategy), ("clock", ServiceClock)):
        if isinstance(word := values.get(name), str):
            if word.upper() not in kind.__members__:
                raise SettingError(f"{word!r} is no {name}: use one of {', '.join(kind.__members__)}")
            values[name] = kind[word.upper()]
    return ServiceOptions(**values)


def apply_service_options(plan: QueryPlan, defaults: ServiceOptions | None) -> QueryPlan:
    """The plan whose SERVICE clauses have these options where they have none of their own."""
    if defaults is None:
        return plan

    def change(node: Node) -> Node:
        if not isinstance(node, Service):
            return node
        options = defaults if node.options is None else node.options.over(defaults)
        if isinstance(node.endpoint, Variable) and (options.fill or strategy_of(options) is Strategy.HASH):
            raise RegistrationError(
                f"SERVICE {node.endpoint} learns its endpoints from the data: it has neither FILL nor STRATEGY HASH"
            )
        return replace(node, options=options)

    return replace(plan, root=map_plan(plan.root, change))


def check_service_addresses(plan: QueryPlan, egress: EgressPolicy | None) -> None:
    """Refuse a plan whose SERVICE clauses name addresses that are not allowed; SILENT ones go on without them."""
    for node in nodes_of(plan.root):
        if not isinstance(node, Service) or isinstance(node.endpoint, Variable):
            continue
        if egress is not None and not node.silent:
            egress.check_url(node.endpoint.value)


def read_endpoint_arguments(url: str, settings: Mapping[str, Any]) -> EndpointSettings:
    """The settings of an endpoint by their names; a `SettingError` for a name that is unknown."""
    known = list(signature(read_endpoint_settings).parameters)[1:]
    for name in settings.keys() - known:
        raise SettingError(f"{name!r} is no setting of an endpoint: use {', '.join(known)}")
    return read_endpoint_settings(check_text("url", url), **settings)


def read_endpoint_settings(
    url: str,
    *,
    bearer: str | None = None,
    user: str | None = None,
    password: str = "",
    headers: Mapping[str, str] | None = None,
    per_second: float | None = None,
    concurrent: int = 4,
    burst: int = 1,
    timeout: float | None = None,
    retries: int | None = None,
    largest_response: int | None = None,
    method: str | None = None,
) -> EndpointSettings:
    """The settings of an endpoint. `timeout` is in seconds, `largest_response` in bytes, `method` is GET or POST.

    Without credentials here, those of the environment hold (`headwater.egress.credentials`).
    """
    methods = {"GET": QueryMethod.GET, "POST": QueryMethod.POST_FORM}
    if method is not None and str(method).upper() not in methods:
        raise SettingError(f"{method!r} is no method for queries: use GET or POST")
    check_type("headers", headers or {}, Mapping, "a mapping of names to texts")
    credentials = None
    if bearer is not None or user is not None or headers:
        basic = None if user is None else (user, password)
        credentials = Credentials(bearer=bearer, basic=basic, headers=tuple((headers or {}).items()))
    given: dict[str, Any] = {
        "total_timeout": timeout,
        "retries": retries,
        "largest_response": largest_response,
        "query_method": None if method is None else methods[method.upper()],
    }
    limits = Limits(concurrent=concurrent, per_second=per_second, burst=burst)
    said = {name: value for name, value in given.items() if value is not None}
    return EndpointSettings(url, credentials=credentials, limits=limits, **said)
