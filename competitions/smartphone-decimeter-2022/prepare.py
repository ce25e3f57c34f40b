"""Drives are split at random by day, all phones of a drive and all drives of a day together."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import link_tree, read_csv_inexact, require, split_list, write_csv

TRUTH = "ground_truth.csv"
POSITION = ["UnixTimeMillis", "LatitudeDegrees", "LongitudeDegrees"]
SAMPLE = {"LatitudeDegrees": 37.904611315634504, "LongitudeDegrees": -86.48107806249548}


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the days."""
    drives = sorted(path for path in require(raw / "train").iterdir() if path.is_dir())
    _, test_days = split_list(sorted({_day(drive) for drive in drives}), 0.1)
    test_drives = [drive for drive in drives if _day(drive) in test_days]
    for drive in drives:
        if drive in test_drives:
            link_tree(drive, public / "test" / drive.name, skip=[TRUTH])
        else:
            link_tree(drive, public / "train" / drive.name)
    link_tree(raw / "metadata", public / "metadata")
    test = _positions(test_drives)
    write_csv(test, private / "test.csv")
    write_csv(test.assign(**SAMPLE), public / "sample_submission.csv")


def _day(drive: Path) -> str:
    """Return the date in a drive's name, 2021-06-23 also for 2021-6-23-US-MTV-1."""
    parts = drive.name.split("-")
    if len(parts) < 3:
        raise PreparationError(f"{drive}: the name of a drive must begin with its date")
    year, month, day = parts[:3]
    return f"{year}-{month:0>2}-{day:0>2}"


def _positions(drives: list[Path]) -> pd.DataFrame:
    """Return the true positions of all phones, phone after phone."""
    tables = []
    for path in (truth for drive in drives for truth in sorted(drive.glob(f"*/{TRUTH}"))):
        phone = path.parent
        table = read_csv_inexact(path, needs=POSITION)[POSITION]
        table.insert(0, "tripId", f"{phone.parent.name}-{phone.name}")
        tables.append(table)
    if not tables:
        names = ", ".join(drive.name for drive in drives)
        raise PreparationError(f"no such file in the raw data: {TRUTH} of the drives {names}")
    return pd.concat(tables, ignore_index=True)
