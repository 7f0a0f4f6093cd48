"""The SERVICE clauses of a process: from a plan node and its options to what keeps its rows.

    services = Services(ServiceSettings((EndpointSettings("https://example.org/sparql"),)))
    clause = services.clause(node, keys=(Variable("user"),), slide=60_000_000)

All clauses of a process share one client per endpoint, so that its limits hold for all of them, and what is known of
its latency. `clock`, `runner`, `remote` and `policies` can be given, for experiments on virtual time with a simulated
remote.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from headwater.algebra.nodes import Service
from headwater.algebra.scope import visible
from headwater.errors import SettingError
from headwater.federation.endpoint.bound_fetcher import BoundFetcher
from headwater.federation.endpoint.clock import Clock, SystemClock
from headwater.federation.endpoint.contact import Contact, NoEndpoint
from headwater.federation.endpoint.endpoint_errors import EndpointError
from headwater.federation.endpoint.endpoints import EndpointFromKey, Endpoints
from headwater.federation.endpoint.remote import Remote
from headwater.federation.endpoint.request_queries import Questions
from headwater.federation.policy.latency_model import LatencyModel
from headwater.federation.policy.maintainer import Maintainer
from headwater.federation.policy.policies import DEFAULT_POLICY, Policy, policy
from headwater.federation.policy.request_runner import Runner
from headwater.federation.service_rows import Clause
from headwater.federation.service_settings import ServiceSettings
from headwater.federation.strategies import Hashed, Maintained, RowsOfKeys
from headwater.federation.view.change_model import ChangeModel
from headwater.federation.view.local_view import CAPACITY, LocalView
from headwater.federation.view.service_quality import Goal, Goals
from headwater.language.service_options import Preference, ServiceOptions, Strategy, strategy_of
from headwater.terms.model import SECOND, Variable

Keys = tuple[Variable, ...]


class Services:
    """Makes what SERVICE clauses need."""

    def __init__(
        self,
        settings: ServiceSettings | None = None,
        *,
        clock: Clock | None = None,
        runner: Callable[[], Runner] | None = None,
        remote: Callable[[Service, Keys], Remote] | None = None,
        policies: Callable[[str, LocalView], Policy] = policy,
    ) -> None:
        settings = settings or ServiceSettings()
        self._endpoints = Endpoints(settings.endpoints, settings.allowed)
        self._clock = clock or SystemClock()
        self._runner = runner
        self._remote = remote or self._endpoint
        self._policies = policies
        self._latencies: defaultdict[str, LatencyModel] = defaultdict(LatencyModel)

    def clause(self, node: Service, keys: Keys, slide: int) -> Clause:
        """What a clause needs that is asked for these variables; `slide` is about the distance of two ticks."""
        contact = Contact(self._remote(node, keys))
        return Clause(
            source=self._source(node, keys, contact, slide),
            contact=contact,
            variables=visible(node),
            keys=keys,
            silent=node.silent,
            strict=node.options is None and not node.silent,
        )

    def _endpoint(self, node: Service, keys: Keys) -> Remote:
        if isinstance(node.endpoint, Variable):
            return EndpointFromKey(self._endpoints, node.endpoint, node.inner, keys)
        try:
            endpoint = self._endpoints.of(node.endpoint.value)
        except EndpointError as error:
            return NoEndpoint(node.endpoint.value, str(error))
        return BoundFetcher(endpoint, Questions.about(node.inner, keys))

    def _source(self, node: Service, keys: Keys, contact: Contact, slide: int) -> RowsOfKeys:
        options = node.options or ServiceOptions()
        strategy = strategy_of(node.options)
        if strategy is Strategy.HASH:
            if isinstance(node.endpoint, Variable):
                raise SettingError(
                    f"STRATEGY HASH needs one endpoint, SERVICE {node.endpoint} learns them from the data"
                )
            return Hashed(contact, Questions.about(node.inner, keys), goals_of(options), self._clock)
        is_loop = strategy is Strategy.LOOP
        view = LocalView(ChangeModel(slide), options.entries or CAPACITY)
        proposer, ranker = self._policies("LRU" if is_loop else options.policy or DEFAULT_POLICY, view)
        goals = goals_of(options)
        if is_loop:
            # All keys of the window, whatever they would be worth; only the time may end it.
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
        )
        return Maintained(maintainer, fill=bool(options.fill) and not is_loop, window_only=is_loop)


def goals_of(options: ServiceOptions) -> Goals:
    """The goals that options set."""
    return Goals(
        accuracy=options.accuracy,
        latency=None if options.latency is None else options.latency / SECOND,
        budget=options.budget,
        holds=Goal.ACCURACY if options.prefer is Preference.ACCURACY else Goal.LATENCY,
    )
