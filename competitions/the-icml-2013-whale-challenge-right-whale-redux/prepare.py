"""Sound clips are split by day: two days for training, the two that follow for the test."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import list_files, unpacked, write_csv, write_zip

DAYS, TRAIN_DAYS = 4, 2


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the last two of four days; clips are numbered anew in each part."""
    with unpacked(raw / "train2.zip", near=public) as folder:
        clips = list_files(folder / "train2")
        days = sorted({_day(clip) for clip in clips})
        if len(days) != DAYS:
            raise PreparationError(
                f"{raw / 'train2.zip'} has clips of {len(days)} days, expected {DAYS}"
            )
        train = [clip for clip in clips if _day(clip) in days[:TRAIN_DAYS]]
        test = [clip for clip in clips if _day(clip) in days[TRAIN_DAYS:]]
        names = [f"{clip.name.partition('TRAIN')[0]}Test{i}.aif" for i, clip in enumerate(test)]
        write_zip(
            public / "train2.zip",
            {re.sub(r"TRAIN\d+", f"TRAIN{i}", clip.name): clip for i, clip in enumerate(train)},
            prefix="train2/",
        )
        write_zip(public / "test2.zip", dict(zip(names, test, strict=True)), prefix="test2/")
    labels = [int(clip.stem.endswith("_1")) for clip in test]
    answers = pd.DataFrame({"clip": names, "probability": labels})
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(probability=0), public / "sampleSubmission.csv")


def _day(clip: Path) -> str:
    return clip.name.partition("_")[0]
