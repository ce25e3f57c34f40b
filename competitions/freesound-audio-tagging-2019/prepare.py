"""The test clips are those of the original's second stage, whose labels were published later."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import fetch, link, link_tree, read_csv, unpacked, write_csv

LABELS = "FSDKaggle2019.meta"
LABELS_URL = "https://zenodo.org/records/3612637/files/FSDKaggle2019.meta.zip?download=1"
LABELS_BYTES = 10**7  # it has less than a megabyte


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Show all that Kaggle shows, and keep the published labels apart."""
    sample = read_csv(raw / "sample_submission.csv", needs=["fname"])
    test = _published(raw, near=private)
    test = test[test["usage"] == "Private"]
    if set(test["fname"]) != set(sample["fname"]):
        raise PreparationError(
            f"the clips in {LABELS} are not those in {raw}/sample_submission.csv"
        )
    given = [set(labels.split(",")) for labels in test["labels"].astype(str)]
    hits = {name: [int(name in tags) for tags in given] for name in sample.columns.drop("fname")}
    answers = pd.DataFrame({"fname": test["fname"].to_numpy(), **hits})
    write_csv(answers, private / "test.csv")
    for entry in sorted(raw.iterdir()):
        if LABELS in entry.name:
            continue
        if entry.is_dir():
            link_tree(entry, public / entry.name)
        else:
            link(entry, public / entry.name)


def _published(raw: Path, near: Path) -> pd.DataFrame:
    """Return the labels of all test clips: out of the raw tree if they are there, else fetched."""
    archive = raw / f"{LABELS}.zip"
    with tempfile.TemporaryDirectory(prefix=".fetch.", dir=near.parent) as scratch:
        if not archive.exists():
            archive = Path(scratch, archive.name)
            fetch(LABELS_URL, archive, max_bytes=LABELS_BYTES)
        with unpacked(archive, near=near) as folder:
            path = folder / LABELS / "test_post_competition.csv"
            return read_csv(path, needs=["fname", "labels", "usage"])
