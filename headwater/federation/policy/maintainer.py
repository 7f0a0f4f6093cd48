"""The maintainer: at each tick it spends what the goals leave on the refreshes that the ranker wants most.

    propose → rank → refresh, several requests at once → update the view → estimate the quality of the answer

At most γ keys are asked for, and under ρ no more than are likely answered in time: ρ less what the query needs itself
(equation 2), against the predicted latency of the endpoint. What has come when the time is up goes into the answer,
what comes later into the next one. A failure leaves the old rows in place, marked; an endpoint that fails altogether
is asked for one key at a time until it answers again.

    >>> maintainer = Maintainer(view, remote, WindowServiceJoin(), LearntRanker(view.model), Goals(latency=0.5))
    >>> quality = maintainer.tick([WindowKey((user,), ticks=2, rows=3)], slide=60_000_000)
    >>> view.rows((user,))

Keys that the view knows nothing of come before all refreshes: without them there is no answer at all.
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
from headwater.federation.policy.refresher import Refresher, Tally
from headwater.federation.policy.request_runner import Runner, ThreadRunner
from headwater.federation.view.alert_log import AlertLog
from headwater.federation.view.lifetime import WindowKey
from headwater.federation.view.local_view import Filling, LocalView
from headwater.federation.view.service_quality import Alert, Estimate, Goal, Goals, Quality, estimate
from headwater.terms.model import SECOND, Row

ROOM = 0.9
"""The share of ρ that is planned for; the rest is for the machine's own delays."""


_NEWEST_COUNTS = 0.1
"""The weight of the last tick among those before, where something usual is asked for."""


