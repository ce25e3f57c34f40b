"""Photos are split at random with their row of labels; the sample has random scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pytest_mlebench.preparing import link_named, read_csv, split_rows, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the photos."""
    train, test = split_rows(read_csv(raw / "train.csv", needs=["Id", "Pawpularity"]), 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="Pawpularity"), public / "test.csv")
    write_csv(test, private / "test.csv")
    scores = np.random.default_rng(0).uniform(1, 100, len(test)).round(2)
    write_csv(test[["Id"]].assign(Pawpularity=scores), public / "sample_submission.csv")
    for name, part in (("train", train), ("test", test)):
        link_named(part["Id"], raw / "train", public / name, ".jpg")
