"""Photos are split at random and renumbered; the label of a photo is in its old name."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing import (
    link_all,
    list_files,
    require,
    split_list,
    unpacked,
    write_csv,
    write_zip,
    zip_members,
)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the photos."""
    require(raw / "test.zip")  # unlabelled; its absence shows a download that is not complete
    with unpacked(raw / "train.zip", near=public) as folder:
        train, test = split_list(list_files(folder / "train", "*.jpg"), 0.1)
        members = zip_members(raw / "train.zip")
        test_names = [f"{number}.jpg" for number in range(1, len(test) + 1)]
        for part, photos, names in (
            ("train", train, _train_names(train)),
            ("test", test, test_names),
        ):
            pairs = list(zip(photos, names, strict=True))
            link_all((photo, public / part / name) for photo, name in pairs)
            packed = {name: members[f"train/{photo.name}"] for photo, name in pairs}
            write_zip(public / f"{part}.zip", packed)
    labels = [int("dog" in photo.name) for photo in test]
    answers = pd.DataFrame({"id": range(1, len(test) + 1), "label": labels})
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(label=0.5), public / "sample_submission.csv")


def _train_names(photos: list[Path]) -> list[str]:
    """Return new names: cats and dogs are numbered apart, each from 0."""
    kinds = pd.Series(["cat" if "cat" in photo.name else "dog" for photo in photos])
    numbers = kinds.groupby(kinds).cumcount()
    return [f"{kind}.{number}.jpg" for kind, number in zip(kinds, numbers, strict=True)]
