"""The settings of all endpoints of a run, and given change rates: plain values that can be sent to a worker."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.egress.policy import EgressPolicy
from headwater.federation.endpoint.endpoint_settings import EndpointSettings
from headwater.federation.view.given_rates import GivenRates
from headwater.language.service_options import RatesSource


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """`egress` says which addresses may be asked; None: all.

    `rates` has the change rates of each file and graph that a clause names in RATES.
    """

    endpoints: tuple[EndpointSettings, ...] = ()
    egress: EgressPolicy | None = None
    rates: tuple[tuple[RatesSource, GivenRates], ...] = ()
