"""Cadence snippets are split at random; the data of the first launch come along whole."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link_named, link_tree, read_csv, split_rows, write_csv

OLD_DATA = "old_leaky_data"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the snippets."""
    # ids are hexadecimal, so a few of them look like numbers
    labels = read_csv(raw / "train_labels.csv", needs=["id", "target"], dtype={"id": str})
    train, test = split_rows(labels, 0.1)
    write_csv(train, public / "train_labels.csv")
    write_csv(test.assign(target=0.5), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
    for name, part in (("train", train), ("test", test)):
        link_named(part["id"].str[0] + "/" + part["id"], raw / "train", public / name, ".npy")
    link_tree(raw / OLD_DATA, public / OLD_DATA)
