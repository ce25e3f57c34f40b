"""One call may go beyond a budget, and no second one ever does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from decimal import Decimal
from typing import Any

import pytest

from pytest_mlebench.budget import Budget
from pytest_mlebench.gateway.calls import Call
from pytest_mlebench.gateway.ledger import MAX_MODELS, OTHER_MODELS, Hold, SpendingLedger
from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.spending import Spending, Usage


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 30))


def wanted() -> bool:
    return True


async def spend(
    ledger: SpendingLedger, tokens: int, usd: str = "0", hold: Hold | None = None
) -> None:
    held = hold or Hold()
    assert await ledger.admit(held, wanted)
    await ledger.settle(held, Usage(input_tokens=tokens), Decimal(usd))


async def refusal(ledger: SpendingLedger) -> str:
    with pytest.raises(CallRefusal) as error:
        await ledger.admit(Hold(), wanted)
    assert error.value.kind == "budget"
    return str(error.value)


def test_calls_are_counted_when_they_begin() -> None:
    async def work() -> None:
        ledger = SpendingLedger(Budget(calls=2))
        first, second = Hold(), Hold()
        assert await ledger.admit(first, wanted)
        assert await ledger.admit(second, wanted)
        assert await refusal(ledger) == (
            "the budget of this attempt is exhausted: its 2 calls are used up; "
            "no further call will be answered, go on with what you have"
        )
        await ledger.settle(first, None, None)
        await refusal(ledger)
        assert ledger.summary().exhausted == ("calls",)

    run(work())


def test_the_call_that_goes_beyond_is_the_last() -> None:
    async def work() -> None:
        ledger = SpendingLedger(Budget(tokens=1_000))
        await spend(ledger, 999)
        await spend(ledger, 5_000)
        assert "its 1000 tokens are used up" in await refusal(ledger)

    run(work())


def test_dollars_are_added_up_exactly() -> None:
    async def work() -> None:
        ledger = SpendingLedger(Budget(usd=1.0))
        for _ in range(10):  # as binary numbers, ten dimes are less than a dollar
            await spend(ledger, 1, "0.1")
        assert "its 1.0 dollars are used up" in await refusal(ledger)

    run(work())


def test_what_others_in_flight_may_use_is_waited_for() -> None:
    async def work() -> None:
        ledger = SpendingLedger(Budget(tokens=1_000))
        first, second = Hold(tokens=1_000), Hold(tokens=10)
        assert await ledger.admit(first, wanted)
        waiting = asyncio.create_task(ledger.admit(second, wanted))
        await asyncio.sleep(0)
        assert not waiting.done()
        await ledger.settle(first, Usage(input_tokens=100), None)  # less than it might have been
        assert await waiting
        await ledger.settle(second, Usage(input_tokens=900), None)
        await refusal(ledger)

    run(work())


def test_who_waits_in_vain_is_refused() -> None:
    async def work() -> None:
        ledger = SpendingLedger(Budget(usd=1))
        first = Hold(usd=Decimal(2))
        assert await ledger.admit(first, wanted)
        waiting = asyncio.create_task(refusal(ledger))
        await asyncio.sleep(0)
        assert not waiting.done()
        await ledger.settle(first, Usage(1), Decimal(1))
        await waiting

    run(work())


def test_a_call_that_nobody_waits_for_any_more_is_not_made() -> None:
    async def work() -> None:
        ledger = SpendingLedger(Budget(tokens=10, calls=2))
        first = Hold(tokens=10)
        assert await ledger.admit(first, wanted)
        waiting = asyncio.create_task(ledger.admit(Hold(), lambda: False))
        await asyncio.sleep(0)
        await ledger.settle(first, Usage(1), None)
        assert not await waiting
        assert await ledger.admit(Hold(), wanted)  # the second of two

    run(work())


def test_usage_that_is_known_before_the_end_is_held() -> None:
    async def work() -> None:
        ledger = SpendingLedger(Budget(tokens=1_000, usd=5))
        stream = Hold(tokens=10)
        assert await ledger.admit(stream, wanted)
        stream.raise_to(Usage(input_tokens=2_000), Decimal("0.1"))
        waiting = asyncio.create_task(refusal(ledger))
        await asyncio.sleep(0)
        assert not waiting.done()
        await ledger.settle(stream, Usage(input_tokens=2_000), Decimal("0.1"))
        await waiting

    run(work())


@pytest.mark.parametrize("seed", range(5))
def test_many_at_once_go_beyond_at_most_once(seed: int) -> None:
    chance = random.Random(seed)
    budget = 10_000

    async def work() -> None:
        ledger = SpendingLedger(Budget(tokens=budget))
        used: list[int] = []

        async def call() -> None:
            bound = chance.randint(1, 800)
            hold = Hold(tokens=bound)
            try:
                assert await ledger.admit(hold, wanted)
            except CallRefusal:
                return
            for _ in range(chance.randint(0, 5)):
                await asyncio.sleep(0)
            tokens = chance.randint(1, bound)
            used.append(tokens)
            await ledger.settle(hold, Usage(input_tokens=tokens), None)

        await asyncio.gather(*(call() for _ in range(200)))
        assert sum(used) >= budget
        assert sum(used) - budget < 800
        assert sum(used[:-1]) < budget  # the last to end is the only one beyond

    run(work())


def test_what_is_refused_by_a_shared_account_costs_no_call() -> None:
    class Empty:
        async def try_to_hold(self, usd: Decimal) -> bool:
            raise CallRefusal("budget", "nothing left")

        async def settle(self, held: Decimal, usd: Decimal) -> None:
            raise AssertionError("nothing was held")

        async def close(self) -> None:
            raise AssertionError("nothing was held")

    async def work() -> None:
        ledger = SpendingLedger(Budget(calls=1, session_usd=1), Empty())
        for _ in range(3):
            assert await refusal(ledger) == "nothing left"
        assert ledger.summary().exhausted == ("session_usd",)

    run(work())


def test_a_call_that_nobody_waits_for_holds_nothing_of_the_run() -> None:
    class Full:
        asked = 0

        async def try_to_hold(self, usd: Decimal) -> bool:
            self.asked += 1
            return False

        async def settle(self, held: Decimal, usd: Decimal) -> None:
            raise AssertionError("nothing was held")

        async def close(self) -> None:
            raise AssertionError("nothing was held")

    async def work() -> None:
        account = Full()
        ledger = SpendingLedger(Budget(calls=1, session_usd=1), account)
        for _ in range(3):  # none of them is the one call
            assert not await ledger.admit(Hold(usd=Decimal(1)), lambda: False)
        assert account.asked == 3

    run(work())


def test_a_call_without_usage_is_charged_what_was_held() -> None:
    async def work() -> None:
        ledger = SpendingLedger(Budget(tokens=1_000, usd=5))
        hold = Hold(tokens=1_000, usd=Decimal(1))
        assert await ledger.admit(hold, wanted)
        await ledger.settle(hold, None, None, unmetered=True)
        assert await refusal(ledger) == (
            "the budget of this attempt is exhausted: its 1000 tokens are used up (1 call without "
            "usage charged with the most that was possible); no further call will be answered, "
            "go on with what you have"
        )
        assert ledger.summary().usage == Usage()

    run(work())


def call(model: str = "m", usage: Usage | None = None, **more: Any) -> Call:
    return Call(0, "up", "POST", "/x", 200, model=model, usage=usage, seconds=0.5, **more)


def test_figures_are_kept_by_model() -> None:
    ledger = SpendingLedger(Budget(usd=3))
    ledger.note(call(usage=Usage(100, 40, 0, 20, 5), usd=0.1))
    ledger.note(call(usage=Usage(100, 0, 0, 20, 0), usd=0.2))
    ledger.note(call("n", Usage(7)))
    ledger.note(call("n", error="status 200"))
    ledger.note(call(unmetered=True, error="fell silent"))
    ledger.note(call(unmetered=True, error="fell silent"))
    ledger.note_refusal("budget")
    summary = ledger.summary()
    known, unknown = summary.models
    assert (known.calls, known.unmetered, known.usd, known.seconds) == (4, 2, 0.3, 2)
    assert known.usage == Usage(200, 40, 0, 40, 5)
    assert (unknown.calls, unknown.errors, unknown.usd) == (2, 1, None)
    assert (summary.usd, summary.known_usd, summary.is_complete) == (None, 0.3, False)
    assert summary.refused == {"budget": 1}
    assert summary.problems == {"fell silent": 2}
    assert Spending.from_dict(summary.to_dict()) == summary


def test_a_call_that_failed_cost_nothing_rather_than_something_unknown() -> None:
    ledger = SpendingLedger(Budget())
    ledger.note(call(error="status 429"))
    assert ledger.summary().usd == 0.0


def test_names_without_end_do_not_fill_the_memory() -> None:
    ledger = SpendingLedger(Budget())
    for number in range(MAX_MODELS + 100):
        ledger.note(call(f"model {number}", Usage(1), error=f"problem {number}"))
    summary = ledger.summary()
    assert len(summary.models) == MAX_MODELS + 1
    assert summary.models[-1].model == OTHER_MODELS
    assert summary.calls == MAX_MODELS + 100
    assert len(summary.problems) == 50
