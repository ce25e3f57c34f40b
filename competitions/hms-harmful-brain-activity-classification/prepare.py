"""Labelled windows are split at random by spectrogram, with the recordings they belong to."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link_named, link_tree, read_csv, split_by, write_csv

IDS = ["spectrogram_id", "eeg_id", "patient_id"]
VOTES = ["seizure_vote", "lpd_vote", "gpd_vote", "lrda_vote", "grda_vote", "other_vote"]
RECORDINGS = {"eegs": "eeg_id", "spectrograms": "spectrogram_id"}


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the spectrograms."""
    windows = read_csv(raw / "train.csv", needs=[*IDS, *VOTES])
    train, test = split_by(windows, "spectrogram_id", 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test[IDS], public / "test.csv")
    write_csv(test, private / "test.csv")
    sample = test[["eeg_id"]].assign(**dict.fromkeys(VOTES, 1 / len(VOTES)))
    write_csv(sample, public / "sample_submission.csv")
    votes = test[VOTES].div(test[VOTES].sum(axis=1), axis=0)
    write_csv(test[["eeg_id"]].join(votes), private / "gold_submission.csv")
    link_tree(raw / "example_figures", public / "example_figures")
    for part, table in (("train", train), ("test", test)):
        for kind, column in RECORDINGS.items():
            recordings, target = raw / f"train_{kind}", public / f"{part}_{kind}"
            link_named(table[column].unique(), recordings, target, ".parquet")
