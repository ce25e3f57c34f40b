"""Photos, listed species by species, are split at random."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import (
    link_all,
    link_named,
    list_files,
    require,
    split_rows,
    write_csv,
)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 14 % of the photos; test photos lose the folder of their species."""
    photos = raw / "train"
    train, test = split_rows(_listed(photos), 0.14)
    link_named(train["species"] + "/" + train["file"], photos, public / "train")
    link_all(
        (photos / species / name, public / "test" / name)
        for name, species in test.itertuples(index=False)
    )
    write_csv(test.assign(species="Sugar beet"), public / "sample_submission.csv")
    write_csv(test, private / "answers.csv")


def _listed(photos: Path) -> pd.DataFrame:
    """Return the photos in the order of species and names."""
    folders = sorted(path for path in require(photos).iterdir() if path.is_dir())
    rows = [(path.name, folder.name) for folder in folders for path in list_files(folder, "*.png")]
    if not rows:
        raise PreparationError(f"{photos} has no folders with .png files")
    return pd.DataFrame(rows, columns=["file", "species"])
