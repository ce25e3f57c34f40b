"""What a call costs, and that nobody knows is never zero."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pytest_mlebench.gateway.prices import MAX_NAMES, Prices
from pytest_mlebench.gateway.spending import Usage
from pytest_mlebench.gateway.usage_readers import Reading
from pytest_mlebench.upstream import Price, Upstream

USAGE = Usage(1_000_000, 100_000, 0, 100_000, 50_000)


def prices(url: str = "https://api.openai.com/v1", **written: Price) -> Prices:
    return Prices(Upstream("up", url, prices=written))


def test_a_list_price_is_found_by_url_and_model() -> None:
    cost = prices().cost("gpt-5", Reading(USAGE))
    # $1.25 and $0.125 for a million tokens of input, $10 for a million of output
    assert cost == Decimal("1.125") + Decimal("0.0125") + 1


def test_a_tier_has_its_own_price() -> None:
    usual = prices().cost("gpt-5", Reading(USAGE))
    flex = prices().cost("gpt-5", Reading(USAGE, tier="flex"))
    assert usual is not None
    assert flex is not None
    assert flex < usual
    assert prices().cost("gpt-5", Reading(USAGE, tier="default")) == usual


def test_a_cache_for_an_hour_costs_more() -> None:
    anthropic = prices("https://api.anthropic.com")
    usage = Usage(100_000, 0, 100_000, 0)
    short = anthropic.cost("claude-sonnet-4-5", Reading(usage))
    long = anthropic.cost("claude-sonnet-4-5", Reading(usage, hour_cache_tokens=100_000))
    assert short is not None
    assert long is not None
    assert short < long


@pytest.mark.parametrize(
    ("url", "model"),
    [("https://api.openai.com/v1", "no-such-model"), ("http://127.0.0.1:8000/v1", "gpt-5")],
)
def test_a_price_that_nobody_knows_is_none(url: str, model: str) -> None:
    assert prices(url).cost(model, Reading(USAGE)) is None
    assert not prices(url).is_known(model)


def test_a_written_price_wins() -> None:
    mine = prices("https://api.openai.com/v1", **{"gpt-5*": Price(input=1, output=2)})
    assert mine.cost("gpt-5", Reading(USAGE)) == Decimal("1.2")


def test_a_written_price_of_a_cache_is_used() -> None:
    usage = Usage(1_000_000, 500_000, 250_000, 0)
    mine = prices("http://localhost", m=Price(1, 2, cached=0.1, cache_written=1.25))
    assert mine.cost("m", Reading(usage)) == Decimal("0.25") + Decimal("0.05") + Decimal("0.3125")


def test_the_answer_knows_better_which_model_it_was() -> None:
    by_answer = prices().cost("router", Reading(USAGE, model="gpt-5-2025-08-07"))
    assert by_answer == prices().cost("gpt-5", Reading(USAGE))
    mine = prices(router=Price(7, 7))
    assert mine.cost("router", Reading(Usage(1_000_000), model="gpt-5")) == 7


def test_an_answer_without_usage_has_no_price() -> None:
    assert prices().cost("gpt-5", Reading()) is None


def test_invented_names_are_not_looked_up_without_end() -> None:
    mine = prices(good=Price(1, 1))
    assert mine.is_known("good")
    for number in range(MAX_NAMES + 10):
        mine.is_known(f"invented {number}")
    assert len(mine._known) == MAX_NAMES
    assert mine.is_known("good")
