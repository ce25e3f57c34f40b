"""Recordings are split at random, whoever speaks; the test clips get numbers for names."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import link_all, split_list, unpacked, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the recordings."""
    archive = raw / "train.7z"
    with unpacked(archive, near=public) as folder:
        clips = sorted((folder / "train" / "audio").rglob("*.wav"), key=_label_and_name)
        if not clips:
            raise PreparationError(f"{archive} has no recordings below train/audio")
        train, test = split_list(clips, 0.1)
        names = [f"clip_{number:08d}.wav" for number in range(len(test))]
        shown = public / "train" / "audio"
        link_all((clip, shown / clip.parent.name / clip.name) for clip in train)
        hidden = public / "test" / "audio"
        link_all((clip, hidden / name) for clip, name in zip(test, names, strict=True))
    labels = [clip.parent.name for clip in test]
    answers = pd.DataFrame({"fname": names, "label": labels})
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(label="silence"), public / "sample_submission.csv")


def _label_and_name(clip: Path) -> str:
    return f"{clip.parent.name}_{clip.name}"
