"""What the attempts of a run have spent on models so far, those that still run included."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_mlebench._units import show_tokens, show_usd
from pytest_mlebench.attempts.record import Run
from pytest_mlebench.gateway.calls import GrowingSpending
from pytest_mlebench.gateway.model_use import ModelUse


class LiveSpending:
    """Looks at attempts again and again, and reads only what is new of their calls."""

    def __init__(self) -> None:
        self._growing: dict[Path, GrowingSpending] = {}

    def use(self, run: Run) -> ModelUse | None:
        """Return what an attempt has used of models; None if nothing is counted."""
        if run.record.model_use is not None or run.record.conditions.models is None:
            return run.record.model_use
        growing = self._growing.setdefault(run.folder, GrowingSpending(run.folder))
        return ModelUse(metered=growing.read())  # calls under way are yet to come

    def text(self, runs: Iterable[Run]) -> str | None:
        """Return ``$12.30 on models (31.2 M tokens)``; None where nothing is counted."""
        uses = [use for run in runs if (use := self.use(run)) is not None and use.source]
        if not uses:
            return None
        tokens = show_tokens(sum(use.tokens or 0 for use in uses))
        usd = sum(use.known_usd or 0.0 for use in uses)
        complete = all(use.usd is not None for use in uses)
        if not usd and not complete:
            return f"{tokens} of models"
        return f"{'' if complete else 'at least '}{show_usd(usd)} on models ({tokens})"
