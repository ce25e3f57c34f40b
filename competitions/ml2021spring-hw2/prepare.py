"""Frames of speech are split at random; their new places in the array are their ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import reading, require, split_indices, write_csv

FOLDER = Path("timit_11", "timit_11")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out as large a share of the frames as the original test part had of all."""
    frames, labels = _load(raw, "train_11.npy"), _load(raw, "train_label_11.npy")
    if len(frames) != len(labels):
        where = raw / FOLDER / "train_label_11.npy"
        raise PreparationError(f"{where} has {len(labels)} labels for {len(frames)} frames")
    held_out = len(_load(raw, "test_11.npy"))
    train, test = split_indices(len(frames), held_out / (len(frames) + held_out))
    _save(frames[train], public, "train_11.npy")
    _save(labels[train], public, "train_label_11.npy")
    _save(frames[test], public, "test_11.npy")
    answers = pd.DataFrame({"Id": range(len(test)), "ClassId": labels[test]})
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(ClassId=0), public / "sampleSubmission.csv")


def _load(raw: Path, name: str) -> Any:
    """Return an array of the raw data, which stays on disk."""
    path = require(raw / FOLDER / name)
    with reading(path):
        return np.lib.format.open_memmap(path, mode="r")


def _save(array: Any, public: Path, name: str) -> None:
    path = public / FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)
