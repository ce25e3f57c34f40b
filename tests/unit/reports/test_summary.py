"""The terminal summary as lines, and the gate."""

from __future__ import annotations

from pathlib import Path

import pytest
from reporting import REAL_REPORTS, errored, failed, graded

from pytest_mlebench.errors import ConfigError, UnknownName
from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.gates import check_gates, parse_fail_under
from pytest_mlebench.reports.membership import Membership
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import ItemKey, Result, complete
from pytest_mlebench.reports.summary import problem_lines, summary_lines

LOW = Membership({"low": ("a", "b")})


def _text(results: list[Result], membership: Membership, **options: bool) -> str:
    return "\n".join(line.text for line in summary_lines(results, membership, **options))


def test_real_reports_at_80_columns_without_control_characters() -> None:
    report = Report.from_reference(REAL_REPORTS)
    lines = summary_lines(report.results, report.membership)
    assert all(len(line.text) <= 80 and line.text.isprintable() for line in lines)
    medals = next(line.text for line in lines if line.text.startswith("any medal"))
    assert medals.split("  ")[-1].strip() == "43.56 ± 0.89"
    assert any(line.text.split()[:1] == ["spooky-author-identification"] for line in lines)


def test_ascii_terminals_get_no_other_letter() -> None:
    report = Report.from_reference(REAL_REPORTS)
    text = _text(list(report.results), report.membership, ascii_only=True)
    assert text.isascii()
    assert "62.12 +/- 1.52" in text
    assert max(map(len, text.splitlines())) <= 80


def test_one_seed_prints_no_standard_error() -> None:
    text = _text([graded("a", medal=Medal.GOLD), graded("b")], LOW)
    assert "±" not in text
    assert "any medal                 50.00" in text
    assert "one seed has no standard error" in text


def test_missing_runs_are_counted_and_shown() -> None:
    results = list(
        complete([graded("a"), errored("b")], [ItemKey(i, s) for i in "ab" for s in (0, 1)])
    )
    text = _text(results, LOW)
    assert "missing runs             3 of 4" in text
    assert "3 of 4 runs are missing (1 by error, 2 not run to the end): counted as no med" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_letters_stand_for_the_seeds_in_order() -> None:
    results = [
        graded("a", 1, Medal.SILVER),
        graded("a", 0, Medal.GOLD),
        graded("a", 2),
        failed("a", 3),
        errored("a", 4),
        Result("a", 5, "missing"),
        graded("a", 6, Medal.BRONZE),
    ]
    assert "GS.FE?B" in _text(results, LOW)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (graded("a", medal=Medal.GOLD), "a 0.95000 gold 95.0"),
        (graded("a"), "a 0.55000 - 55.0"),
        (failed("a"), "a - failed -"),
        (errored("a"), "a - error -"),
    ],
)
def test_one_seed_is_told_in_words(result: Result, words: str) -> None:
    lines = _text([result], LOW).splitlines()
    assert words in [" ".join(line.split()) for line in lines]


def test_part_of_a_split_says_so() -> None:
    assert "competitions             1 of 2" in _text([graded("a")], LOW)


def test_leaks_are_marked_and_left_out_of_a_second_rate() -> None:
    long = "a" * 60
    membership = Membership({"low": (long, "b")}, frozenset({long}))
    text = _text([graded(long, medal=Medal.GOLD), graded("b")], membership)
    assert "  without leaks            0.00" in text
    assert ".. * " in text
    assert "* a leak of the answers is known" in text
    assert "low: a leak is known or suspected in 1 competition" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_suspected_leak_is_shown_as_one() -> None:
    membership = Membership({"low": ("a", "b")}, frozenset("a"), suspected=frozenset("a"))
    text = _text([graded("a"), graded("b")], membership)
    assert "a *? " in text
    assert "*? a leak of the answers is suspected" in text


def test_more_than_four_splits_go_on_below() -> None:
    splits = {f"split-{letter}": (letter,) for letter in "abcdef"}
    text = _text([graded(letter) for letter in "abcdef"], Membership(splits))
    assert text.count("above median") == 2
    assert all(len(line) <= 80 for line in text.splitlines())


def test_many_seeds_and_huge_scores_stay_within_80_columns() -> None:
    results = [graded("x" * 70, seed) for seed in range(60)]
    assert all(len(line) <= 80 for line in _text(results, Membership()).splitlines())


