"""Answers to a web address: a POST for the answers of a batch, a SPARQL JSON result in each line.

    WebhookSink("https://example.org/hook")
    WebhookSink("https://example.org/hook", headers={"Authorization": "Bearer ${env:HOOK_TOKEN}"})

A request that fails in a way that may pass is repeated with growing waits. A batch that is run again after a failure is
sent again, with the same `Idempotency-Key`: who receives it takes one of them. The egress policy of the engine holds,
at the connection, too; redirects are not followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event
from typing import TYPE_CHECKING

import httpx

from headwater.egress.credentials import Credentials, split_user_info
from headwater.egress.policy import EgressPolicy
from headwater.egress.secret_references import fill_in_secrets
from headwater.egress.transport import make_client
from headwater.egress.web_addresses import normalise
from headwater.errors import SettingError
from headwater.execution.answer_batch import AnswerBatch
from headwater.sinks.answer_text import format_answer_json
from headwater.sinks.errors import SinkError
from headwater.terms.arguments import check_number, check_text, check_whole
from headwater.terms.redaction import redact_url
from headwater.values.query_guard import current_guard

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_ANSWERS = 1_000
"""So many answers go into one request at most."""
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.5, 30.0
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""The answers of a server after which another attempt may succeed."""


class WebhookSink:
    """A web address that is sent the answers of each batch.

    `headers` go with each request; `${env:NAME}` and `${file:PATH}` in them stand for what a variable or a file has.
    `timeout` is in seconds; `retries` is how often a request is repeated before the run fails with a `SinkError`.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 10.0,
        retries: int = 5,
    ) -> None:
        self._url, self._own = split_user_info(check_text("url", url))
        self._shown = redact_url(url)
        if normalise(self._url).scheme not in ("http", "https"):
            raise SettingError(f"{self._shown} is no address that answers can be sent to: it begins with http or https")
        self._headers = {name: check_text(f"the header {name}", value) for name, value in (headers or {}).items()}
        self._timeout = check_number("timeout", timeout)
        self._retries = check_whole("retries", retries, 0)
        self._policy: EgressPolicy | None = None

    def confine(self, policy: EgressPolicy | None) -> None:
        """Keep to a policy of allowed addresses."""
        self._policy = policy

    def open(self, spark: SparkSession | None) -> None:
        if self._policy is not None:
            self._policy.check_url(self._url)

    def write(self, run: str, batch: int, answers: AnswerBatch) -> None:
        lines = [format_answer_json(answer, with_query=True).rstrip("\n") + "\n" for answer in answers]
        bodies = [
            "".join(lines[first : first + _MOST_ANSWERS]).encode("utf-8", "surrogatepass")
            for first in range(0, len(lines), _MOST_ANSWERS)
        ]

        given_up = Event()

        def post_all() -> None:
            with make_client(self._policy) as client:
                for number, body in enumerate(bodies):
                    self._post(client, body, f"{run}-{batch}-{number}", given_up)

        try:
            # A run that is stopped does not wait for the address.
            current_guard().call(post_all)
        finally:
            given_up.set()

    def _post(self, client: httpx.Client, body: bytes, key: str, given_up: Event) -> None:
        """Send a request until it is taken, or given up by the run."""
        credentials = self._own if self._own is not None else Credentials.from_environment(self._url)
        headers = {
            "Content-Type": "application/x-ndjson",
            "User-Agent": "headwater",
            "Idempotency-Key": key,
            **credentials.as_headers(),
            **fill_in_secrets(self._headers),
        }
        wait = _FIRST_WAIT_SECONDS
        for attempt in range(self._retries + 1):
            asked = 0.0
            try:
                answer = client.post(
                    self._url, content=body, headers=headers, timeout=self._timeout, follow_redirects=False
                )
                if answer.is_success:
                    return
                reason = f"status {answer.status_code} {answer.reason_phrase}"
                if answer.status_code not in _PASSING:
                    break
                asked = _seconds_asked_for(answer)
            except httpx.TransportError as error:
                # Texts of httpx may have the address in them, with all its parameters.
                reason = str(error).replace(self._url, self._shown) or type(error).__name__
            if attempt < self._retries:
                if given_up.wait(min(max(wait, asked), _LONGEST_WAIT_SECONDS)):
                    return
                wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
        raise SinkError(
            f"{self._shown} did not take the answers ({reason}): check the address and who may write there, and run "
            "again; from a checkpoint the run goes on with this batch"
        )


def _seconds_asked_for(answer: httpx.Response) -> float:
    """How long a server asks to be left alone; 0 where it does not say."""
    try:
        return max(0.0, float(answer.headers.get("retry-after", "0")))
    except ValueError:
        return 0.0
