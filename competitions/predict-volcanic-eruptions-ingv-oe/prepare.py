"""Segments are split at random; each has a file of readings."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link_named, read_csv, split_rows, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the segments."""
    segments = read_csv(raw / "train.csv", needs=["segment_id", "time_to_eruption"])
    train, test = split_rows(segments, 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.assign(time_to_eruption=0), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
    for name, part in (("train", train), ("test", test)):
        link_named(part["segment_id"], raw / "train", public / name, ".csv")
