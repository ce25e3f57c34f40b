"""Drawings of molecules are split at random."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_mlebench.preparing import link, link_all, read_csv, split_rows, write_csv

WATER = "InChI=1S/H2O/h1H2"
EXTRA = "extra_approved_InChIs.csv"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a fifth of the drawings."""
    table = read_csv(raw / "train_labels.csv", needs=["image_id", "InChI"])
    train, test = split_rows(table, 0.2)
    write_csv(train, public / "train_labels.csv")
    write_csv(test.assign(InChI=WATER), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
    link(raw / EXTRA, public / EXTRA)
    link_all(_drawings(train["image_id"], raw, public / "train"))
    link_all(_drawings(test["image_id"], raw, public / "test"))


def _drawings(names: Iterable[str], raw: Path, target: Path) -> Iterator[tuple[Path, Path]]:
    """Yield where each drawing is and where it goes: three folders deep, by its first letters."""
    for name in names:
        place = Path(name[0], name[1], name[2], f"{name}.png")
        yield raw / "train" / place, target / place
