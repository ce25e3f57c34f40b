"""Sound clips are split by day: two days for training, the two that follow for the test."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import write_csv, write_zip, zip_members

DAYS, TRAIN_DAYS = 4, 2


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the last two of four days; clips are numbered anew in each part."""
    clips = {PurePosixPath(m.name): m for m in zip_members(raw / "train2.zip").below("train2")}
    days = sorted({_day(clip) for clip in clips})
    if len(days) != DAYS:
        raise PreparationError(
            f"{raw / 'train2.zip'} has clips of {len(days)} days, expected {DAYS}"
        )
    train = [clip for clip in clips if _day(clip) in days[:TRAIN_DAYS]]
    test = [clip for clip in clips if _day(clip) in days[TRAIN_DAYS:]]
    renamed = [re.sub(r"TRAIN\d+", f"TRAIN{i}", clip.name) for i, clip in enumerate(train)]
    names = [f"{clip.name.partition('TRAIN')[0]}Test{i}.aif" for i, clip in enumerate(test)]
    for part, new_names, old in (("train2", renamed, train), ("test2", names, test)):
        members = {name: clips[clip] for name, clip in zip(new_names, old, strict=True)}
        write_zip(public / f"{part}.zip", members, prefix=f"{part}/")
    labels = [int(clip.stem.endswith("_1")) for clip in test]
    answers = pd.DataFrame({"clip": names, "probability": labels})
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(probability=0), public / "sampleSubmission.csv")


def _day(clip: PurePosixPath) -> str:
    return clip.name.partition("_")[0]
