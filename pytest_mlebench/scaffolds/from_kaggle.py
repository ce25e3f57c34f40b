"""A competition made of one on Kaggle: its training table, split anew, and its leaderboard."""

from __future__ import annotations

import math
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pytest_mlebench._messages import Progress
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.kaggle.client import Kaggle
from pytest_mlebench.kaggle.download import download

SCORES = "leaderboard.csv"
TABLES = (".csv", ".csv.zip")


@dataclass(frozen=True)
class KaggleTables:
    """What of a download tells how the competition works."""

    train: str  # the path of the training table in the zip
    id: str
    targets: tuple[str, ...]
    left_out: tuple[str, ...]  # further files, which the competition does without


def fetch(kaggle_id: str, target: Path, progress: Progress) -> list[float]:
    """Download a competition's zip to *target* and return the scores of its teams."""
    with Kaggle(progress) as kaggle:
        kaggle.check_access(kaggle_id)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            progress(f"{kaggle_id}: downloading")
            download(kaggle, kaggle_id, target, progress)
        rows = list(kaggle.leaderboard(kaggle_id))
    return [score for row in rows if math.isfinite(score := _number(row.score))]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # a team without a score
        return math.nan


def find_tables(archive: Path) -> KaggleTables:
    """Return the training table and what the sample submission asks for, or say what is missing."""
    with zipfile.ZipFile(archive) as packed:
        files = [info.filename for info in packed.infolist() if not info.is_dir()]
        names = [name for name in files if name.lower().endswith(TABLES)]
        sample = next((name for name in names if "submission" in name.lower()), None)
        if sample is None:
            raise ConfigError(
                f"{archive} has no csv file with submission in its name: make the competition "
                "from a table with --from-csv"
            )
        key, *targets = _columns(packed, sample)
        for name in sorted(names, key=lambda name: ("train" not in name.lower(), len(name))):
            if name != sample and set(_columns(packed, name)).issuperset(targets):
                left_out = tuple(file for file in files if file not in (name, sample))
                return KaggleTables(name, key, tuple(targets), left_out)
    raise ConfigError(
        f"no table of {archive} has the columns {', '.join(targets[:5])} that a submission is to "
        "have: make the competition from a table with --from-csv"
    )


def _columns(packed: zipfile.ZipFile, name: str) -> list[str]:
    """Return the columns of a table in a zip, which may be in a zip of its own there."""
    import pandas as pd  # late on purpose: heavy

    own = "zip" if name.lower().endswith(".zip") else None
    with packed.open(name) as file:
        try:
            return list(map(str, pd.read_csv(file, nrows=1, compression=own).columns))
        except (ValueError, zipfile.BadZipFile) as error:
            raise ConfigError(f"cannot read {name} of {packed.filename}: {error}") from None


@contextmanager
def unpacked_table(archive: Path, member: str, raw: Path) -> Iterator[Path]:
    """Yield a copy of one table of a zip, at its place in a raw tree, gone when the block ends."""
    if PurePosixPath(member).is_absolute() or ".." in PurePosixPath(member).parts:
        raise ConfigError(f"{archive} has a file that would be outside of it: {member}")
    path = raw / member
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive) as packed, packed.open(member) as source, path.open("wb") as copy:
        shutil.copyfileobj(source, copy)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
