"""Families of notebooks that were copied from each other are kept together.

They are taken in random order and go to the test part as long as they fit into its size.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import link_named, read_csv, read_json, reading, write_csv

TEST_SIZE = 20_000


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out whole families, twenty thousand notebooks in all."""
    path = raw / "train_ancestors.csv"
    families = read_csv(path, needs=["id", "ancestor_id", "parent_id"])
    orders = read_csv(raw / "train_orders.csv", needs=["id", "cell_order"])
    families = families.iloc[np.random.RandomState(0).permutation(len(families))]
    held_out = families["id"][_fitting(families["ancestor_id"], path)]
    kept = families[~families["id"].isin(held_out)]
    train, test = (orders[orders["id"].isin(ids)] for ids in (kept["id"], held_out))
    write_csv(kept, public / "train_ancestors.csv")
    write_csv(train, public / "train_orders.csv")
    write_csv(test, private / "test_orders.csv")
    shown = [_shown_order(raw / "train" / f"{name}.json") for name in test["id"]]
    write_csv(test[["id"]].assign(cell_order=shown), public / "sample_submission.csv")
    link_named(train["id"], raw / "train", public / "train", ".json")
    link_named(test["id"], raw / "train", public / "test", ".json")


def _fitting(family: pd.Series[str], path: Path) -> pd.Series[bool]:
    """Tell which rows belong to a family that still fitted when it was its turn."""
    chosen, size = [], 0
    for name, rows in family.groupby(family, sort=False).size().items():  # as they come
        if size + rows <= TEST_SIZE:
            chosen.append(name)
            size += rows
    if size != TEST_SIZE:
        raise PreparationError(f"{path}: {TEST_SIZE} test notebooks are needed, found {size}")
    return family.isin(chosen)


def _shown_order(path: Path) -> str:
    """Return the cells of a notebook in the order of its file."""
    notebook = read_json(path)
    with reading(path):
        return " ".join(notebook["cell_type"])
