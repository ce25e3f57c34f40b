"""Leaves are split at random and numbered from 0 in each part, pictures included."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing import link_all, read_csv, split_rows, write_csv

CLASSES = ["healthy", "multiple_diseases", "rust", "scab"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the leaves."""
    table = read_csv(raw / "train.csv", needs=["image_id", *CLASSES])
    train, test = split_rows(table, 0.1)
    train, test = _renamed(train, "Train", raw, public), _renamed(test, "Test", raw, public)
    write_csv(train, public / "train.csv")
    write_csv(test[["image_id"]], public / "test.csv")
    write_csv(test.assign(**dict.fromkeys(CLASSES, 0.25)), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")


def _renamed(part: pd.DataFrame, name: str, raw: Path, public: Path) -> pd.DataFrame:
    """Return a part with new ids, its pictures placed under them."""
    ids = [f"{name}_{number}" for number in range(len(part))]
    link_all(
        (raw / "images" / f"{old}.jpg", public / "images" / f"{new}.jpg")
        for old, new in zip(part["image_id"], ids, strict=True)
    )
    return part.assign(image_id=ids)
