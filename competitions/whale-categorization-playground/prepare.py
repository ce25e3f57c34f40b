"""Whales with several photographs are put on both sides, most others in train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.preparing import link_all, read_csv, split_indices, write_csv

TEST_SHARE = 0.1
UNKNOWN = "new_whale"  # also the answer for a whale that train does not show
SAMPLE = f"{UNKNOWN} w_1287fbc w_98baff9 w_7554f44 w_1eafe46"

Flags = np.ndarray[Any, np.dtype[np.bool_]]
Rows = np.ndarray[Any, np.dtype[np.int64]]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a photograph of each whale that has two, and a tenth of the rest."""
    table = read_csv(raw / "train.csv", needs=["Image", "Id"])
    held_out = _held_out(table["Id"])
    train, test = table[~held_out], table[held_out]
    for folder, part in (("train", train), ("test", test)):
        link_all((raw / "train" / name, public / folder / name) for name in part["Image"])
    answers = test.assign(Id=test["Id"].where(test["Id"].isin(train["Id"]), UNKNOWN))
    write_csv(train, public / "train.csv")
    write_csv(test.assign(Id=SAMPLE), public / "sample_submission.csv")
    write_csv(answers, private / "test.csv")


def _held_out(whales: pd.Series[Any]) -> Flags:
    """Tell which rows are test rows."""
    lottery = np.random.default_rng(0)
    held_out, decided = np.zeros((2, len(whales)), dtype=bool)
    for rows in _by_whale(whales):
        if len(rows) == 1:
            held_out[rows] = lottery.random() >= 1 - TEST_SHARE
            decided[rows] = True
        else:
            pair = rows[np.random.RandomState(0).permutation(len(rows))[:2]]
            held_out[pair[1]] = True
            decided[pair] = True
    rest = np.flatnonzero(~decided)
    _, taken = split_indices(len(rest), TEST_SHARE)
    held_out[rest[taken]] = True
    return held_out


def _by_whale(whales: pd.Series[Any]) -> list[Rows]:
    """Return the rows of each whale, whales in order of first appearance."""
    codes, _ = pd.factorize(whales)
    ends = np.cumsum(np.bincount(codes))
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])
