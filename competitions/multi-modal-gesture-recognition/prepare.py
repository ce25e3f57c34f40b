"""The recordings of the fourth training archive are the test set."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from random import Random

import pandas as pd

from pytest_mlebench.preparing import link, link_named, list_tar, read_csv, require, write_csv

TEST_ARCHIVE = "training4.tar.gz"
GESTURES = 20
UNCHANGED = (
    "training1.tar.gz",
    "training2.tar.gz",
    "training3.tar.gz",
    "validation1.tar.gz",
    "validation2.tar.gz",
    "validation3.tar.gz",
    "devel01-40.7z",
    "valid_all_files_combined.7z",
    "sample_code_mmrgc.zip",
)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the recordings of one archive."""
    test_ids = _recordings(require(raw / TEST_ARCHIVE))
    sequences = read_csv(raw / "training.csv", needs=["Id", "Sequence"], dtype=str)
    is_test = sequences["Id"].isin(test_ids)
    write_csv(sequences[~is_test], public / "training.csv")
    write_csv(sequences[is_test], private / "test.csv")
    test = pd.DataFrame({"Id": test_ids})
    write_csv(test, public / "test.csv")
    write_csv(test.assign(Sequence=_guesses(len(test))), public / "randomPredictions.csv")
    link(raw / TEST_ARCHIVE, public / "test.tar.gz")
    link_named(UNCHANGED, raw, public)


def _recordings(archive: Path) -> list[str]:
    """Return the ids of the samples at the top of an archive: the last digits of their names."""
    members = [PurePosixPath(name) for name in list_tar(archive)]
    return sorted(m.stem[-4:] for m in members if len(m.parts) == 1 and m.suffix == ".zip")


def _guesses(count: int) -> list[str]:
    random = Random(0)
    orders = [random.sample(range(1, GESTURES + 1), GESTURES) for _ in range(count)]
    return [" ".join(map(str, order)) for order in orders]
