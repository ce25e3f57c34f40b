"""Pages of old books are split at random; pictures stay in archives."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import (
    link,
    read_csv,
    reading,
    split_rows,
    write_csv,
    write_zip,
    zip_members,
)

SAMPLE_LABELS = "U+003F 1 1 U+FF2F 2 2"
TRANSLATION = "unicode_translation.csv"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the pages."""
    table = read_csv(raw / "train.csv", needs=["image_id", "labels"])
    train, test = split_rows(table, 0.1)
    pictures = zip_members(raw / "train_images.zip")
    for part, name in ((train, "train_images.zip"), (test, "test_images.zip")):
        files = [f"{page}.jpg" for page in part["image_id"]]
        write_zip(public / name, {file: pictures[file] for file in files})
    link(raw / TRANSLATION, public / TRANSLATION)
    write_csv(train, public / "train.csv")
    write_csv(test, private / "test.csv")
    write_csv(test.assign(labels=SAMPLE_LABELS), public / "sample_submission.csv")
    with reading(raw / "train.csv"):
        points = test["labels"].fillna("").map(_points)
    write_csv(test.assign(labels=points), private / "gold_submission.csv")


def _points(labels: str) -> str:
    """Return a point just inside the top left corner of each box."""
    tokens = labels.split()
    groups = zip(tokens[0::5], tokens[1::5], tokens[2::5], strict=True)
    return " ".join(f"{code} {int(x) + 1} {int(y) + 1}" for code, x, y in groups)
