"""Two reports compared."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest
from reporting import REAL_REPORTS, errored, graded, spent
from scipy import stats

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.medals import Medal
from pytest_mlebench.reports.attempt_facts import AttemptFacts
from pytest_mlebench.reports.compare import compare, comparison_lines, permutation_test
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.membership import Membership
from pytest_mlebench.reports.report import Report


def _report(medals: str, seed: int = 0, **disclosure: str) -> Report:
    """Return a report of the competitions a, b, … with a gold medal where *medals* has a G."""
    results = (
        graded(chr(97 + number), seed, Medal.GOLD if letter == "G" else Medal.NONE)
        for number, letter in enumerate(medals)
    )
    return Report(tuple(results), Disclosure(**disclosure))  # type: ignore[arg-type]


@pytest.mark.parametrize(("lost", "won"), [(5, 0), (5, 2), (1, 8), (0, 0), (3, 3)])
def test_with_one_seed_it_is_the_exact_sign_test(lost: int, won: int) -> None:
    pairs = [(1, 1, 0, 1)] * lost + [(0, 1, 1, 1)] * won + [(1, 1, 1, 1)] * 4
    two_sided, worse = permutation_test(pairs)
    if lost + won:
        assert two_sided == pytest.approx(stats.binomtest(won, won + lost).pvalue)
        assert worse == pytest.approx(stats.binomtest(won, won + lost, alternative="less").pvalue)
    else:
        assert (two_sided, worse) == (1, 1)


@pytest.mark.parametrize("case", range(6))
def test_it_equals_dealing_all_runs_anew_by_hand(case: int) -> None:
    draw = random.Random(case)
    pairs = []
    for _ in range(3):
        a, b = draw.randint(1, 3), draw.randint(1, 3)
        pairs.append((draw.randint(0, a), a, draw.randint(0, b), b))
    choices = []
    for x, a, y, b in pairs:
        runs = [1] * (x + y) + [0] * (a + b - x - y)
        hits = [sum(deal) for deal in itertools.combinations(runs, b)]
        choices.append([hit / b - (x + y - hit) / a for hit in hits])
    observed = sum(y / b - x / a for x, a, y, b in pairs)
    sums = [sum(choice) for choice in itertools.product(*choices)]
    two_sided = sum(abs(value) >= abs(observed) - 1e-9 for value in sums) / len(sums)
    worse = sum(value <= observed + 1e-9 for value in sums) / len(sums)
    assert permutation_test(pairs) == pytest.approx((two_sided, worse))


def test_five_medals_lost_and_none_won_is_a_regression() -> None:
    found = compare(_report("GGGGG.."), _report("......."))
    assert found.regression() == (
        "any-medal rate fell from 71.43 % to 0.00 % on 7 competitions: "
        "a significant regression (p = 0.031, under 0.05)"
    )


def test_four_medals_lost_may_be_chance() -> None:
    assert compare(_report("GGGG..."), _report(".......")).regression() is None


def test_a_gain_is_no_regression() -> None:
    assert compare(_report("......."), _report("GGGGGGG")).regression() is None


def test_missing_runs_count_against_the_report_that_lacks_them() -> None:
    after = Report(tuple(errored(letter) for letter in "abcdefg"))
    assert compare(_report("GGGGGG."), after).regression() is not None


def test_only_what_both_have_is_compared_and_the_rest_is_named() -> None:
    found = compare(_report("GG."), Report((graded("b", 0, Medal.GOLD), graded("z"))))
    assert list(found.pairs) == ["b"]
    assert (found.only_before, found.only_after) == (("a", "c"), ("z",))
    texts = [line.text for line in comparison_lines(found)]
    assert "only in A (2): a, c" in texts
    assert "only in B (1): z" in texts


def test_what_one_side_lacks_is_also_counted_as_no_medal() -> None:
    before = _report("G.G")
    after = Report((graded("b", 0, Medal.GOLD),))
    comparison = compare(before, after)
    assert comparison.differences["any_medal"].change == 100
    assert comparison.everything["any_medal"] == pytest.approx((200 / 3, 100 / 3))
    texts = [line.text for line in comparison_lines(comparison)]
    at = texts.index("and on all 3, what one side lacks counted as no medal:")
    assert texts[at + 1].split() == ["any", "medal", "66.67", "33.33", "-33.33"]
    same = compare(before, before)
    assert not any("and on all" in line.text for line in comparison_lines(same))


def test_nothing_in_common_is_refused() -> None:
    with pytest.raises(ConfigError, match="the two reports have no competition in common"):
        compare(_report("G"), Report((graded("z"),)))


def test_demonstrations_are_left_out_beside_others() -> None:
    membership = Membership({"demo": ("a",), "low": ("b",)})
    before, after = _report("GG"), _report(".G")
    found = compare(
        Report(before.results, membership=membership), Report(after.results, membership=membership)
    )
    assert list(found.pairs) == ["b"]


def test_data_that_were_prepared_in_another_way_are_said() -> None:
    def prepared(report: Report, *sums: str | None) -> Report:
        results = (
            replace(result, attempt=AttemptFacts(data_sum=each))
            for result, each in zip(report.results, sums, strict=True)
        )
        return replace(report, results=tuple(results))

    before, after = _report("G.G."), _report("G.G.")
    found = compare(
        prepared(before, "1", "2", None, "4"), prepared(after, "1", "changed", "3", "also")
    )
    assert found.conditions == ("prepared data: another version of b, d",)


def test_conditions_that_are_not_alike_are_said() -> None:
    found = compare(_report("G", agent="x", network="none"), _report("G", agent="x"))
    assert found.conditions == ("network: none -> unknown",)


def test_lines_fit_80_columns_and_mark_what_changed() -> None:
    found = compare(Report.read(REAL_REPORTS[0]), Report.from_reference(REAL_REPORTS[1:]))
    lines = [line.text for line in comparison_lines(found)]
    assert all(len(line) <= 80 and line.isprintable() for line in lines)
    any_medal = next(line for line in lines if line.startswith("any medal"))
    assert any_medal.split() == ["any", "medal", "42.67", "44.00", "+1.33", "0.771"]
    assert "cassava-leaf-disease-classification       + .        SB" in "\n".join(lines)


def test_the_same_reports_give_the_same_interval_again() -> None:
    first, second = (compare(_report("GGG...."), _report("G.G.G..")) for _ in range(2))
    assert first == second
    low, high = first.differences["any_medal"].interval
    assert low < first.differences["any_medal"].change < high


def _priced(*costs: float | None) -> Report:
    """Return a report of the competitions a, b, …, each with what its attempt cost."""
    results = (
        replace(graded(chr(97 + number)), model_use=None if usd is None else spent(usd))
        for number, usd in enumerate(costs)
    )
    return Report(tuple(results))


def test_a_change_of_cost_is_tested_as_a_permutation_of_the_attempts() -> None:
    cost = compare(_priced(*[1.0] * 10), _priced(*[1.5] * 10)).cost
    assert cost is not None
    assert (cost.before, cost.after, cost.change) == (1.0, 1.5, 0.5)
    assert cost.p_two_sided == pytest.approx(2 / 2**10, abs=0.001)  # the sign test's
    assert cost.interval == (0.5, 0.5)


def test_attempts_of_one_competition_are_dealt_to_both_sides_in_every_way() -> None:
    def seeds(*costs: float) -> Report:
        results = (replace(graded("a", n), model_use=spent(usd)) for n, usd in enumerate(costs))
        return Report(tuple(results))

    cost = compare(seeds(1, 2, 3), seeds(4, 5, 6)).cost
    assert cost is not None
    assert cost.p_two_sided == pytest.approx(2 / 20, abs=0.01)
    exact = stats.permutation_test(
        ([1, 2, 3], [4, 5, 6]), lambda x, y: sum(y) / 3 - sum(x) / 3, vectorized=False
    )
    assert cost.p_two_sided == pytest.approx(exact.pvalue, abs=0.01)


def test_competitions_whose_cost_is_not_known_are_left_out_of_it() -> None:
    found = compare(_priced(1.0, None, 3.0), _priced(2.0, 5.0, 4.0))
    assert found.cost is not None
    assert (found.cost.competitions, found.cost.left_out, found.cost.change) == (2, 1, 1.0)
    text = [line.text for line in comparison_lines(found)]
    assert "$ per attempt             $2.00           $3.00          +$1.00       0.500" in text
    assert "95 % interval of the change in dollars per attempt: +$1.00 to +$1.00" in text
    known = "dollars: on the 2 competitions whose cost is known in both; 1 left out"
    assert known in text


def test_where_no_cost_is_known_nothing_is_said_of_it() -> None:
    found = compare(_priced(None, 1.0), _priced(1.0, None))
    assert found.cost is None
    assert "$" not in "".join(line.text for line in comparison_lines(found))


def test_the_worth_of_names_is_told_where_one_side_had_none() -> None:
    plain = _report("GGGGG..", description="ours")
    obfuscated = _report("G......", description="obfuscated")
    for pair, sign in (((plain, obfuscated), "+"), ((obfuscated, plain), "+")):
        comparison = compare(*pair)
        assert comparison.names is not None
        assert comparison.names.startswith(f"what the names were worth: {sign}57.14 points")
        assert "p = 0.125" in comparison.names
        texts = [line.text for line in comparison_lines(comparison)]
        changed = texts[texts.index(comparison.names) + 1 :]
        assert [line.split()[0] for line in changed if line.startswith("  ")] == list("bcde")
        assert max(map(len, texts)) <= 100
    assert compare(plain, plain).names is None
