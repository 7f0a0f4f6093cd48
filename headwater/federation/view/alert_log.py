"""Alerts in the log: one line when a goal begins to be missed, and one when it is met again."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from headwater.federation.view.service_quality import Alert, Goal

logger = logging.getLogger(__name__)


class AlertLog:
    """Remembers which goals of one remote are missed at present."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._missed: frozenset[Goal] = frozenset()

    def report(self, alerts: Iterable[Alert]) -> None:
        """Log what is new in the alerts of a tick."""
        listed = list(alerts)
        for alert in listed:
            if alert.goal not in self._missed:
                logger.warning("%s: %s", self._name, alert)
        missed = frozenset(alert.goal for alert in listed)
        for goal in self._missed - missed:
            logger.info("%s: %s is met again", self._name, goal.value)
        self._missed = missed
