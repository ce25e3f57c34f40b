"""Radar images are split at random; each file the agent sees is alone in a 7z archive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import (
    open_records,
    read_start_of_7z,
    reading,
    require,
    split_indices,
    unpacked,
    write_7z,
    write_csv,
)

FOLDER = "data/processed"
MAX_RECORD_BYTES = 1 << 24  # a record has about 200 000


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a fifth of the images."""
    fields = list(_first_record(raw / "test.json.7z", f"{FOLDER}/test.json"))
    needs = ["id", "is_iceberg", *fields]
    with (
        unpacked(raw / "train.json.7z", near=public) as folder,
        open_records(
            folder / FOLDER / "train.json", needs=needs, keep=["id", "is_iceberg"]
        ) as images,
    ):
        train, test = (part.tolist() for part in split_indices(len(images), 0.2))
        write_7z(public / "train.json.7z", {"train.json": images.text(train)})
        write_7z(public / "test.json.7z", {"test.json": images.text(test, fields)})
    answers = pd.DataFrame(images.known).iloc[test]
    write_csv(answers, private / "test.csv")
    sample = private / "sample_submission.csv"
    write_csv(answers.assign(is_iceberg=0.5), sample)
    write_7z(public / f"{sample.name}.7z", {sample.name: sample})


def _first_record(archive: Path, name: str) -> dict[str, Any]:
    """Return the first object of a list; the rest, gigabytes of it, is not needed."""
    start = read_start_of_7z(require(archive), name, MAX_RECORD_BYTES)
    with reading(archive / name):
        text = start.decode("utf-8", errors="ignore").lstrip("[ \n\r\t")
        record, _ = json.JSONDecoder().raw_decode(text)
    if not isinstance(record, dict):
        raise PreparationError(f"{archive}: {name} is not a list of records")
    return record
