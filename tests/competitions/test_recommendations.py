"""Recommendations for customers: only some are scored, and nobody knows which."""

from __future__ import annotations

from pathlib import Path

import pytest
from submission_laws import Bench

from pytest_mlebench import InvalidSubmission


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """The competition, prepared, and honest submissions to it."""
    return Bench.of("h-and-m-personalized-fashion-recommendations", tmp_path)


def test_a_file_that_was_cut_in_half_is_refused_by_the_format_check(bench: Bench) -> None:
    lines = bench.honest[0].splitlines(keepends=True)
    bench.file.write_text("".join(lines))
    bench.competition.check(bench.file, bench.public)
    bench.file.write_text("".join(lines[: len(lines) // 2]))
    with pytest.raises(InvalidSubmission) as caught:
        bench.competition.check(bench.file, bench.public)
    assert "of the sample are missing, such as id" in str(caught.value)
    with pytest.raises(InvalidSubmission):
        bench.competition.score(bench.file, bench.private)


def test_a_row_without_a_customer_is_refused_even_where_none_is_needed(bench: Bench) -> None:
    lines = bench.honest[0].splitlines()
    bench.file.write_text("\n".join([*lines, ",0706016001"]) + "\n")
    for refuse in (
        lambda: bench.competition.check(bench.file, bench.public),
        lambda: bench.competition.score(bench.file, bench.private),
    ):
        with pytest.raises(InvalidSubmission, match=r"column 'customer_id' is empty in row"):
            refuse()
