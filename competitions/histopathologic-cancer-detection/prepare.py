"""Patches are split at random, in the shares of Kaggle's own sets; the tables keep their order."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link_named, list_files, read_csv, split_list, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out as large a share as Kaggle's test set is of all patches."""
    labels = read_csv(raw / "train_labels.csv", needs=["id", "label"])
    unlabelled = len(list_files(raw / "test", "*.tif"))
    share = unlabelled / (len(labels) + unlabelled)
    parts = split_list(labels["id"].tolist(), share)
    train, test = (labels[labels["id"].isin(ids)] for ids in parts)
    write_csv(train, public / "train_labels.csv")
    write_csv(test.assign(label=0), public / "sample_submission.csv")
    write_csv(test, private / "answers.csv")
    for name, part in (("train", train), ("test", test)):
        link_named(part["id"], raw / "train", public / name, ".tif")
