"""Budgets as people write them."""

from __future__ import annotations

import pytest

from pytest_mlebench.budget import Budget, parse_budget
from pytest_mlebench.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "budget", "shown"),
    [
        ("20usd", Budget(usd=20), "20usd"),
        ("0.05 USD", Budget(usd=0.05), "0.05usd"),
        ("5Mtok", Budget(tokens=5_000_000), "5Mtok"),
        ("1.5Mtok", Budget(tokens=1_500_000), "1.5Mtok"),
        ("750ktokens", Budget(tokens=750_000), "750ktok"),
        ("1Gtok", Budget(tokens=10**9), "1Gtok"),
        ("123456789tok", Budget(tokens=123_456_789), "123456.789ktok"),
        ("1tok", Budget(tokens=1), "1tok"),
        ("2000calls", Budget(calls=2000), "2000calls"),
        ("1call", Budget(calls=1), "1calls"),
        ("20usd, 2000calls", Budget(usd=20, calls=2000), "20usd, 2000calls"),
    ],
)
def test_amounts_have_a_unit(text: str, budget: Budget, shown: str) -> None:
    assert parse_budget(text) == budget
    assert budget.describe() == shown


@pytest.mark.parametrize(
    "text", ["", "20", "usd", "-1usd", "20eur", "5M", "20usd;3calls", "20usd,"]
)
def test_anything_else_is_an_error_with_examples(text: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_budget(text)
    assert str(error.value) == (
        f"--mle-budget must be 20usd, 5Mtok, 2000calls or several with commas, given: {text}"
    )


@pytest.mark.parametrize("text", ["0usd", "0.0Mtok", "0calls", "1.5calls", "0.0001ktok"])
def test_nothing_and_parts_of_a_call_are_no_budget(text: str) -> None:
    with pytest.raises(ConfigError, match="--mle-budget must be a positive amount, given: "):
        parse_budget(text)


def test_the_same_bound_twice_is_an_error() -> None:
    with pytest.raises(ConfigError) as error:
        parse_budget("20usd,30usd", "mle_budget")
    assert str(error.value) == "mle_budget sets usd twice, given: 20usd,30usd"


def test_the_option_wins_where_it_says_something() -> None:
    file = Budget(usd=5, calls=10, session_usd=100)
    assert file.overridden_by(parse_budget("20usd")) == Budget(usd=20, calls=10, session_usd=100)
    assert file.overridden_by(Budget()) == file


def test_a_budget_comes_back_from_a_record_as_it_was() -> None:
    budget = Budget(usd=20, session_usd=250)
    assert Budget.from_dict(budget.to_dict()) == budget
    assert budget.to_dict() == {"usd": 20, "session_usd": 250}
    assert budget.describe() == "20usd, 250usd per run"
    assert Budget().describe() == "unlimited"
    assert not Budget()
    assert budget
