"""The order in which items are handed out: those that take longest begin first."""

from __future__ import annotations

from collections.abc import Callable

from pytest_mlebench.attempts.durations import earlier_seconds
from pytest_mlebench.errors import MlebenchError
from pytest_mlebench.plugin.session import MleSession
from pytest_mlebench.reports.results import ItemKey

_BY_COMPLEXITY = {"high": 3, "medium": 2, "low": 1}


class ItemOrder:
    """Predict how long items take: as in earlier runs of the agent, else as long as they may."""

    def __init__(self, session: MleSession, key_of: Callable[[str], ItemKey | None]) -> None:
        self._session = session
        self._key_of = key_of
        self._known = earlier_seconds(session.settings.run_path.parent, session.shown_agent)

    def predicted_seconds(self, nodeid: str) -> float:
        """Return how long an item may take; what is not about an attempt takes no time."""
        key = self._key_of(nodeid)
        if key is None:
            return 0.0
        if key.competition in self._known:
            return self._known[key.competition]
        session = self._session
        try:
            competition = session.registry.load(key.competition)
            limit = session.limits(competition, session.agent).time_seconds
        except MlebenchError:
            return 0.0  # the item itself is going to say what is wrong
        # of two that may take equally long, the harder and then the larger one comes first
        weight = _BY_COMPLEXITY.get(competition.complexity, 0) * 1000 + (competition.size_gb or 0)
        return limit + weight / 1e6