def test_nothing_run_is_said() -> None:
    assert _text([], Membership()) == "nothing was run"


def test_problems_are_one_harmless_line_each() -> None:
    (line,) = problem_lines([graded("a"), failed("b", 1, "bad\n\x1b[31mcolumn " + "x" * 100)])
    assert line.text.startswith("b seed1: bad ?[31mcolumn xxx")
    assert len(line.text) == 80


def test_markup_is_a_hint_beside_the_text() -> None:
    lines = summary_lines([graded("a", medal=Medal.GOLD), failed("b")], LOW)
    hints = {line.text.split()[0]: line.markup for line in lines if line.text[:2] in ("a ", "b ")}
    assert hints == {"a": {"yellow": True, "bold": True}, "b": {"red": True}}


def test_a_rate_under_the_bar_is_a_sentence() -> None:
    results = [graded(f"c{n}", medal=Medal.GOLD if n < 10 else Medal.NONE) for n in range(22)]
    membership = Membership({"low": tuple(f"c{n}" for n in range(22))})
    gate = parse_fail_under("low:60")
    assert check_gates([gate], results, membership) == [
        "any-medal rate of low is 45.45 %, below the bar of 60 % (--mle-fail-under=low:60)"
    ]
    assert check_gates([parse_fail_under("45.4")], results, membership) == []
    assert check_gates([parse_fail_under("lite:46")], results, membership) == [
        "any-medal rate of lite is 45.45 %, below the bar of 46 % (--mle-fail-under=lite:46)"
    ]


@pytest.mark.parametrize("seeds", [1, 3, 7])
def test_a_rate_that_equals_the_bar_passes(seeds: int) -> None:
    medals = {0: Medal.GOLD, 1: Medal.BRONZE, 2: Medal.SILVER}
    results = [graded(i, s, medals.get(int(i), Medal.NONE)) for i in "01234" for s in range(seeds)]
    assert check_gates([parse_fail_under("60")], results, Membership()) == []
    assert check_gates([parse_fail_under("60.01")], results, Membership()) == [
        "any-medal rate of the selected competitions is 60.00 %, below the bar of 60.01 % "
        "(--mle-fail-under=60.01)"
    ]


def test_a_gate_does_not_shrink_silently() -> None:
    results = [graded("a", medal=Medal.GOLD)]
    assert check_gates([parse_fail_under("low:50")], results, LOW) == [
        "any-medal rate of low cannot be judged: only 1 of its 2 competitions were selected "
        "(--mle-fail-under=low:50)"
    ]
    assert check_gates([parse_fail_under("high:50")], results, LOW) == [
        "no competition of high was selected (--mle-fail-under=high:50)"
    ]
    assert check_gates([parse_fail_under("50")], [], LOW) == [
        "no competition of any split was selected (--mle-fail-under=50)"
    ]


def test_demonstrations_do_not_help_over_the_bar() -> None:
    membership = Membership({"low": ("a",), "demo": ("x",)})
    results = [graded("a"), graded("x", medal=Medal.GOLD)]
    assert len(check_gates([parse_fail_under("50")], results, membership)) == 1
    assert check_gates([parse_fail_under("demo:100")], results, membership) == []


@pytest.mark.parametrize("value", ["", "low", "low:", ":60", "low:x", "101", "-1", "nan", "a:b:"])
def test_a_bad_bar_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match=r"--mle-fail-under must be \[SPLIT:\]PERCENT such as"):
        parse_fail_under(value)


def test_an_unknown_split_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UnknownName, match=r"split in .*=lwo:60: 'lwo', did you mean 'low'"):
        parse_fail_under("lwo:60", ["low", "medium", "high"])


def test_membership_of_a_selection_that_the_user_named_by_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("AI4Code # a note\nleaf-classification\n\nmy-own\n")
    ids = ["AI4Code", "leaf-classification", "my-own"]
    membership = Membership.of(Registry(), ids, [str(path)])
    assert membership.splits["mine"] == ("AI4Code", "leaf-classification", "my-own")
    assert membership.benchmark_split("AI4Code") == "medium"
    assert membership.benchmark_split("my-own") == "mine"


def test_membership_names_what_no_split_names() -> None:
    membership = Membership.of(Registry(), ["AI4Code", "my-own"])
    assert set(membership.splits) == {"medium", "custom"}
    assert membership.splits["custom"] == ("my-own",)
