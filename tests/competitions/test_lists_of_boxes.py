"""Lists of boxes are graded some at a time: the same score, whatever is read at a time."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from peak_memory import peak_growth
from submission_laws import Bench

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading import tokens

UNITS = {  # a box as short as can be, of a class that the answers have
    "3d-object-detection-for-autonomous-vehicles": "1 1 1 1 1 1 1 1 car",
    "kuzushiji-recognition": "U+3042 1 1",
    "siim-covid19-detection": "none 1 0 0 1 1",
    "vinbigdata-chest-xray-abnormalities-detection": "1 1 0 0 1 1",
}
SIZE = 8_000_000


@pytest.fixture(params=UNITS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """A prepared competition, and an honest submission to it."""
    made = Bench.of(request.param, tmp_path)
    made.file.write_text(made.honest[0], encoding="utf-8")
    return made


def test_the_score_is_the_same_however_little_is_read_at_a_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bench.competition.score(bench.file, bench.private)
    monkeypatch.setattr(tokens, "PORTION_CHARS", 40)
    monkeypatch.setattr(bench.competition.grader, "LONG_CHARS", 0, raising=False)
    assert bench.competition.score(bench.file, bench.private) == pytest.approx(whole, rel=1e-12)


def test_a_file_in_one_cell_takes_a_few_times_its_memory(bench: Bench) -> None:
    bench.competition.score(bench.file, bench.private)  # imports what the grader needs
    header, row, *rows = bench.honest[0].splitlines(keepends=True)
    unit = UNITS[bench.competition.id]
    cell = " ".join([unit] * (SIZE // (len(unit) + 1)))
    bench.file.write_text("".join([header, f"{row.split(',')[0]},{cell}\n", *rows]))

    def score() -> None:
        with suppress(InvalidSubmission):
            bench.competition.score(bench.file, bench.private)

    assert peak_growth(score) <= 5 * SIZE + 5_000_000


def test_a_box_that_is_longer_than_what_is_read_at_a_time_is_read_as_a_whole(bench: Bench) -> None:
    header, row, *rows = bench.honest[0].splitlines(keepends=True)
    unit = UNITS[bench.competition.id]
    longer = unit.replace(" 1", f" {'0' * 2 * tokens.PORTION_CHARS}1", 1)
    scores = []
    for first in (unit, longer):
        cell = " ".join([first] + [unit] * 20_000)
        bench.file.write_text("".join([header, f"{row.split(',')[0]},{cell}\n", *rows]))
        scores.append(bench.competition.score(bench.file, bench.private))
    assert scores[0] == scores[1]
