"""Materials are split at random and renumbered from 1 in each part, geometry files included."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing import link_all, read_csv, require, split_rows, unpacked, write_csv

TARGETS = ["formation_energy_ev_natom", "bandgap_energy_ev"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the materials."""
    for unread in ("test.csv.zip", "test.zip"):
        require(raw / unread)
    with unpacked(raw / "train.csv.zip", near=public) as folder:
        table = read_csv(folder / "train.csv", needs=["id", *TARGETS])
    train, test = (_renumbered(part) for part in split_rows(table, 0.1))
    with unpacked(raw / "train.zip", near=public) as folder:
        _place_geometry(folder / "train", train, public / "train")
        _place_geometry(folder / "train", test, public / "test")
    train, test = train.drop(columns="old_id"), test.drop(columns="old_id")
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns=TARGETS), public / "test.csv")
    write_csv(test, private / "test.csv")
    sample = test[["id"]].assign(formation_energy_ev_natom=0.1779, bandgap_energy_ev=1.8892)
    write_csv(sample, public / "sample_submission.csv")


def _renumbered(part: pd.DataFrame) -> pd.DataFrame:
    return part.assign(old_id=part["id"], id=range(1, len(part) + 1))


def _place_geometry(source: Path, part: pd.DataFrame, target: Path) -> None:
    new = dict(zip(part["old_id"], part["id"], strict=True))
    link_all(
        (path, target / str(new[int(path.parent.name)]) / "geometry.xyz")
        for path in sorted(source.glob("*/*.xyz"))
        if int(path.parent.name) in new
    )
