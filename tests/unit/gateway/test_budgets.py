"""Budgets are hit exactly, and what comes after is refused in the provider's own form."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from gateway_attempt import CALL_USD, HELLO, GatewayAttempt, json_of, status_of
from model_server import ModelServer, Tokens

from pytest_mlebench.budget import Budget
from pytest_mlebench.gateway.run_account import RunAccount
from pytest_mlebench.upstream import Price

Make = Callable[..., GatewayAttempt]

PRICE = Price(input=1, output=10)
EXHAUSTED = "the budget of this attempt is exhausted: its {} are used up"


def count_until_refused(attempt: GatewayAttempt, streamed: bool = False) -> int:
    made = 0
    while True:
        try:
            attempt.stream() if streamed else attempt.ask()
        except openai.RateLimitError:
            return made
        made += 1


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("budget", "calls", "bound"),
    [
        (Budget(calls=3), 3, "3 calls"),
        (Budget(tokens=240), 2, "240 tokens"),  # each call is 120
        (Budget(tokens=241), 3, "241 tokens"),
        (Budget(usd=CALL_USD * 2), 2, "0.000528 dollars"),
        (Budget(usd=0.0006), 3, "0.0006 dollars"),
        (Budget(usd=1, tokens=10**6, calls=1), 1, "1 calls"),
    ],
)
def test_a_call_that_goes_beyond_is_allowed_once(
    open_gateway: Make, budget: Budget, calls: int, bound: str, streamed: bool
) -> None:
    attempt = open_gateway(budget=budget)
    assert count_until_refused(attempt, streamed) == calls
    with pytest.raises(openai.RateLimitError, match=EXHAUSTED.format(bound)):
        attempt.ask()
    assert len(attempt.server.seen) == calls
    summary = attempt.summary(calls)
    assert summary.calls == calls
    assert summary.refused == {"budget": 2}
    assert len(summary.exhausted) == 1
    assert [call.refused for call in attempt.calls(calls + 2)][:calls] == [None] * calls


@pytest.mark.parametrize("tokens", [1_000, 1_200, 1_300])
def test_calls_at_the_same_time_go_beyond_at_most_once(open_gateway: Make, tokens: int) -> None:
    attempt = open_gateway(budget=Budget(tokens=tokens))

    def ask(_: int) -> bool:
        try:
            attempt.ask(max_tokens=20)
        except openai.RateLimitError:
            return False
        return True

    with ThreadPoolExecutor(32) as pool:
        answered = sum(pool.map(ask, range(64)))
    assert answered == -(-tokens // 120)  # one more may begin as long as anything is left
    assert len(attempt.server.seen) == answered


def count_answered(attempt: GatewayAttempt, calls: int, **more: Any) -> int:
    """Make some calls at the same time and return how many were answered."""

    def ask(_: int) -> bool:
        try:
            attempt.ask(**more)
        except openai.RateLimitError:
            return False
        return True

    with ThreadPoolExecutor(calls) as pool:
        return sum(pool.map(ask, range(calls)))


@pytest.mark.parametrize(
    "budget", [Budget(tokens=30_000), Budget(usd=0.3), Budget(session_usd=0.3)]
)
def test_calls_that_do_not_say_how_much_they_put_out_go_beyond_at_most_once(
    open_gateway: Make, tmp_path: Path, budget: Budget
) -> None:
    run = RunAccount(tmp_path, 0.3, "one") if budget.session_usd else None
    with ModelServer(tokens=Tokens(input=100, cached=0, output=20_000)) as server:
        attempt = open_gateway(budget=budget, server=server, run=run)
        assert count_answered(attempt, 16) == 2  # of 20 100 tokens and 0.2001 dollars each
        assert attempt.summary(2).usage.total_tokens == 40_200


def test_calls_far_from_the_bound_do_not_wait_for_each_other(open_gateway: Make) -> None:
    attempt = open_gateway(budget=Budget(tokens=5_000_000), prices={"*": PRICE})
    with ThreadPoolExecutor(16) as pool:
        stalled = [pool.submit(attempt.ask, "stall") for _ in range(16)]
        for _ in stalled:
            assert attempt.server.begun.acquire(timeout=60)
        attempt.server.release()
        assert all(call.result().usage.total_tokens == 120 for call in stalled)


@pytest.mark.parametrize("budget", [Budget(tokens=10), Budget(usd=0.0001)])
def test_calls_without_usage_are_charged_what_was_held(open_gateway: Make, budget: Budget) -> None:
    attempt = open_gateway(budget=budget, prices={"*": PRICE})
    assert count_answered(attempt, 20, model="no-usage") == 1
    with pytest.raises(openai.RateLimitError, match="1 call without usage charged with the most"):
        attempt.ask()
    summary = attempt.summary(1)
    assert (summary.unmetered, summary.usage.total_tokens, summary.known_usd) == (1, 0, 0)


def test_calls_without_usage_are_charged_to_the_run(open_gateway: Make, tmp_path: Path) -> None:
    attempt = open_gateway(
        budget=Budget(session_usd=1),
        run=RunAccount(tmp_path, 1, "one"),
        prices={"*": Price(1, 1_000)},
    )
    attempt.ask("no-usage", max_tokens=600)
    assert RunAccount(tmp_path, 1, "x").spent() == pytest.approx(0.602, abs=0.001)
    attempt.ask("no-usage", max_tokens=600)
    with pytest.raises(openai.RateLimitError, match="the budget of the whole run is exhausted"):
        attempt.ask("gpt-5")


def test_an_error_is_no_call_without_usage(open_gateway: Make) -> None:
    attempt = open_gateway(budget=Budget(tokens=10))
    for _ in range(3):
        with pytest.raises(openai.InternalServerError):
            attempt.ask("error-500")
    attempt.ask()


def test_a_stream_is_booked_before_the_agent_knows_its_end(open_gateway: Make) -> None:
    with ModelServer(tokens=Tokens(input=10_000, output=10_000)) as server:
        for _ in range(20):
            attempt = open_gateway(budget=Budget(tokens=10_000), server=server)
            attempt.stream(max_tokens=1)
            with pytest.raises(openai.RateLimitError):
                attempt.stream(max_tokens=1)


def test_the_clients_do_not_try_again_when_the_budget_is_exhausted(open_gateway: Make) -> None:
    attempt = open_gateway(budget=Budget(calls=1))
    attempt.ask()
    with attempt.openai(max_retries=5) as client, pytest.raises(openai.RateLimitError) as error:
        client.chat.completions.create(model="gpt-5", messages=HELLO)
    assert error.value.code == "insufficient_quota"
    with (
        attempt.anthropic(max_retries=5) as claude,
        pytest.raises(anthropic.RateLimitError) as refusal,
    ):
        claude.messages.create(model="claude", max_tokens=1, messages=HELLO)
    assert refusal.value.body == {
        "type": "error",
        "error": {"type": "rate_limit_error", "message": refusal.value.body["error"]["message"]},  # type: ignore[index,call-overload]  # a dict
    }
    answer = attempt.request("/google/v1beta/models/g:generateContent")
    assert status_of(answer) == 429
    assert json_of(answer)["error"]["status"] == "RESOURCE_EXHAUSTED"
    assert attempt.summary(1).refused == {"budget": 3}


def test_a_price_that_nobody_knows_is_not_called_under_a_budget_in_dollars(
    open_gateway: Make,
) -> None:
    attempt = open_gateway(budget=Budget(usd=5))
    with pytest.raises(openai.PermissionDeniedError, match=r"the price of the model .*mystery"):
        attempt.ask("mystery")
    assert attempt.server.seen == []
    assert attempt.summary(0).refused == {"permission": 1}


def test_models_that_are_not_allowed_are_not_called(open_gateway: Make) -> None:
    attempt = open_gateway(allow=("gpt-5*",))
    attempt.ask("gpt-5-mini")
    with pytest.raises(openai.PermissionDeniedError, match=r"gpt-4.* is not allowed"):
        attempt.ask("gpt-4")
    assert len(attempt.server.seen) == 1


def test_what_is_in_flight_when_the_budget_ends_is_counted(open_gateway: Make) -> None:
    attempt = open_gateway(budget=Budget(calls=2))
    with ThreadPoolExecutor(2) as pool:
        stalled = [pool.submit(attempt.ask, "stall") for _ in range(2)]
        for _ in stalled:
            assert attempt.server.begun.acquire(timeout=60)
        with pytest.raises(openai.RateLimitError):
            attempt.ask()
        attempt.server.release()
        assert all(call.result().usage.total_tokens == 120 for call in stalled)
    assert attempt.summary(2).usage.total_tokens == 240


def test_an_agent_that_goes_away_pays_what_it_asked_for(open_gateway: Make) -> None:
    attempt = open_gateway(budget=Budget(tokens=120))
    with attempt.openai() as client:
        stream = client.chat.completions.create(
            model="stall-midway", messages=HELLO, stream=True, max_tokens=1
        )
        next(iter(stream))
        stream.response.close()
    attempt.server.release()
    assert attempt.summary(1).usage.total_tokens == 120
    with pytest.raises(openai.RateLimitError):
        attempt.ask()
    assert not attempt.server.gone.is_set()


def test_workers_of_a_run_share_what_it_may_spend(open_gateway: Make, tmp_path: Path) -> None:
    attempts = [
        open_gateway(
            budget=Budget(session_usd=CALL_USD * 5),
            run=RunAccount(tmp_path, CALL_USD * 5, str(number)),
        )
        for number in range(3)
    ]
    with ThreadPoolExecutor(3) as pool:
        made = list(pool.map(count_until_refused, attempts))
    assert sum(made) == 5
    with pytest.raises(openai.RateLimitError, match="the budget of the whole run is exhausted"):
        attempts[0].ask()
    assert attempts[0].summary(0).exhausted == ("session_usd",)
    assert RunAccount(tmp_path, 1, "x").spent() == float(Decimal(str(CALL_USD)) * 5)


def test_attempts_do_not_share_a_budget_of_their_own(open_gateway: Make) -> None:
    first, second = (open_gateway(budget=Budget(calls=2)) for _ in range(2))
    assert (count_until_refused(first), count_until_refused(second)) == (2, 2)
