"""Purchases are split by time: the last days are to be predicted."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from pytest_mlebench.preparing import link_named, link_tree, open_rows, reading, write_csv

TEST_DAYS = 7  # before the last day, which is a test day too
UNCHANGED = ("articles.csv", "customers.csv", "sample_submission.csv")
COLUMNS = ["t_dat", "customer_id", "article_id", "price", "sales_channel_id"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the purchases of the last days."""
    path = raw / "transactions_train.csv"
    with open_rows(path, needs=COLUMNS, keep=["t_dat"]) as purchases:
        days = purchases.column("t_dat")
        with reading(path):
            last = date.fromisoformat(days.max())
        first = last - timedelta(days=TEST_DAYS)
        is_test = days >= first.isoformat()
        purchases.write(np.flatnonzero(~is_test), public / "transactions_train.csv")
        test = purchases.table(np.flatnonzero(is_test))
    write_csv(_by_customer(test), private / "answers.csv")
    link_named(UNCHANGED, raw, public)
    link_tree(raw / "images", public / "images")


def _by_customer(purchases: pd.DataFrame) -> pd.DataFrame:
    """Return what each customer bought, in the order of the table."""
    articles = purchases["article_id"].astype(str)
    joined = articles.groupby(purchases["customer_id"]).agg(" ".join)
    return joined.rename("prediction").reset_index()
