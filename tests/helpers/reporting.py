"""Makers of results for the tests of numbers and reports."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.gateway.model_use import ModelUse
from pytest_mlebench.gateway.spending import ModelSpending, Spending, Usage
from pytest_mlebench.grade import Grade
from pytest_mlebench.medals import Medal
from pytest_mlebench.reports.results import Result

REAL_REPORTS = sorted((Path(__file__).parents[1] / "data" / "real-reports").glob("*.json"))
SCORES = {Medal.GOLD: 0.95, Medal.SILVER: 0.85, Medal.BRONZE: 0.75, Medal.NONE: 0.55}


def graded(competition: str, seed: int = 0, medal: Medal = Medal.NONE) -> Result:
    """Return a result whose score earns *medal* (thresholds 0.9, 0.8, 0.7, median 0.6)."""
    grade = Grade(
        competition=competition,
        score=SCORES[medal],
        medal=medal,
        above_median=SCORES[medal] > 0.6,
        percentile=100 * SCORES[medal],
        submission_exists=True,
        problem=None,
        gold=0.9,
        silver=0.8,
        bronze=0.7,
        median=0.6,
        lower_is_better=False,
        teams=100,
    )
    return Result(competition, seed, "graded", grade, agent_seconds=3600.0, format_checks=2)


def failed(competition: str, seed: int = 0, problem: str = "no submission.csv") -> Result:
    """Return the result of an agent that handed in nothing valid."""
    grade = Grade(
        competition=competition,
        score=None,
        medal=Medal.NONE,
        above_median=False,
        percentile=None,
        submission_exists=False,
        problem=problem,
        gold=0.9,
        silver=0.8,
        bronze=0.7,
        median=0.6,
        lower_is_better=False,
        teams=100,
    )
    return Result(competition, seed, "failed", grade)


def errored(competition: str, seed: int = 0) -> Result:
    """Return a result that the benchmark itself is to blame for."""
    return Result(competition, seed, "error", error="the engine is gone")


COMPETITION = """
title = "A test"
complexity = "custom"
category = "Tabular"
size_gb = 0.0019
source = "generated"
answers = "test.csv"
sample = "sample_submission.csv"

[submission]
id = "id"
targets = ["y"]
extra_columns = "{extra_columns}"

[metric]
name = "rmse"

[leaderboard]
teams = 200
gold = {gold}
silver = 2
bronze = 3
median = 5
percentiles = [{percentiles}]

[[known_issues]]
kind = "leak"
what = "the answers are the ids, divided by ten, as anybody can see who looks at the training data"
"""

PREPARE = """
from pathlib import Path


def generate(raw: Path) -> None:
    rows = (f"{number},{number / 10}\\n" for number in range(100))
    (raw / "all.csv").write_text("id,y\\n" + "".join(rows))


def prepare(raw: Path, public: Path, private: Path) -> None:
    header, *rows = (raw / "all.csv").read_text().splitlines()
    (public / "train.csv").write_text("\\n".join([header, *rows[:80]]) + "\\n")
    answers = [f"{row},Private" for row in rows[80:]]
    (private / "test.csv").write_text("\\n".join([f"{header},Usage", *answers]) + "\\n")
    sample = [row.split(",")[0] + ",0" for row in rows[80:]]
    (public / "sample_submission.csv").write_text("\\n".join([header, *sample]) + "\\n")
"""


def write_competition(
    root: Path, name: str = "tiny", *, gold: float = 1, extra_columns: str = "ignore"
) -> Path:
    """Write a competition whose 20 answers are the ids 80 to 99 divided by ten; return *root*."""
    folder = root / name
    folder.mkdir(parents=True)
    percentiles = ", ".join(str(0.01 + p / 10) for p in range(101))
    text = COMPETITION.format(gold=gold, extra_columns=extra_columns, percentiles=percentiles)
    (folder / "competition.toml").write_text(text)
    (folder / "prepare.py").write_text(PREPARE)
    (folder / "description.md").write_text(f"# {name}\n")
    return root


def write_submission(path: Path, error: float = 0) -> Path:
    """Write a submission for that competition whose error is the same in every row."""
    rows = (f"{number},{number / 10 + error}\n" for number in range(80, 100))
    path.write_text("id,y\n" + "".join(rows))
    return path


def spent(usd: float | None, tokens: int = 1000, *, unmetered: int = 0) -> ModelUse:
    """Return what a gateway counted of one model; None is a price that nobody knows."""
    usage = Usage(input_tokens=tokens)
    one = ModelSpending("openai", "gpt-5", calls=2, unmetered=unmetered, usage=usage, usd=usd)
    return ModelUse(metered=Spending(models=(one,)))
