"""Fragments 1 and 2 are for training, fragment 3 without its labels is the test fragment a."""

from __future__ import annotations

import struct
from pathlib import Path

import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import link_tree, read_csv, reading, require, write_csv

LABELS, PHOTO = "inklabels_rle.csv", "ir.png"
HIDDEN = {LABELS, PHOTO, "inklabels.png"}
PNG = b"\x89PNG\r\n\x1a\n"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the third fragment."""
    for fragment in ("1", "2"):
        link_tree(raw / "train" / fragment, public / "train" / fragment)
    held_out = raw / "train" / "3"
    link_tree(held_out, public / "test" / "a", skip=HIDDEN)
    labels = read_csv(held_out / LABELS, needs=["Id", "Predicted"])
    if len(labels) != 1:
        raise PreparationError(f"{held_out / LABELS} has {len(labels)} rows, expected one")
    width, height = _size(held_out / PHOTO)
    gold = labels[["Id", "Predicted"]].assign(Id="a")
    write_csv(gold, private / "gold_submission.csv")
    write_csv(gold.assign(width=width, height=height), private / LABELS)
    sample = pd.DataFrame({"Id": ["a"], "Predicted": ["1 1 5 1"]})
    write_csv(sample, public / "sample_submission.csv")


def _size(picture: Path) -> tuple[int, int]:
    """Return width and height, which a PNG file tells in its first bytes."""
    with reading(require(picture)), picture.open("rb") as file:
        head = file.read(24)
    if not head.startswith(PNG) or len(head) < 24:
        raise PreparationError(f"{picture} is not a PNG picture, it begins with {head[:8]!r}")
    width, height = struct.unpack(">II", head[16:])
    return width, height
