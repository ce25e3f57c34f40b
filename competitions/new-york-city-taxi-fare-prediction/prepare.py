"""Rides are split at random; the labelled ones are in labels.csv."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link, read_csv, split_rows, write_csv

TEST_RIDES = 9914  # as many as the original test set has
MEAN_FARE = 11.35
COUPONS = "GCP-Coupons-Instructions.rtf"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out as many rides as the original."""
    train, test = split_rows(read_csv(raw / "train.csv", needs=["key", "fare_amount"]), TEST_RIDES)
    write_csv(train, public / "labels.csv")
    write_csv(test.drop(columns="fare_amount"), public / "test.csv")
    write_csv(test[["key"]].assign(fare_amount=MEAN_FARE), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
    link(raw / COUPONS, public / COUPONS)
