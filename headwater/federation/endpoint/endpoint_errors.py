"""The errors of requests to a SPARQL endpoint, as one small tree.

    EndpointError              an OSError, as a failed network call of any kind is
    ├── EndpointUnreachable    no server answers: name, route, port, or the connection was cut before an answer
    ├── EndpointTimeout        no whole answer in the time that was left
    ├── EndpointRefused        an answer with an error status; `status` holds it
    ├── EndpointForbidden      the egress policy does not allow the address: nothing was sent
    ├── EndpointBusy           429 or 503, or our own limits: `retry_after` are the seconds to wait
    ├── EndpointGarbage        an answer that is not (the whole of) a SPARQL result
    ├── EndpointTooLarge       an answer above the size limit
    └── UnsendableKey          a binding that no query text can carry: a blank node

Each text ends with advice. No text holds credentials: addresses are shown without user, password
and parameters.
"""

from __future__ import annotations

from typing import ClassVar

from headwater.errors import HeadwaterError


class EndpointError(HeadwaterError, OSError):
    """A request that gave no answer; `is_retryable` if the same request may succeed a moment later."""

    kind: ClassVar[str] = "error"
    advice: ClassVar[str] = "look at the endpoint's log"

    def __init__(
        self,
        url: str,
        message: str,
        *,
        status: int | None = None,
        is_retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.url = url
        self.message = message
        self.status = status
        self.is_retryable = is_retryable
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[object, ...]:
        state = {"status": self.status, "is_retryable": self.is_retryable, "retry_after": self.retry_after}
        return type(self), (self.url, self.message), state

    def __str__(self) -> str:
        return f"{self.url}: {self.message}; {self.advice}"


class EndpointUnreachable(EndpointError):
    """No server answers at that address."""

    kind = "unreachable"
    advice = "check the address and that the endpoint runs, or write SERVICE SILENT to go on without it"


class EndpointTimeout(EndpointError):
    """No whole answer came in the time that was left."""

    kind = "timeout"
    advice = "give it more time, or ask for fewer keys at once"


class EndpointRefused(EndpointError):
    """The endpoint answered with an error status."""

    kind = "refused"

    def __str__(self) -> str:
        return f"{self.url}: {self.message}; {_BY_STATUS.get(self.status or 0, self.advice)}"


class EndpointForbidden(EndpointError):
    """The egress policy does not allow the address, or one to which it redirects."""

    kind = "forbidden"
    advice = "who runs this engine decides what may be asked"


class EndpointBusy(EndpointError):
    """The endpoint, or our own limits for it, let no request through just now."""

    kind = "busy"
    advice = "ask less often: lower the limits of this endpoint, or keep a local view"


class EndpointGarbage(EndpointError):
    """The answer is not the whole of a SPARQL result in JSON or XML."""

    kind = "garbage"
    advice = "check that the address is the one of a SPARQL endpoint, and not of its web page"


class EndpointTooLarge(EndpointError):
    """The answer is larger than the limit, and was cut off while it came."""

    kind = "too large"
    advice = "ask for fewer keys at once, make the pattern narrower, or raise largest_response"


class UnsendableKey(EndpointError):
    """A key that no query text can carry."""

    kind = "unsendable"
    advice = "join on IRIs and literals: a blank node of one source never is a node of another"


_BY_STATUS = {
    400: "check the SERVICE pattern: the endpoint does not understand the query",
    401: "give it credentials",
    403: "give it credentials that may read",
    404: "check the path of the address",
    413: "ask for fewer keys at once",
    414: "ask for fewer keys at once, or let the endpoint take POST",
}