class Maintainer:
    """Keeps one view of one remote fresh enough. Only its runner uses other threads.

    Maintainers of one endpoint may share what is known of its `latency`. All ages are measured by `clock`: the remote
    lives in its time, whatever the timestamps of the stream say.
    """

    def __init__(
        self,
        view: LocalView,
        remote: Remote,
        proposer: Proposer,
        ranker: Ranker,
        goals: Goals,
        clock: Clock | None = None,
        runner: Runner | None = None,
        latency: LatencyModel | None = None,
    ) -> None:
        self.view = view
        self.remote = remote
        self.proposer = proposer
        self.ranker = ranker
        self.goals = goals
        self._clock = clock or SystemClock()
        self._runner = runner or ThreadRunner(self._clock)
        self.latency = LatencyModel() if latency is None else latency
        self._refresher = Refresher(view, remote, ranker, self._clock, self._runner, self.latency)
        self._query_latency = LatencyModel()
        self._usual_refreshes: float | None = None
        """How many refreshes a tick had, the last ones counting most."""
        self._alert_log = AlertLog(remote.name)

    def fill(self, page_size: int = 10_000) -> Filling:
        """Take everything that the remote has into the view."""
        return self.view.fill(self.remote.pages(page_size), self._clock.now())

    def tick(self, window: Iterable[WindowKey], slide: int, spent: float = 0.0) -> Quality:
        """Refresh what this window needs most; how good its answer can be.

        `slide` is the time to the next tick in microseconds, `spent` what this evaluation has taken already, in
        seconds.
        """
        begun = self._clock.now()
        keys = _by_key(window)
        self.view.trim()
        self.view.model.renew()
        tally, late = Tally(), self._refresher.absorb()
        until = self._deadline(begun, spent)
        queue = self._queue(keys, begun, slide)
        self._refresh_within_goals(queue, until, slide, tally)
        quality = self._refresh_for_accuracy(queue, keys, tally)
        if keys:
            made = tally.refreshes + late.refreshes
            usual = made if self._usual_refreshes is None else self._usual_refreshes
            self._usual_refreshes = usual + _NEWEST_COUNTS * (made - usual)
        now = self._clock.now()
        seconds = (now - begun) / SECOND
        alerts = tuple(self._alerts(quality, tally, now, spent + seconds))
        self._alert_log.report(alerts)
        return Quality(
            accuracy=quality.accuracy,
            suspects=quality.suspects,
            rows=quality.rows,
            missing=quality.missing,
            refreshes=tally.refreshes,
            late=late.refreshes,
            failures=tally.failures,
            under_way=len(self._refresher.under_way),
            requests=tally.requests,
            seconds=seconds,
            alerts=alerts,
        )

    def evaluated(self, seconds: float) -> None:
        """Say how long the query took after the refreshes (r_q of equation 2); the next ticks leave as much."""
        self._query_latency.observe(1, seconds)

    def close(self) -> None:
        self._runner.close()

    @property
    def _reserve(self) -> float:
        return self._query_latency.predict(1) or 0.0

    def _deadline(self, begun: int, spent: float) -> int | None:
        """When the refreshes of a tick must end for ρ to hold, with some room for what cannot be predicted."""
        if self.goals.latency is None:
            return None
        return begun + max(0, round((self.goals.latency * ROOM - spent - self._reserve) * SECOND))

    def _queue(self, keys: Mapping[Row, WindowKey], now: int, slide: int) -> deque[Row]:
        """What to ask for, most wanted first: unknown keys, then the ranker's choice."""
        missing = sorted(
            (keys[key] for key in self.view.use(keys, now)), key=lambda key: key.ticks * key.rows, reverse=True
        )
        candidates = self.proposer.propose(self.view, keys)
        ranked = self.ranker.rank(candidates, Tick(now, slide, self._share_of(len(candidates))))
        wanted = [key.key for key in missing] + [candidate.entry.key for candidate in ranked]
        return deque(key for key in wanted if key not in self._refresher.under_way)

    def _share_of(self, candidates: int) -> float:
        """How many of so many candidates can expect a refresh, by what was possible of late or, at first, by γ."""
        usual = self._usual_refreshes if self._usual_refreshes is not None else self.goals.budget
        return min(1.0, (usual or 0.0) / candidates) if candidates else 0.0

    def _refresh_within_goals(self, queue: deque[Row], until: int | None, slide: int, tally: Tally) -> None:
        """As many as γ allows and as fit before the deadline; all of them where there is no goal."""
        goals = self.goals
        if goals.budget is None and until is None and goals.accuracy is not None:
            return
        most = len(queue) if goals.budget is None else goals.budget
        first = len(queue)
        while (left := most - (first - len(queue))) > 0 and self._refresher.wave(queue, left, until, tally):
            pass
        waits = goals.accuracy is not None and goals.holds is Goal.ACCURACY
        if until is not None and not tally.requests and not waits:
            self._refresher.background(queue, most, slide, tally)

    def _refresh_for_accuracy(self, queue: deque[Row], keys: Mapping[Row, WindowKey], tally: Tally) -> Estimate:
        """What the answer is worth; where α holds or is the only goal, go on until it is reached or nothing helps."""
        goals = self.goals
        unlimited = goals.budget is None and goals.latency is None
        reached = estimate(self.view, keys.values(), self._clock.now())
        if goals.accuracy is None or not (unlimited or goals.holds is Goal.ACCURACY):
            return reached
        while reached.accuracy < goals.accuracy and self._refresher.wave(queue, len(queue), None, tally):
            reached = estimate(self.view, keys.values(), self._clock.now())
        return reached

    def _alerts(self, reached: Estimate, tally: Tally, now: int, seconds: float) -> Iterable[Alert]:
        goals = self.goals
        if goals.accuracy is not None and reached.accuracy < goals.accuracy:
            silent = tally.failures or self._refresher.under_way
            reason = "the endpoint did not answer" if silent else "more refreshes are needed than were possible"
            yield Alert(now, Goal.ACCURACY, goals.accuracy, reached.accuracy, reason)
        if goals.latency is not None and seconds + self._reserve > goals.latency:
            reason = "accuracy holds" if goals.holds is Goal.ACCURACY else "the query itself takes longer"
            yield Alert(now, Goal.LATENCY, goals.latency, seconds + self._reserve, reason)


def _by_key(window: Iterable[WindowKey]) -> dict[Row, WindowKey]:
    """One per key: it stays as long as its longest mapping, and serves the rows of all."""
    keys: dict[Row, WindowKey] = {}
    for key in window:
        known = keys.get(key.key)
        keys[key.key] = key if known is None else WindowKey(key.key, max(known.ticks, key.ticks), known.rows + key.rows)
    return keys
