"""The settings of all endpoints of a run: plain values that can be sent to a worker."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.federation.endpoint.endpoint_settings import EndpointSettings


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """`allowed` are prefixes of the addresses that data may name in `SERVICE ?endpoint`; None: all."""

    endpoints: tuple[EndpointSettings, ...] = ()
    allowed: tuple[str, ...] | None = None
