"""The account of one attempt: what was spent, what may still come, and where the budget ends.

Calls are admitted while something of the budget is left. What a call costs is known when it has
ended; until then the most that it may cost is held. A call for which nothing is left beside what is
held waits for others to end. So one call may go beyond a bound, and no second one ever does. A call
that ends without its usage is charged what was held for it: to the budget, not to the figures.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol

from pytest_mlebench.budget import Budget
from pytest_mlebench.gateway.calls import Call
from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.spending import ModelSpending, Spending, Usage

MAX_MODELS = 200  # in the account; an agent may invent names without end
OTHER_MODELS = "(others)"
MAX_PROBLEMS = 50
POLL_SECONDS = 0.2  # between two looks at what other workers hold

_UNITS = {"usd": "dollars", "tokens": "tokens", "calls": "calls"}


@dataclass(eq=False)
class Hold:
    """The most that a call in flight may use, as far as anybody knows now."""

    tokens: int = 0
    usd: Decimal = Decimal(0)
    shared: Decimal = Decimal(0)  # what other workers know of

    def raise_to(self, usage: Usage, usd: Decimal | None) -> None:
        """Hold what the call has used already, where that is more."""
        self.tokens = max(self.tokens, usage.total_tokens)
        self.usd = max(self.usd, usd or Decimal(0))


class SharedAccount(Protocol):
    """What all workers of a run may spend together."""

    async def try_to_hold(self, usd: Decimal) -> bool:
        """Hold some dollars if they are left beside what others hold; refuse if none are left."""

    async def settle(self, held: Decimal, usd: Decimal) -> None:
        """Let go of what was held, and book what was spent."""

    async def close(self) -> None:
        """Let go of whatever is still held."""


class SpendingLedger:
    """One attempt's account; used from one event loop, read from any thread."""

    def __init__(self, budget: Budget, shared: SharedAccount | None = None) -> None:
        self._budget = budget
        self._shared = shared
        self._changed = asyncio.Event()  # a new one after every change
        self._lock = threading.Lock()
        self._models: dict[tuple[str, str], ModelSpending] = {}
        self._refused: dict[str, int] = {}
        self._problems: dict[str, int] = {}
        self._exhausted: dict[str, None] = {}
        self._calls = 0
        self._tokens = 0
        self._usd = Decimal(0)
        self._held: list[Hold] = []
        self._charged = 0  # calls without usage, charged what was held for them
        self.largest_output = 0

    async def admit(self, hold: Hold, is_wanted: Callable[[], bool]) -> bool:
        """Wait for a place in the budget; raise Refusal at its end; False if nobody waits."""
        while not self._has_room():
            await self._changed.wait()
            if not is_wanted():
                return False
        self._calls += 1
        self._held.append(hold)
        try:
            is_admitted = await self._hold_shared(hold, is_wanted)
        except BaseException:
            self._take_back(hold)
            raise
        if not is_admitted:
            self._take_back(hold)
        return is_admitted

    async def settle(
        self, hold: Hold, usage: Usage | None, usd: Decimal | None, *, unmetered: bool = False
    ) -> None:
        """Book what an admitted call used; what was held for it if it is unmetered."""
        tokens, cost = usage.total_tokens if usage else 0, usd or Decimal(0)
        if unmetered:
            tokens, cost = max(tokens, hold.tokens), max(cost, hold.usd)
            self._charged += 1
        self._tokens += tokens
        self._usd += cost
        self.largest_output = max(self.largest_output, usage.output_tokens if usage else 0)
        self._let_go(hold)
        if self._shared is not None:
            await self._shared.settle(hold.shared, cost)

    async def close(self) -> None:
        """End the account: a call that was cut off while it was admitted may hold something."""
        if self._shared is not None:
            await self._shared.close()

    def note(self, call: Call) -> None:
        """Add a call to the figures of its model, and what went wrong in it to the problems."""
        with self._lock:
            spent, problem = call.spending, call.problem
            if (call.upstream, call.model) not in self._models and len(self._models) >= MAX_MODELS:
                spent = replace(spent, model=OTHER_MODELS)
            key = (spent.upstream, spent.model)
            self._models[key] = self._models[key] + spent if key in self._models else spent
            if problem in self._problems or (problem and len(self._problems) < MAX_PROBLEMS):
                self._problems[problem] = self._problems.get(problem, 0) + 1

    def note_refusal(self, kind: str) -> None:
        """Count a call that was not passed on."""
        with self._lock:
            self._refused[kind] = self._refused.get(kind, 0) + 1

    def summary(self) -> Spending:
        """Return the figures as they are now."""
        with self._lock:
            return Spending(
                models=tuple(self._models.values()),
                budget=self._budget,
                exhausted=tuple(self._exhausted),
                refused=dict(self._refused),
                problems=dict(self._problems),
            )

    def _has_room(self) -> bool:
        """Tell whether a call may start now; raise Refusal if none may ever start again."""
        budget = self._budget
        if budget.calls is not None and self._calls >= budget.calls:
            raise self._spent("calls", budget.calls)
        if budget.tokens is not None and self._tokens >= budget.tokens:
            raise self._spent("tokens", budget.tokens)
        usd = None if budget.usd is None else Decimal(str(budget.usd))
        if usd is not None and self._usd >= usd:
            raise self._spent("usd", usd)
        if budget.tokens is not None:
            held_tokens = sum(hold.tokens for hold in self._held)
            if held_tokens and self._tokens + held_tokens >= budget.tokens:
                return False
        if usd is not None:
            held_usd = sum((hold.usd for hold in self._held), Decimal(0))
            if held_usd and self._usd + held_usd >= usd:
                return False
        return True

    def _spent(self, bound: str, limit: object) -> CallRefusal:
        self._exhausted.setdefault(bound)
        charged = ""
        if self._charged and bound != "calls":
            calls = "1 call" if self._charged == 1 else f"{self._charged} calls"
            charged = f" ({calls} without usage charged with the most that was possible)"
        return CallRefusal(
            "budget",
            f"the budget of this attempt is exhausted: its {limit} {_UNITS[bound]} are used up"
            f"{charged}; no further call will be answered, go on with what you have",
        )

    async def _hold_shared(self, hold: Hold, is_wanted: Callable[[], bool]) -> bool:
        """Hold dollars of the run; False if nobody waits any more."""
        if self._shared is None:
            return True
        try:
            while not await self._shared.try_to_hold(hold.usd):
                await asyncio.sleep(POLL_SECONDS)
                if not is_wanted():
                    return False
        except CallRefusal as refusal:
            if refusal.kind == "budget":
                self._exhausted.setdefault("session_usd")
            raise
        hold.shared = hold.usd
        return True

    def _take_back(self, hold: Hold) -> None:
        """Undo the admission of a call that is not made."""
        self._calls -= 1
        self._let_go(hold)

    def _let_go(self, hold: Hold) -> None:
        self._held.remove(hold)
        self._changed.set()
        self._changed = asyncio.Event()
