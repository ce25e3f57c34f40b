"""Rides are split at random; the labelled ones are in labels.csv."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link, open_rows, split_indices, write_csv

TEST_RIDES = 9914  # as many as the original test set has
MEAN_FARE = 11.35
COUPONS = "GCP-Coupons-Instructions.rtf"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out as many rides as the original."""
    with open_rows(raw / "train.csv", needs=["key", "fare_amount"]) as rides:
        train, held_out = split_indices(len(rides), TEST_RIDES)
        rides.write(train, public / "labels.csv")
        test = rides.table(held_out)
    write_csv(test.drop(columns="fare_amount"), public / "test.csv")
    write_csv(test[["key"]].assign(fare_amount=MEAN_FARE), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
    link(raw / COUPONS, public / COUPONS)
