"""Names resolved to the IP addresses to which a policy lets connect."""

from __future__ import annotations

import socket

from headwater.egress.policy import EgressError, EgressPolicy
from headwater.egress.web_addresses import parse_ip


def resolve_allowed(policy: EgressPolicy, host: str, port: int) -> list[str]:
    """The IP addresses of a host to which the policy lets connect; an `EgressError` where there are none.

    The caller connects to one of these, and not to the name: another look at the name could give another address.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # A link-local IPv6 address carries its interface behind a %.
    addresses = dict.fromkeys(str(one[4][0]).partition("%")[0] for one in found)
    allowed = [text for text in addresses if (ip := parse_ip(text)) is not None and policy.allows_ip(host, port, ip)]
    if not allowed:
        raise EgressError(
            f"{host} leads to {', '.join(addresses) or 'no address'}, which is not in the public Internet, and the "
            "egress policy allows no such network: add it to the networks of the policy if it is meant to be asked"
        )
    return allowed
