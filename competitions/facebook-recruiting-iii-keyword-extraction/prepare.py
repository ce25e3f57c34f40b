"""Questions are split at random, also those that occur twice."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import open_rows, split_indices, unpacked

COLUMNS = ["Id", "Title", "Body", "Tags"]
COMMON = "javascript c# python php java"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the questions."""
    types = {"Id": str, "Tags": str}
    with (
        unpacked(raw / "Train.zip", near=public) as folder,
        open_rows(folder / "Train.csv", needs=COLUMNS, dtype=types) as questions,
    ):
        train, held_out = split_indices(len(questions), 0.1)
        questions.write(train, public / "train.csv")
        questions.write(held_out, public / "test.csv", columns=COLUMNS[:-1])
        questions.write(held_out, public / "sample_submission.csv", assign={"Tags": COMMON})
        questions.write(held_out, private / "test.csv")
