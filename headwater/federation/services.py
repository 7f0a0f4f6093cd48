"""Makes the SERVICE clauses of a process from plan nodes and their options.

    services = Services(ServiceSettings((EndpointSettings("https://example.org/sparql"),)))
    clause = services.make_clause(node, keys=(Variable("user"),), slide=60_000_000)

All clauses of a process share one client and one latency model per endpoint, so that its limits hold for all of them.
Experiments pass their own `clock`, `runner`, `remote` and `policies`, for virtual time and a simulated remote; `rates`
finds the change rates of a clause, by default in the settings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from headwater.algebra.nodes import Node, Project, Service
from headwater.algebra.scope import visible_variables
from headwater.algebra.to_sparql import to_sparql
from headwater.errors import SettingError
from headwater.federation.endpoint.bound_fetcher import BoundFetcher
from headwater.federation.endpoint.clock import Clock, EventTimeClock, SystemClock
from headwater.federation.endpoint.contact import Contact, NoEndpoint
from headwater.federation.endpoint.endpoint_errors import EndpointError
from headwater.federation.endpoint.endpoints import EndpointFromKey, Endpoints
from headwater.federation.endpoint.remote import Remote
from headwater.federation.endpoint.request_queries import RequestQueries
from headwater.federation.policy.latency_model import LatencyModel
from headwater.federation.policy.maintainer import Maintainer
from headwater.federation.policy.policies import Policy, make_policy
from headwater.federation.policy.request_runner import RequestRunner
from headwater.federation.service_rows import ServiceClause
from headwater.federation.service_settings import ServiceSettings
from headwater.federation.strategies import HashJoinStrategy, ServiceStrategy, ViewStrategy
from headwater.federation.view.change_model import ChangeModel
from headwater.federation.view.given_rates import GivenRates
from headwater.federation.view.local_view import CAPACITY, LocalView
from headwater.federation.view.service_quality import Goal, Goals
from headwater.language.service_options import (
    Preference,
    RatesSource,
    ServiceClock,
    ServiceOptions,
    Strategy,
    strategy_of,
)
from headwater.terms.model import SECOND, Row, Variable
from headwater.terms.redaction import redact_url

KeyVariables = tuple[Variable, ...]


class Services:
    """Makes SERVICE clauses; they share clients and latency models."""

    def __init__(
        self,
        settings: ServiceSettings | None = None,
        *,
        clock: Clock | None = None,
        runner: Callable[[], RequestRunner] | None = None,
        remote: Callable[[Service, KeyVariables], Remote] | None = None,
        policies: Callable[[str, LocalView], Policy] = make_policy,
        rates: Callable[[RatesSource], GivenRates] | None = None,
    ) -> None:
        settings = settings or ServiceSettings()
        self._endpoints = Endpoints(settings.endpoints, settings.egress)
        self._clock = clock or SystemClock()
        self._runner = runner
        self._make_remote = remote or self._endpoint_remote
        self._policies = policies
        self._rates = rates or dict(settings.rates).__getitem__
        self._latencies: defaultdict[str, LatencyModel] = defaultdict(LatencyModel)

    def make_clause(self, node: Service, keys: KeyVariables, slide: int) -> ServiceClause:
        """Make the clause of a node whose keys are these variables; `slide` is about the distance of two ticks."""
        contact = Contact(self._make_remote(node, keys))
        event_time = EventTimeClock() if node.options and node.options.clock is ServiceClock.STREAM else None
        return ServiceClause(
            strategy=self._make_strategy(node, keys, contact, slide, event_time or self._clock),
            event_time=event_time,
            contact=contact,
            variables=visible_variables(node),
            keys=keys,
            is_silent=node.silent,
            is_strict=node.options is None and not node.silent,
        )

    def fetch_solutions(self, url: str, pattern: Node) -> Sequence[Row]:
        """All solutions of a pattern at an endpoint, for those who cannot bind keys: the reference, and updates."""
        variables = visible_variables(pattern)
        table = self._endpoints.client_of(url).select(to_sparql(Project(pattern, variables)))
        return tuple(table.project([variable.value for variable in variables]))

    def _endpoint_remote(self, node: Service, keys: KeyVariables) -> Remote:
        if isinstance(node.endpoint, Variable):
            return EndpointFromKey(self._endpoints, node.endpoint, node.inner, keys)
        try:
            endpoint = self._endpoints.client_of(node.endpoint.value)
        except EndpointError as error:
            return NoEndpoint(redact_url(node.endpoint.value), str(error))
        return BoundFetcher(endpoint, RequestQueries.for_pattern(node.inner, keys))

    def _make_strategy(
        self, node: Service, keys: KeyVariables, contact: Contact, slide: int, ages: Clock
    ) -> ServiceStrategy:
        """The strategy of a SERVICE clause, as its OPTIONs choose it; `ages` is the clock of ages."""
        options = node.options or ServiceOptions()
        strategy = strategy_of(node.options)
        if strategy is Strategy.HASH:
            if isinstance(node.endpoint, Variable):
                raise SettingError(
                    f"STRATEGY HASH needs one endpoint, SERVICE {node.endpoint} learns them from the data"
                )
            return HashJoinStrategy(
                contact, RequestQueries.for_pattern(node.inner, keys), goals_of(options), self._clock, ages
            )
        is_loop = strategy is Strategy.LOOP
        rates = None if options.rates is None else self._rates(options.rates).for_keys(keys)
        view = LocalView(ChangeModel(slide), options.entries or CAPACITY, rates)
        proposer, ranker = self._policies("LRU" if is_loop else options.chosen_policy, view)
        goals = goals_of(options)
        if is_loop:
            # All keys of the window are requested; only the latency may end that.
            goals = Goals(accuracy=None if goals.latency is None else goals.accuracy, latency=goals.latency)
        maintainer = Maintainer(
            view,
            contact,
            proposer,
            ranker,
            goals,
            clock=self._clock,
            runner=None if self._runner is None else self._runner(),
            latency=self._latencies[contact.name],
            ages=ages,
        )
        return ViewStrategy(maintainer, needs_fill=bool(options.fill) and not is_loop, is_window_only=is_loop)


def goals_of(options: ServiceOptions) -> Goals:
    """The goals in the options of a clause."""
    return Goals(
        accuracy=options.accuracy,
        latency=None if options.latency is None else options.latency / SECOND,
        budget=options.budget,
        preferred=Goal.ACCURACY if options.prefer is Preference.ACCURACY else Goal.LATENCY,
    )
