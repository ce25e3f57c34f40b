"""Days of several bakeries with a generated demand; the later days are held out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from pytest_mlebench.preparing import read_csv, write_csv

SHOPS = 8
DAYS = 365
TEST_FROM = 275  # the last quarter of the year
PUBLIC = ["id", "shop", "day", "weekday", "holiday", "temperature", "promotion"]


def generate(raw: Path) -> None:
    """Write a year of demand for each shop."""
    random = np.random.RandomState(31)
    days = np.tile(np.arange(DAYS), SHOPS)
    shops = np.repeat(np.arange(SHOPS), DAYS)
    weekday = days % 7
    season = 12 - 10 * np.cos(2 * np.pi * (days - 20) / 365)
    temperature = (season + random.normal(0, 4, len(days))).round(1)
    holiday = (random.uniform(size=len(days)) < 0.03).astype(int)
    promotion = (random.uniform(size=len(days)) < 0.1).astype(int)
    level = random.uniform(40, 160, SHOPS)[shops]
    week = np.array([0.9, 0.85, 0.9, 1.0, 1.2, 1.5, 0.6])[weekday]
    warm = np.exp(-0.012 * (temperature - 12))
    mean = level * week * warm * (1 + 0.35 * promotion) * (1 - 0.4 * holiday)
    table = pd.DataFrame(
        {
            "id": range(1, len(days) + 1),
            "shop": [f"shop-{k}" for k in shops],
            "day": days,
            "weekday": np.array(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])[weekday],
            "holiday": holiday,
            "temperature": temperature,
            "promotion": promotion,
            "loaves": random.negative_binomial(20, 20 / (20 + mean)),
        }
    )
    write_csv(table, raw / "days.csv")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the last quarter of the year."""
    table = read_csv(raw / "days.csv", needs=[*PUBLIC, "loaves"])
    train, test = table[table["day"] < TEST_FROM], table[table["day"] >= TEST_FROM]
    write_csv(train, public / "train.csv")
    write_csv(test[PUBLIC], public / "test.csv")
    write_csv(test[["id", "shop", "loaves"]], private / "answers.csv")
    write_csv(test[["id"]].assign(loaves=100.0), public / "sample_submission.csv")
