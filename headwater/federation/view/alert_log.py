"""Alerts in the log: once when a goal begins to give way, and once when it is met again."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from headwater.federation.view.service_quality import Alert, Goal

logger = logging.getLogger(__name__)


class AlertLog:
    """Remembers which goals give way at one remote."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._gave_way: frozenset[Goal] = frozenset()

    def report(self, alerts: Iterable[Alert]) -> None:
        """Take the alerts of a tick."""
        listed = list(alerts)
        for alert in listed:
            if alert.gives_way not in self._gave_way:
                logger.warning("%s: %s", self._name, alert)
        gives_way = frozenset(alert.gives_way for alert in listed)
        for goal in self._gave_way - gives_way:
            logger.info("%s: %s is met again", self._name, goal.value)
        self._gave_way = gives_way
