"""Patches of forest are split at random; ids stay as they are."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import open_rows, split_indices, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the patches."""
    with open_rows(raw / "train.csv", needs=["Id", "Cover_Type"]) as patches:
        train, held_out = split_indices(len(patches), 0.1)
        patches.write(train, public / "train.csv")
        test = patches.table(held_out)
    write_csv(test.drop(columns="Cover_Type"), public / "test.csv")
    write_csv(test[["Id"]].assign(Cover_Type=2), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
