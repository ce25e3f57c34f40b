"""Batches of events are split at random; each is a file of pulses."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import (
    link,
    link_all,
    list_files,
    read_parquet,
    split_by,
    write_csv,
    write_parquet,
)

EVENT = ["batch_id", "event_id", "first_pulse_index", "last_pulse_index"]
DIRECTION = ["azimuth", "zenith"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the batches."""
    events = read_parquet(raw / "train_meta.parquet", [*EVENT, *DIRECTION])
    train, test = split_by(events, "batch_id", 0.1)
    write_parquet(train, public / "train_meta.parquet")
    write_parquet(test[EVENT], public / "test_meta.parquet")
    write_csv(test[["event_id", *DIRECTION]], private / "test.csv")
    sample = test[["event_id"]].assign(azimuth=1, zenith=1)
    write_csv(sample, public / "sample_submission.csv")
    part_of = {
        int(batch): part
        for part, table in (("train", train), ("test", test))
        for batch in table["batch_id"].unique()
    }
    link_all(
        (path, public / part_of[number] / path.name)
        for path in list_files(raw / "train", "*.parquet")
        if (number := _batch(path)) in part_of
    )
    link(raw / "sensor_geometry.csv", public / "sensor_geometry.csv")


def _batch(path: Path) -> int | None:
    """Return the number after the last underscore, also one written with zeros before it."""
    number = path.stem.rpartition("_")[2]
    return int(number) if number.isdecimal() else None
