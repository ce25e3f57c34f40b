"""Full leaderboards: every team's private score, instead of a table of 101 points."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_mlebench._files import write_text
from pytest_mlebench._messages import Log
from pytest_mlebench.competition import Competition
from pytest_mlebench.errors import ConfigError, DatasetError
from pytest_mlebench.kaggle.client import Kaggle
from pytest_mlebench.medals import Leaderboard

FILE = "leaderboard.csv"
CHUNK_ROWS = 500_000  # of Submissions.csv at a time: the whole has tens of millions

Team = tuple[str, float]


def leaderboard_of(competition: Competition, kept: Path) -> Leaderboard:
    """Return the full leaderboard if the folder *kept* has it, else the competition's own table."""
    teams = read_teams(kept / FILE)
    if teams is None:
        return competition.leaderboard
    scores = [score for _, score in teams]
    return Leaderboard.from_scores(scores, lower_is_better=competition.lower_is_better)


def with_leaderboard(competition: Competition, kept: Path) -> Competition:
    """Return the competition with the full leaderboard, if the folder *kept* has it."""
    return replace(competition, leaderboard=leaderboard_of(competition, kept))


def fetch_leaderboard(competition: Competition, kept: Path, log: Log | None = None) -> Leaderboard:
    """Fetch every page of the private leaderboard from Kaggle and keep it in a folder."""
    with Kaggle(log) as kaggle:
        rows = [(row.team, row.score) for row in kaggle.leaderboard(competition.id)]
    return _keep(competition, kept, rows, "Kaggle")


def import_leaderboard(
    competition: Competition, kept: Path, folder: Path, log: Log | None = None
) -> Leaderboard:
    """Take the private leaderboard from a Meta Kaggle folder and keep it in a folder."""
    for name in ("Teams.csv", "Submissions.csv"):
        if not (folder / name).is_file():
            raise ConfigError(f"{folder}: no {name}, is it a Meta Kaggle folder?")
    number = _number(competition, folder, log)
    rows = _meta_rows(folder, number)
    return _keep(competition, kept, rows, f"{folder} for competition {number}")


def read_teams(path: Path) -> list[Team] | None:
    """Return the teams of a stored leaderboard, or none if there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        rows = list(csv.DictReader(io.StringIO(text)))
        teams = [(row["team"], float(row["score"])) for row in rows]
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise DatasetError(f"{path}: not a leaderboard ({error}): remove it") from None
    if not teams:
        raise DatasetError(f"{path}: a leaderboard without teams: remove it")
    return teams


def _keep(
    competition: Competition, kept: Path, rows: Sequence[tuple[str, str]], where: str
) -> Leaderboard:
    teams = list(_scored(rows))
    if not teams:
        raise DatasetError(f"{competition.id}: {where} has no scores of any team")
    teams.sort(key=lambda team: team[1], reverse=not competition.lower_is_better)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("team", "score"))
    writer.writerows((team, repr(score)) for team, score in teams)
    write_text(kept / FILE, file.getvalue())
    return leaderboard_of(competition, kept)


def _scored(rows: Iterable[tuple[str, str]]) -> Iterable[Team]:
    """Yield the teams that have a score: a team without one is not on the leaderboard."""
    for team, score in rows:
        try:
            value = float(score)
        except (TypeError, ValueError):
            continue
        if math.isfinite(value):
            yield team, value


def _number(competition: Competition, folder: Path, log: Log | None) -> int:
    """Return Kaggle's number of a competition: from the folder, else from Kaggle itself."""
    path = folder / "Competitions.csv"
    if not path.is_file():
        try:
            with Kaggle(log) as kaggle:
                return kaggle.competition_number(competition.id)
        except ConfigError as error:
            raise ConfigError(
                f"{folder}: has no Competitions.csv, which gives the number of {competition.id}, "
                f"and Kaggle cannot be asked for it: {error}"
            ) from None
    table = _read(path, ["Id", "Slug"])
    numbers = table.loc[table["Slug"] == competition.id, "Id"]
    if numbers.empty:
        raise ConfigError(f"{path}: has no competition {competition.id}")
    return int(numbers.iloc[0])


def _meta_rows(folder: Path, number: int) -> list[tuple[str, str]]:
    """Return team and private score of every team that is on the private leaderboard."""
    wanted = ["Id", "CompetitionId", "TeamName", "PrivateLeaderboardSubmissionId"]
    teams = _read(folder / "Teams.csv", [*wanted, "IsBenchmark"], optional=("IsBenchmark",))
    teams = teams[teams["CompetitionId"] == number]
    if "IsBenchmark" in teams:  # the host's own entries are not teams
        teams = teams[~teams["IsBenchmark"].astype(str).str.lower().isin(("true", "1", "1.0"))]
    teams = teams.dropna(subset=["PrivateLeaderboardSubmissionId"])
    chosen = teams["PrivateLeaderboardSubmissionId"].astype(int)
    names = teams["TeamName"].fillna(teams["Id"].astype(str))
    scores = _private_scores(folder / "Submissions.csv", set(chosen))
    return [(name, scores.get(key, "")) for name, key in zip(names, chosen, strict=True)]


def _private_scores(path: Path, wanted: set[int]) -> dict[int, str]:
    """Return the private scores of some submissions, in full precision where it is given."""
    full, shown = "PrivateScoreFullPrecision", "PrivateScoreLeaderboardDisplay"
    found = _read(path, ["Id", full, shown], optional=(full, shown), chunksize=CHUNK_ROWS)
    scores: dict[int, str] = {}
    with _readable(path):
        for part in found:
            columns = [name for name in (full, shown) if name in part]
            if not columns:
                raise ConfigError(f"{path}: has neither column {full} nor {shown}")
            ours = part[part["Id"].isin(wanted)]
            best = ours[columns].bfill(axis=1)[columns[0]].dropna()
            scores |= dict(zip(ours.loc[best.index, "Id"].astype(int), best, strict=True))
    return scores


def _read(path: Path, columns: Sequence[str], optional: Sequence[str] = (), **options: Any) -> Any:
    """Read some columns of a csv file; those that are not optional must be there."""
    import pandas as pd  # late on purpose: heavy

    with _readable(path):
        header = pd.read_csv(path, nrows=0).columns
        if absent := [name for name in columns if name not in (*header, *optional)]:
            raise ConfigError(f"{path}: has no column {absent[0]}")
        chosen = [name for name in columns if name in header]
        texts = dict.fromkeys(optional, str)  # scores: every digit as it is
        return pd.read_csv(path, usecols=chosen, dtype=texts, **options)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Name the file that is not what it should be."""
    try:
        yield
    except ValueError as error:  # pandas' own errors and wrong bytes are such
        raise ConfigError(f"{path}: not a readable csv file: {error}") from None
