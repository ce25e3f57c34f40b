"""Breaths are split at random, all steps of one together; steps are renumbered in each part."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing import read_csv, split_groups, write_csv

TYPES = {
    "id": "int32",
    "breath_id": "int32",
    "R": "int8",
    "C": "int8",
    "time_step": "float64",
    "u_in": "float64",
    "u_out": "int8",
    "pressure": "float64",
}
DIGITS = "%.10g"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the breaths."""
    steps = read_csv(raw / "train.csv", needs=TYPES, dtype=TYPES)
    train, test = (_renumbered(part) for part in split_groups(steps, "breath_id", 0.1))
    write_csv(train, public / "train.csv", float_format=DIGITS)
    write_csv(test.drop(columns="pressure"), public / "test.csv", float_format=DIGITS)
    write_csv(test, private / "test.csv", float_format=DIGITS)
    write_csv(test[["id"]].assign(pressure=0), public / "sample_submission.csv")


def _renumbered(part: pd.DataFrame) -> pd.DataFrame:
    return part.assign(id=range(1, len(part) + 1))
