"""Water levels of an invented harbour; every fourth hour is held out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from pytest_mlebench.preparing import read_csv, write_csv

HOURS = 24 * 60


def generate(raw: Path) -> None:
    """Write two months of hourly levels."""
    random = np.random.RandomState(5)
    hour = np.arange(HOURS)
    moon, sun = 2 * np.pi * hour / 12.42, 2 * np.pi * hour / 12.0
    wind = random.normal(0, 1, HOURS).cumsum() * 0.02
    level = 2 + 1.1 * np.cos(moon) + 0.4 * np.cos(sun) + wind + random.normal(0, 0.05, HOURS)
    table = pd.DataFrame({"id": hour, "moon": moon % (2 * np.pi), "sun": sun % (2 * np.pi)})
    write_csv(table.round(4).assign(wind=wind.round(3), level=level.round(3)), raw / "levels.csv")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out every fourth hour."""
    table = read_csv(raw / "levels.csv", needs=["id", "moon", "sun", "wind", "level"])
    held_out = table["id"] % 4 == 0
    train, test = table[~held_out], table[held_out]
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="level"), public / "test.csv")
    write_csv(test[["id"]].assign(level=2.0), public / "sample_submission.csv")
    write_csv(test[["id", "level"]], private / "answers.csv")
