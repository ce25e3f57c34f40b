"""Photographs are split at random, keep their numbers and are packed again."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import (
    read_csv,
    require,
    split_rows,
    unpacked,
    write_7z,
    write_csv,
    write_zip,
)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a fifth of the photographs."""
    with unpacked(raw / "train_labels.csv.zip", near=public) as folder:
        labels = read_csv(folder / "train_labels.csv", needs=["name", "invasive"])
        train, test = split_rows(labels, 0.2)
        write_csv(train, folder / "train_labels.csv")
        _zip(folder / "train_labels.csv", public)
    write_csv(test, private / "answers.csv")
    write_csv(test.assign(invasive=0.5), private / "sample_submission.csv")
    _zip(private / "sample_submission.csv", public)
    with unpacked(raw / "train.7z", near=public) as folder:
        for name, part in (("train", train), ("test", test)):
            names = [f"{number}.jpg" for number in part["name"]]
            photos = {photo: require(folder / "train" / photo) for photo in names}
            write_7z(public / f"{name}.7z", photos, prefix=f"{name}/", compress=False)


def _zip(table: Path, folder: Path) -> None:
    write_zip(folder / f"{table.name}.zip", {table.name: table})
