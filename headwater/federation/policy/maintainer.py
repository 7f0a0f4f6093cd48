"""The maintainer: at each tick it makes as many refreshes as the goals allow, the most urgent ones first (VM3).

    propose → rank → refresh, several requests at once → update the view → estimate the quality of the answer

At most γ keys are requested, and under ρ no more than are likely answered in time: ρ less the time of the query itself
(equation 2), against the predicted latency of the endpoint. Results that come before the deadline go into the answer,
later ones into the next. A failure leaves the old rows in place, marked; from an endpoint that fails altogether one key
at a time is requested until it answers again.

    >>> maintainer = Maintainer(view, remote, WindowServiceJoin(), ExpectedGainRanker(view.model), Goals(latency=0.5))
    >>> quality = maintainer.tick([WindowKey((user,), ticks=2, rows=3)], slide=60_000_000)
    >>> view.rows((user,))

Keys that the view does not know come before all refreshes: without them there is no answer at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from headwater.federation.endpoint.clock import Clock, SystemClock
from headwater.federation.endpoint.remote import Remote
from headwater.federation.policy.candidates import Tick
from headwater.federation.policy.latency_model import LatencyModel
from headwater.federation.policy.proposers import Proposer
from headwater.federation.policy.rankers import Ranker
from headwater.federation.policy.refresher import Refresher, RequestCounts
from headwater.federation.policy.request_runner import RequestRunner, ThreadRequestRunner
from headwater.federation.view.alert_log import AlertLog
from headwater.federation.view.lifetime import WindowKey
from headwater.federation.view.local_view import FillResult, LocalView
from headwater.federation.view.service_quality import Alert, Estimate, Goal, Goals, Quality, estimate_quality
from headwater.terms.model import SECOND, Row

PLANNED_SHARE = 0.9
"""The share of ρ that is planned for; the rest is for delays of the machine."""

_NEWEST_WEIGHT = 0.1
"""The weight of the last tick in the mean number of refreshes."""


class Maintainer:
    """Refreshes one view of one remote. Only its runner uses other threads.

    Maintainers of one endpoint may share its `latency` model. Latencies are measured by `clock`, ages by `ages`, which
    is the same clock by default: the remote changes in real time, whatever the timestamps of the stream are.
    """

    def __init__(
        self,
        view: LocalView,
        remote: Remote,
        proposer: Proposer,
        ranker: Ranker,
        goals: Goals,
        clock: Clock | None = None,
        runner: RequestRunner | None = None,
        latency: LatencyModel | None = None,
        ages: Clock | None = None,
    ) -> None:
        self.view = view
        self.remote = remote
        self.proposer = proposer
        self.ranker = ranker
        self.goals = goals
        self._clock = clock or SystemClock()
        self._ages = ages or self._clock
        self._runner = runner or ThreadRequestRunner(self._clock)
        self.latency = LatencyModel() if latency is None else latency
        self._refresher = Refresher(view, remote, ranker, self._clock, self._ages, self._runner, self.latency)
        self._query_latency = LatencyModel()
        self._mean_refreshes: float | None = None
        """How many refreshes a tick had, the last ones with the largest weight."""
        self._alert_log = AlertLog(remote.name)

    def fill(self, page_size: int = 10_000) -> FillResult:
        """Fill the view with all rows of the remote."""
        return self.view.fill(self.remote.pages(page_size), self._ages.now())

    def tick(self, window: Iterable[WindowKey], slide: int, spent: float = 0.0) -> Quality:
        """Refresh the entries that this window needs most; returns the quality of its answer.

        `slide` is the time to the next tick in microseconds, `spent` the seconds that this evaluation has taken so far.
        """
        begun = self._clock.now()
        keys = _by_key(window)
        self.view.evict()
        self.view.model.refit_population()
        counts, late = RequestCounts(), self._refresher.store_late_results()
        until = self._deadline(begun, spent)
        queue = self._build_queue(keys, self._ages.now(), slide)
        self._refresh_within_goals(queue, until, slide, counts)
        reached = self._refresh_for_accuracy(queue, keys, counts)
        if keys:
            refreshes = counts.refreshes + late.refreshes
            mean = refreshes if self._mean_refreshes is None else self._mean_refreshes
            self._mean_refreshes = mean + _NEWEST_WEIGHT * (refreshes - mean)
        seconds = (self._clock.now() - begun) / SECOND
        alerts = tuple(self._alerts(reached, counts, self._ages.now(), spent + seconds))
        self._alert_log.report(alerts)
        return Quality(
            accuracy=reached.accuracy,
            suspects=reached.suspects,
            rows=reached.rows,
            missing=reached.missing,
            refreshes=counts.refreshes,
            late=late.refreshes,
            failures=counts.failures,
            under_way=len(self._refresher.under_way),
            requests=counts.requests,
            seconds=seconds,
            alerts=alerts,
        )

    def record_query_time(self, seconds: float) -> None:
        """Record how long the query took after the refreshes (r_q of equation 2); the next ticks reserve as much."""
        self._query_latency.observe(1, seconds)

    def close(self) -> None:
        self._runner.close()

    @property
    def _reserve(self) -> float:
        return self._query_latency.predict(1) or 0.0

    def _deadline(self, begun: int, spent: float) -> int | None:
        """When the refreshes of a tick must end for ρ to be met, with some room for what cannot be predicted."""
        if self.goals.latency is None:
            return None
        return begun + max(0, round((self.goals.latency * PLANNED_SHARE - spent - self._reserve) * SECOND))

    def _build_queue(self, keys: Mapping[Row, WindowKey], now: int, slide: int) -> deque[Row]:
        """The keys to request, the most urgent first: unknown keys, then the ranker's order."""
        missing = sorted(
            (keys[key] for key in self.view.record_use(keys, now)), key=lambda key: key.ticks * key.rows, reverse=True
        )
        candidates = self.proposer.propose(self.view, keys)
        ranked = self.ranker.rank(candidates, Tick(now, slide, self._refreshed_share(len(candidates))))
        wanted = [key.key for key in missing] + [candidate.entry.key for candidate in ranked]
        return deque(key for key in wanted if key not in self._refresher.under_way)

    def _refreshed_share(self, candidates: int) -> float:
        """The share of so many candidates that can expect a refresh, by recent ticks or, at first, by γ."""
        mean = self._mean_refreshes if self._mean_refreshes is not None else self.goals.budget
        return min(1.0, (mean or 0.0) / candidates) if candidates else 0.0

    def _refresh_within_goals(self, queue: deque[Row], until: int | None, slide: int, counts: RequestCounts) -> None:
        """Refresh as many as γ allows and the deadline permits; all of them if there is no goal."""
        goals = self.goals
        if goals.budget is None and until is None and goals.accuracy is not None:
            return
        most = len(queue) if goals.budget is None else goals.budget
        first = len(queue)
        while (left := most - (first - len(queue))) > 0 and self._refresher.send_wave(queue, left, until, counts):
            pass
        is_accuracy_preferred = goals.accuracy is not None and goals.preferred is Goal.ACCURACY
        if until is not None and not counts.requests and not is_accuracy_preferred:
            self._refresher.send_in_background(queue, most, slide, counts)

    def _refresh_for_accuracy(
        self, queue: deque[Row], keys: Mapping[Row, WindowKey], counts: RequestCounts
    ) -> Estimate:
        """Estimate the quality; if α is preferred or the only goal, refresh until it is met or nothing is left."""
        goals = self.goals
        is_unlimited = goals.budget is None and goals.latency is None
        reached = estimate_quality(self.view, keys.values(), self._ages.now())
        if goals.accuracy is None or not (is_unlimited or goals.preferred is Goal.ACCURACY):
            return reached
        while reached.accuracy < goals.accuracy and self._refresher.send_wave(queue, len(queue), None, counts):
            reached = estimate_quality(self.view, keys.values(), self._ages.now())
        return reached

    def _alerts(self, reached: Estimate, counts: RequestCounts, now: int, seconds: float) -> Iterable[Alert]:
        goals = self.goals
        if goals.accuracy is not None and reached.accuracy < goals.accuracy:
            has_failed = counts.failures or self._refresher.under_way
            reason = "the endpoint did not answer" if has_failed else "more refreshes are needed than were possible"
            yield Alert(now, Goal.ACCURACY, goals.accuracy, reached.accuracy, reason)
        if goals.latency is not None and seconds + self._reserve > goals.latency:
            reason = "accuracy holds" if goals.preferred is Goal.ACCURACY else "the query itself takes longer"
            yield Alert(now, Goal.LATENCY, goals.latency, seconds + self._reserve, reason)


def _by_key(window: Iterable[WindowKey]) -> dict[Row, WindowKey]:
    """One entry per key: it stays as long as its longest mapping, and joins the rows of all."""
    keys: dict[Row, WindowKey] = {}
    for key in window:
        known = keys.get(key.key)
        keys[key.key] = key if known is None else WindowKey(key.key, max(known.ticks, key.ticks), known.rows + key.rows)
    return keys
