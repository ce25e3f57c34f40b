"""Satellite records are split at random, as many for the test as there are for validation."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.preparing import (
    link,
    link_all,
    link_tree,
    read_records,
    reading,
    require,
    split_list,
    write_csv,
    write_json,
)

TRAIN, VALIDATION = "train_metadata.json", "validation_metadata.json"
BANDS = tuple(f"band_{number:02}.npy" for number in range(8, 17))
TRUTH = "human_pixel_masks.npy"
MASKS = ("human_individual_masks.npy", TRUTH)
GUESSES = ("1 3 10 5", "-")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out records with their masks; the validation part stays as it is."""
    records = read_records(raw / TRAIN, needs=["record_id"])
    train, test = split_list(records, len(read_records(raw / VALIDATION)))
    _place(raw, train, public / "train", (*BANDS, *MASKS))
    _place(raw, test, public / "test", BANDS)
    (public / "validation").mkdir()
    if (raw / "validation").is_dir():
        link_tree(raw / "validation", public / "validation")
    write_json(train, public / TRAIN)
    link(raw / VALIDATION, public / VALIDATION)
    answers = pd.DataFrame([_answer(raw / "train", record["record_id"]) for record in test])
    draw = random.Random(0)
    guesses = [draw.choice(GUESSES) for _ in test]
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(encoded_pixels=guesses), public / "sample_submission.csv")


def _place(raw: Path, records: list[dict[str, Any]], target: Path, names: tuple[str, ...]) -> None:
    ids = [record["record_id"] for record in records]
    link_all((raw / "train" / i / name, target / i / name) for i in ids for name in names)


def _answer(folder: Path, record: str) -> dict[str, Any]:
    path, band = folder / record / TRUTH, folder / record / BANDS[0]
    with reading(require(band)):
        height, width = np.load(band, mmap_mode="r").shape[:2]
    with reading(require(path)):
        mask = np.load(path).reshape(height, width) == 1
    return {
        "record_id": record,
        "encoded_pixels": _encode(mask) or "-",
        "height": height,
        "width": width,
    }


def _encode(mask: np.ndarray[Any, Any]) -> str:
    """Return pairs of start (from 1, down the columns) and length."""
    padded = np.concatenate([[False], mask.ravel(order="F"), [False]])
    edges = np.flatnonzero(padded[1:] != padded[:-1]) + 1
    edges[1::2] -= edges[0::2]
    return " ".join(map(str, edges))
