"""The HTTP client that keeps to an egress policy.

    with make_client(policy) as client: client.get("https://example.org/")

The checks stand where requests and connections are made, below everything that follows redirects or takes connections
from a pool: `CheckedTransport` looks at the address of each request, `CheckedBackend` resolves the name of each new
connection, checks what it found, connects to that, and looks again at the other end of the connection.

Without a policy it is an ordinary client, which uses the proxies that the environment names. With one there are no
proxies: a proxy resolves names itself, so nothing could be checked.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable
from functools import cache
from typing import Any

import httpcore
import httpx

from headwater.egress.host_resolution import resolve_allowed
from headwater.egress.policy import EgressError, EgressPolicy
from headwater.egress.web_addresses import parse_ip
from headwater.terms.redaction import redact_http_logs


@cache
def ssl_context() -> ssl.SSLContext:
    """The trusted certificates. Reading them takes tens of milliseconds, so it is done once per process."""
    return httpx.create_ssl_context()


class CheckedBackend(httpcore.NetworkBackend):
    """Opens connections to IP addresses that the policy allows, and to nothing else."""

    def __init__(self, policy: EgressPolicy) -> None:
        self._policy = policy
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        end = None if timeout is None else time.monotonic() + timeout
        try:
            addresses = resolve_allowed(self._policy, host, port)
        except EgressError:
            raise
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"the name cannot be resolved ({error})") from error
        failure: Exception | None = None
        for address in addresses:
            left = None if end is None else max(0.001, end - time.monotonic())
            try:
                stream = self._inner.connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            self._check_peer(host, port, stream)
            return stream
        assert failure is not None
        raise failure

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise EgressError("the egress policy allows no local sockets")

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)

    def _check_peer(self, host: str, port: int, stream: httpcore.NetworkStream) -> None:
        """Refuse a connection whose other end is not what was checked."""
        peer = stream.get_extra_info("server_addr")
        address = parse_ip(str(peer[0]).partition("%")[0]) if peer else None
        if address is None or not self._policy.allows_ip(host, port, address):
            stream.close()
            raise EgressError(f"the connection to {host} ended at an address that the egress policy does not allow")


class CheckedTransport(httpx.HTTPTransport):
    """Sends the requests that the policy allows; raises `EgressError` for the others."""

    def __init__(self, policy: EgressPolicy, limits: httpx.Limits) -> None:
        super().__init__(verify=ssl_context(), trust_env=False, limits=limits)
        self._policy = policy
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl_context(),
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=CheckedBackend(policy),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        # The parts from which the connection is made, and not a text that another parser might split in another way.
        host = url.raw_host.decode("ascii")
        host = f"[{host}]" if ":" in host else host
        port = "" if url.port is None else f":{url.port}"
        path = url.raw_path.decode("ascii").partition("?")[0]
        self._policy.check_url(f"{url.scheme}://{host}{port}{path}")
        return super().handle_request(request)


def make_client(
    policy: EgressPolicy | None, *, headers: dict[str, str] | None = None, limits: httpx.Limits | None = None
) -> httpx.Client:
    """A client that keeps to the policy; None: everything may be asked. Redirects are the caller's to follow."""
    redact_http_logs()
    limits = limits or httpx.Limits(max_connections=None, max_keepalive_connections=4)
    if policy is None:
        return httpx.Client(verify=ssl_context(), headers=headers, limits=limits)
    return httpx.Client(transport=CheckedTransport(policy, limits), trust_env=False, headers=headers)
