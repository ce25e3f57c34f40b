"""Radar images are split at random; each file the agent sees is alone in a 7z archive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import (
    read_records,
    reading,
    require,
    split_list,
    unpacked,
    write_7z,
    write_csv,
    write_json,
)

FOLDER = Path("data", "processed")
MAX_RECORD_CHARACTERS = 1 << 24  # a record has about 200 000


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a fifth of the images."""
    with unpacked(raw / "test.json.7z", near=public) as folder:
        fields = list(_first_record(folder / FOLDER / "test.json"))
    with unpacked(raw / "train.json.7z", near=public) as folder:
        images = read_records(folder / FOLDER / "train.json", needs=["id", "is_iceberg", *fields])
        train, test = split_list(images, 0.2)
        shown = [{field: image[field] for field in fields} for image in test]
        for name, records in (("train.json", train), ("test.json", shown)):
            write_json(records, folder / name)
            write_7z(public / f"{name}.7z", {name: folder / name})
    answers = pd.DataFrame(
        {"id": [image["id"] for image in test], "is_iceberg": [i["is_iceberg"] for i in test]}
    )
    write_csv(answers, private / "test.csv")
    sample = private / "sample_submission.csv"
    write_csv(answers.assign(is_iceberg=0.5), sample)
    write_7z(public / f"{sample.name}.7z", {sample.name: sample})


def _first_record(path: Path) -> dict[str, Any]:
    """Return the first object of a list; the rest, gigabytes of it, is not needed."""
    require(path)
    with reading(path), path.open(encoding="utf-8") as file:
        start = file.read(MAX_RECORD_CHARACTERS).lstrip("[ \n\r\t")
        record, _ = json.JSONDecoder().raw_decode(start)
    if not isinstance(record, dict):
        raise PreparationError(f"{path} is not a list of records")
    return record
