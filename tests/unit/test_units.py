"""Limits as people write them."""

from __future__ import annotations

import pytest

from pytest_mlebench._units import (
    parse_duration,
    parse_size,
    show_duration,
    show_score,
    show_tokens,
    show_usd,
)
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.limits import STANDARD, Limits


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("24h", 86_400), ("1h30m", 5_400), ("90s", 90), ("1.5m", 90), ("2d", 172_800)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text, "--x") == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("440GB", 440 * 10**9),
        ("16GiB", 16 * 2**30),
        ("1000B", 1000),
        ("1.5 MB", 1_500_000),
        ("2t", 2 * 10**12),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text, "--x") == size


@pytest.mark.parametrize("text", ["", "soon", "-1h", "0s", "h", "1x"])
def test_wrong_durations_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--x must be"):
        parse_duration(text, "--x")


@pytest.mark.parametrize("text", ["", "lots", "-1GB", "0B", "1XB"])
def test_wrong_sizes_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--x must be"):
        parse_size(text, "--x")


def test_a_number_without_a_unit_is_a_question() -> None:
    with pytest.raises(ConfigError, match=r"^--x needs a unit: 24h or 24s\?$"):
        parse_duration("24", "--x")
    with pytest.raises(ConfigError, match=r"^here: memory needs a unit: 10GB or 10MB\?$"):
        Limits.from_table({"memory": 10}, where="here", base=STANDARD)


def test_the_standard_limits_are_those_of_the_benchmark() -> None:
    shown = STANDARD.describe()
    assert (shown["time"], shown["cpus"], shown["memory"]) == ("24h", "36", "440GB")
    assert (shown["gpus"], shown["gpu_memory"]) == ("1", "24GB")
    assert STANDARD.deviations() == {}


def test_deviations_name_what_is_and_what_is_standard() -> None:
    limits = Limits.from_table({"time": "12h", "gpus": 0}, where="here", base=STANDARD)
    assert limits.deviations() == {"time": ("12h", "24h"), "gpus": ("0", "1")}


def test_an_unknown_limit_suggests_a_known_one() -> None:
    with pytest.raises(ConfigError, match="unknown limit in here: 'memry', did you mean 'memory'"):
        Limits.from_table({"memry": "1GB"}, where="here", base=STANDARD)


def test_what_is_shown_can_be_read_again() -> None:
    for seconds in (1, 59, 60, 3_661, 86_400):
        assert parse_duration(show_duration(seconds), "--x") == seconds


@pytest.mark.parametrize(
    ("score", "shown"),
    [(3825810, "3825810"), (1048576.0, "1048576"), (1e6, "1000000"), (0.16201, "0.16201"),
     (0.00001234, "1.234e-05"), (1e300, "1e+300"), (-2.5, "-2.5")],
)  # fmt: skip
def test_scores_are_written_out(score: float, shown: str) -> None:
    assert show_score(score) == shown


@pytest.mark.parametrize(
    ("usd", "shown"),
    [(0, "$0.00"), (214.1, "$214.10"), (1234567.891, "$1,234,567.89"), (0.05, "$0.050"),
     (0.000264, "$0.00026"), (1e-12, "$0.000000000")],
)  # fmt: skip
def test_dollars_are_shown(usd: float, shown: str) -> None:
    assert show_usd(usd) == shown


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [(0, "0 tokens"), (1, "1 token"), (999, "999 tokens"), (1000, "1 k tokens"),
     (999_999, "1 M tokens"), (31_200_000, "31.2 M tokens"), (5 * 10**12, "5000 G tokens")],
)  # fmt: skip
def test_tokens_are_shown(tokens: int, shown: str) -> None:
    assert show_tokens(tokens) == shown
