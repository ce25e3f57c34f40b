"""Does a prepared dataset grade as it should? The best submission earns gold, the sample a score.

The best submission is the file the competition names, else its answers where they are acceptable
as a submission, as they are or reduced to the columns of one.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlebench._units import show_score
from pytest_mlebench.archives.archive import read_single
from pytest_mlebench.errors import InvalidSubmission, MlebenchError
from pytest_mlebench.grading.read import read_own
from pytest_mlebench.medals import DECIMALS, Leaderboard, Medal

if TYPE_CHECKING:
    from pytest_mlebench.dataset import Dataset


@dataclass(frozen=True)
class SelfCheck:
    """What became of the two submissions of one dataset that the benchmark makes itself."""

    competition: str
    sample: float | None
    gold: float | None  # None: rejected, or there is none, see ``notes``
    problems: tuple[str, ...]
    notes: tuple[str, ...]


def check_dataset(dataset: Dataset) -> SelfCheck:
    """Grade the sample submission and the best one of a prepared dataset."""
    problems: list[str] = []
    notes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mle-selfcheck-") as folder:
        sample = _sample_score(dataset, Path(folder), problems)
        gold = _gold_score(dataset, Path(folder), problems, notes)
    if gold is not None:
        problems += _shortcomings(gold, sample, dataset.competition.leaderboard)
    return SelfCheck(dataset.competition.id, sample, gold, tuple(problems), tuple(notes))


def _sample_score(dataset: Dataset, folder: Path, problems: list[str]) -> float | None:
    competition = dataset.competition
    try:
        path = _as_submission(dataset.sample, folder / "sample")
        competition.check(path, dataset.public)
        return round(competition.score(path, dataset.private), DECIMALS)
    except (MlebenchError, OSError) as error:
        problems.append(f"the sample submission cannot be graded: {error}")
        return None


def _gold_score(
    dataset: Dataset, folder: Path, problems: list[str], notes: list[str]
) -> float | None:
    competition = dataset.competition
    refusal = "its answers are not one file"
    for path in _candidates(dataset, folder / "gold"):
        try:
            return round(competition.score(path, dataset.private), DECIMALS)
        except InvalidSubmission as error:
            refusal = str(error)
        except MlebenchError as error:
            problems.append(f"the best submission cannot be graded: {error}")
            return None
    if competition.gold is not None:
        problems.append(f"{competition.gold} is rejected: {refusal}")
    else:
        notes.append(f"no best submission is known, the answers are none: {refusal}")
    return None


def _candidates(dataset: Dataset, folder: Path) -> Iterator[Path]:
    if dataset.competition.gold is not None:
        yield _as_submission(dataset.private / dataset.competition.gold, folder / "named")
    elif dataset.answers.is_file():
        yield _as_submission(dataset.answers, folder / "answers")
        if reduced := _reduced(dataset, folder / "reduced"):
            yield reduced


def _reduced(dataset: Dataset, folder: Path) -> Path | None:
    """Return the columns of the answers that a submission has."""
    rules = dataset.competition.rules
    try:
        answers = read_own(dataset.answers, rules).frame()
    except (OSError, MlebenchError):  # not a table
        return None
    wanted = [*rules.id, *rules.targets]
    if not set(wanted) <= set(answers.columns):
        return None
    folder.mkdir(parents=True)
    path = folder / "submission.csv"
    answers[wanted].to_csv(path, index=False)
    return path


def _as_submission(source: Path, folder: Path) -> Path:
    """Copy a file of ours to where a submission is read from, out of the archive it may be in."""
    folder.mkdir(parents=True)
    target = folder / "submission.csv"
    if source.suffix in {".zip", ".7z"}:
        target.write_bytes(read_single(source))
    else:
        shutil.copyfile(source, target)
    return target


def _shortcomings(gold: float, sample: float | None, board: Leaderboard) -> Iterator[str]:
    sign = 1 if board.lower_is_better else -1
    top = show_score(gold)
    if board.gold is not None and board.medal(gold) is not Medal.GOLD:
        yield f"the best submission scores {top}, which earns no gold ({show_score(board.gold)})"
    if sample is not None and sign * sample < sign * gold:
        yield f"the sample submission ({show_score(sample)}) beats the best one ({top})"
    best = board.percentiles[0] if board.percentiles else None
    if best is not None and sign * best < sign * gold:
        yield f"the best team's score ({show_score(best)}) beats the best submission ({top})"
