"""Leaves are split at random; the answers are one-hot over the 99 species."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.competition import read_competition
from pytest_mlebench.preparing import link_named, one_hot, read_csv, split_rows, unpacked, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the leaves; the pictures of both parts lie in one folder."""
    species = read_competition(Path(__file__).parent).rules.targets
    with unpacked(raw / "train.csv.zip", near=public) as folder:
        table = read_csv(folder / "train.csv", needs=["id", "species"])
    train, test = split_rows(table, 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="species"), public / "test.csv")
    with unpacked(raw / "images.zip", near=public) as folder:
        link_named(table["id"], folder / "images", public / "images", ".jpg")
    answers = test[["id"]].join(one_hot(test["species"], species))
    write_csv(answers, private / "test.csv")
    uniform = dict.fromkeys(species, 1 / len(species))
    write_csv(answers.assign(**uniform), public / "sample_submission.csv")
    (private / "images").mkdir()  # stores prepared by the reference have it, empty
