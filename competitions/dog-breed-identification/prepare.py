"""Photos are split at random; the answers are one-hot over the 120 breeds."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.competition import read_competition
from pytest_mlebench.preparing import link_named, one_hot, read_csv, split_rows, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the photos."""
    breeds = read_competition(Path(__file__).parent).rules.targets
    train, test = split_rows(read_csv(raw / "labels.csv", needs=["id", "breed"]), 0.1)
    write_csv(train, public / "labels.csv")
    for name, part in (("train", train), ("test", test)):
        link_named(part["id"], raw / "train", public / name, ".jpg")
    answers = test[["id"]].join(one_hot(test["breed"], breeds))
    write_csv(answers, private / "test.csv")
    uniform = dict.fromkeys(breeds, 1 / len(breeds))
    write_csv(answers.assign(**uniform), public / "sample_submission.csv")
