"""What attempts cost: sums, shares for each medal, and what nobody knows."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from reporting import errored, failed, graded, spent

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.gateway.model_use import ModelUse
from pytest_mlebench.gateway.own_usage import OwnUsage
from pytest_mlebench.gateway.spending import ModelSpending, Spending, Usage
from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.cost_tables import attempt_table, group_table, model_table
from pytest_mlebench.reports.cost_text import cost_lines, costs_line
from pytest_mlebench.reports.costs import costs_of
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.formats import csv_file, json_file, markdown
from pytest_mlebench.reports.page.page import render as render_page
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import Result, never_ran
from pytest_mlebench.reports.spending_gate import SpendingGate, parse_fail_over


def with_use(result: Result, use: ModelUse | None, **more: object) -> Result:
    return replace(result, model_use=use, **more)  # type: ignore[arg-type]  # fields of a result


METERED = [
    with_use(graded("a", medal=Medal.GOLD), spent(1.0, 1_000_000)),
    with_use(graded("b"), spent(2.0, 500_000)),
    with_use(failed("c"), spent(3.0)),
]


def test_failed_attempts_are_part_of_what_a_medal_costs() -> None:
    costs = costs_of(METERED)
    assert (costs.attempts, costs.calls, costs.tokens, costs.usd) == (3, 6, 1_501_000, 6.0)
    assert (costs.usd_per_valid, costs.usd_per_medal) == (3.0, 6.0)
    assert costs.medals_per_usd == pytest.approx(1 / 6)
    assert costs_line(costs) == "models: 1.5 M tokens, $6.00, $6.00 per medal"


def test_attempts_without_figures_are_counted_apart_with_their_medals() -> None:
    costs = costs_of([*METERED, graded("d", medal=Medal.GOLD), never_ran(errored("e").key)])
    assert (costs.attempts, costs.without_figures, costs.medals) == (4, 1, 1)
    assert (costs.usd, costs.known_usd, costs.usd_per_medal) == (None, 6.0, 6.0)
    line = costs_line(costs)
    assert line == "models: 1.5 M tokens, $6.00, $6.00 per medal (1 attempt without figures)"


@pytest.mark.parametrize(
    ("use", "shown"),
    [
        (spent(None), "models: 1.5 M tokens, at least $6.00, at least $6.00 per medal"),
        (spent(1.0, unmetered=1), "models: 1.5 M tokens, at least $7.00, at least $7.00 per medal"),
    ],
)
def test_what_nobody_knows_makes_a_lower_bound(use: ModelUse, shown: str) -> None:
    costs = costs_of([*METERED, with_use(graded("d"), use)])
    assert (costs.usd, costs.medals_per_usd, costs.incomplete) == (None, None, 1)
    assert costs_line(costs) == shown


def test_a_price_that_nobody_knows_is_not_zero() -> None:
    costs = costs_of([with_use(graded("a", medal=Medal.GOLD), spent(None))])
    assert (costs.usd, costs.usd_per_medal) == (None, None)
    assert costs_line(costs) == "models: 1 k tokens, cost unknown"


def test_an_agent_without_models_has_no_line() -> None:
    assert cost_lines(costs_of([graded("a"), failed("b")])) == []


def test_hours_of_agents_are_shown_beside_their_models() -> None:
    costs = costs_of([*METERED, with_use(graded("d"), spent(1.0), agent_seconds=180.0)])
    assert cost_lines(costs, 2.5)[1:] == ["machines: 2.0 agent-hours"]
    short = costs_of([with_use(graded("d"), spent(1.0), agent_seconds=36.0)])
    assert cost_lines(short)[1:] == ["machines: 0.01 agent-hours"]
    shorter = costs_of([with_use(graded("d"), spent(1.0), agent_seconds=3.0)])
    assert cost_lines(shorter)[1:] == ["machines: less than 0.01 agent-hours"]


def test_every_attempt_and_every_model_has_a_row() -> None:
    use = ModelUse(
        Spending(
            models=(
                ModelSpending("up", "cheap", 3, 1, 0, 36.0, Usage(100, 40, 0, 20, 5), 0.5),
                ModelSpending("up", "dear", 1, 0, 1, 360.0, Usage(10, 0, 0, 2, 1), 2.0),
                ModelSpending("up", "odd|name", 1, 0, 0, 0.0, Usage(1), None),
            )
        )
    )
    second = with_use(graded("a", 1), None, gpus=2, extra={"steps": [1, 2], "note": "a\nb"})
    results = [with_use(graded("a"), use), second]
    disclosure = Disclosure(agent="mine", gpu_hour_usd=2.5)
    report = Report.of(results, registry=Registry(), disclosure=disclosure)
    assert model_table(results).rows == (
        ("up: dear", "1", "0", "10", "0", "2", "1", "0.10", "at least $2.00"),
        ("up: cheap", "3", "1", "100", "40", "20", "5", "0.01", "$0.50"),
        ("up: odd|name", "1", "0", "1", "0", "0", "0", "0.00", "cost unknown"),
    )
    first, other = attempt_table(report).rows
    assert first == (
        *("a seed 0", "133 tokens", "40", "6", "5", "at least $2.50"),
        *("1.00", "0.00", "$0.00"),
    )
    assert other == ("a seed 1", *[""] * 5, "1.00", "2.00", "$5.00")
    assert group_table(report).rows[-1][-3:] == ("2.00", "2.00", "$5.00")
    text = markdown.render(report)
    assert "| up: odd\\|name | 1 | 0 | 1 | 0 | 0 | 0 | 0.00 | cost unknown |" in text
    assert "| a seed 1 |" in text
    assert "| a | 1 | steps | \\[1, 2\\] |" in text
    assert "| a | 1 | note | a b |" in text
    page = render_page(report)
    for shown in ("up: cheap", "40 and 6 tokens", "a b", "By model"):
        assert shown in page
    one, two = csv.DictReader(io.StringIO(csv_file.render(report)))
    assert (one["cached_tokens"], one["reasoning_tokens"], two["cached_tokens"]) == ("40", "6", "")
    assert one["models"].startswith("up: cheap: 120 tokens, 0.5 usd; up: dear: 12 tokens, 2 usd; ")
    assert json.loads(two["extra"]) == {"steps": [1, 2], "note": "a\nb"}
    assert (one["gpu_usd"], two["gpu_usd"], one["extra"]) == ("0.0", "5.0", "")


def test_hours_of_gpus_have_a_price_if_one_is_given() -> None:
    costs = costs_of([replace(graded("a"), gpus=2), graded("b")])
    assert (costs.agent_hours, costs.gpu_hours) == (2.0, 2.0)
    assert cost_lines(costs) == ["machines: 2.0 agent-hours, 2.0 GPU-hours"]
    assert cost_lines(costs, 2.5) == ["machines: 2.0 agent-hours, 2.0 GPU-hours, $5.00"]


def test_the_agents_own_count_is_named_as_such() -> None:
    own = ModelUse(reported=OwnUsage(input_tokens=5, output_tokens=5, usd=0.05))
    line = costs_line(costs_of([with_use(graded("a"), own)]))
    assert line == (
        "models: 10 tokens, $0.050, $0.050 per valid submission "
        "(1 attempt by the agent's own count)"
    )


def bar(value: str) -> SpendingGate:
    gate = parse_fail_over(value)
    assert gate is not None
    return gate


def test_a_bar_is_reached_up_to_its_last_cent() -> None:
    assert bar("6usd").judge(METERED) is None
    assert bar("5.99usd").judge(METERED) == (
        "the models cost $6.00, over the bar of $5.99 (--mle-fail-over=5.99usd)"
    )


def test_discarded_tries_count_for_the_bar() -> None:
    lost = [*METERED, with_use(graded("d"), spent(0.0), lost_usd=1.5)]
    assert bar("7usd").judge(lost) == (
        "the models cost $7.50, over the bar of $7.00 (--mle-fail-over=7usd)"
    )
    assert "$1.50 more in discarded tries" in str(costs_line(costs_of(lost)))


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (graded("d"), "1 attempt without figures"),
        (with_use(graded("d"), spent(None)), "1 attempt with calls of unknown cost"),
        (with_use(graded("d"), ModelUse(problem="nonsense")), "1 attempt without figures"),
        (with_use(graded("d"), spent(0.0), lost_usd=None), "discarded tries of unknown cost"),
    ],
)
def test_a_bar_is_missed_where_nobody_knows(result: Result, why: str) -> None:
    assert bar("100usd").judge([*METERED, result]) == (
        "what the models cost cannot be judged by the bar of $100.00: $6.00 are known, and there "
        f"are {why} (--mle-fail-over=100usd)"
    )
    over = bar("5usd").judge([*METERED, result])
    assert over == "the models cost at least $6.00, over the bar of $5.00 (--mle-fail-over=5usd)"


@pytest.mark.parametrize("value", ["5Mtok", "5usd,3calls", "x", "-1usd", ""])
def test_a_bar_is_in_dollars(value: str) -> None:
    with pytest.raises(ConfigError, match="--mle-fail-over must be"):
        parse_fail_over(value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_tokens": "many"}, "input_tokens must be a whole number, zero or more"),
        ({"reasoning_tokens": -1}, "reasoning_tokens must be a whole number, zero or more"),
    ],
)
def test_damaged_figures_are_refused_by_their_place(
    change: dict[str, object], message: str
) -> None:
    report = Report.of(METERED[:1], registry=Registry())
    data = report.results[0].to_dict()
    data["model_use"]["metered"]["models"][0]["usage"] |= change
    with pytest.raises(ConfigError, match=rf"^r.json: model_use {message}"):
        Result.from_dict(data, "r.json")


def test_a_report_that_is_read_again_has_the_same_costs() -> None:
    report = Report.of(METERED, registry=Registry())
    content = json_file.parse(json.loads(json_file.render(report)), "r.json")
    assert costs_of(content.results) == report.costs
