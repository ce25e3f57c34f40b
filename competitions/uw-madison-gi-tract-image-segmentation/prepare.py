"""Scans are split by patient, and the days of a training patient after the fourth are test too."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import link_all, read_csv, reading, require, split_list, write_csv

TEST_SHARE, SEED = 0.1, 42
DAYS_KEPT = 4
SAMPLE_MASK = "1 1 5 2"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the patients and the late days of the others."""
    source = raw / "train.csv"
    table = read_csv(source, needs=["id", "class", "segmentation"])
    with reading(source):
        days = _days(table["id"])
    train_cases, test_cases = split_list(list(days["case"].unique()), TEST_SHARE, SEED)
    late = set(days[days["case"].isin(train_cases) & (days["rank"] > DAYS_KEPT)]["scan"])
    held_out = days["case"].isin(test_cases) | days["scan"].isin(late)
    tested, kept = [], []
    for case in days["case"].unique():
        for path in _files(raw / "train" / case):
            scan = path.relative_to(raw / "train" / case).parts[0]
            (tested if case in test_cases or scan in late else kept).append(path)
    for paths, folder in ((kept, "train"), (tested, "test")):
        link_all((path, public / folder / path.relative_to(raw / "train")) for path in paths)
    test = table[held_out]
    write_csv(table[~held_out], public / "train.csv")
    write_csv(test[["id", "class"]], public / "test.csv")
    keys = test[["id", "class"]]
    write_csv(keys.assign(predicted=SAMPLE_MASK), public / "sample_submission.csv")
    answers = keys.assign(predicted=test["segmentation"]).join(_sizes(tested), on="id")
    lost = answers.loc[answers["image_width"].isna(), "id"]
    if len(lost):
        raise PreparationError(f"{raw / 'train'} has no picture of slice {lost.iloc[0]}")
    write_csv(answers, private / "test.csv")


def _days(ids: pd.Series[str]) -> pd.DataFrame:
    """Return for each row its case, its scan and which day of the case it is, from 1."""
    parts = ids.str.split("_", expand=True)
    days = pd.DataFrame({"case": parts[0], "scan": parts[0] + "_" + parts[1]})
    days["number"] = parts[1].str.removeprefix("day").astype(int)
    days["rank"] = days.groupby("case")["number"].rank("dense")
    return days


def _files(case: Path) -> list[Path]:
    """Return all files of a case: <case>_<day>/scans/slice_<number>_<width>_<height>_….png."""
    return sorted(path for path in require(case).rglob("*") if path.is_file())


def _sizes(pictures: list[Path]) -> pd.DataFrame:
    """Return width and height of each slice, as its file's name gives them."""
    rows = {}
    for path in pictures:
        parts = path.stem.split("_")
        if parts[0] == "slice" and len(parts) > 3:
            with reading(path):
                size = float(parts[2]), float(parts[3])
            rows[f"{path.parts[-3]}_slice_{parts[1]}"] = size
    return pd.DataFrame.from_dict(rows, orient="index", columns=["image_width", "image_height"])
