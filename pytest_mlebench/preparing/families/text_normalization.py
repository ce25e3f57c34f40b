"""Tokens and their spoken forms, in the layout that the text normalization challenges share."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pandas as pd

from pytest_mlebench.archives.archive import write_zip
from pytest_mlebench.preparing.files import require
from pytest_mlebench.preparing.split import split_by
from pytest_mlebench.preparing.tables import read_csv, write_csv
from pytest_mlebench.preparing.unpack import unpacked

TEST_SHARE = 0.1
COLUMNS = ["sentence_id", "token_id", "class", "before", "after"]


def prepare_tokens(raw: Path, public: Path, private: Path, *, language: str) -> None:
    """Hold out a tenth of the sentences; *language* begins the names of all files."""
    names = [f"{language}_{name}.csv" for name in ("train", "test_2", "sample_submission_2")]
    for name in names:
        require(raw / f"{name}.zip")
    with unpacked(raw / f"{names[0]}.zip", near=public) as folder:
        table = read_csv(folder / names[0], needs=COLUMNS)
        train, test = map(_renumbered, split_by(table, "sentence_id", TEST_SHARE))
        del table  # ten million rows
        tokens = test["sentence_id"].astype(str) + "_" + test["token_id"].astype(str)
        sample = pd.DataFrame({"id": tokens, "after": test["before"]})
        parts = (train, test[["sentence_id", "token_id", "before"]], sample)
        for name, part in zip(names, parts, strict=True):
            _write(part, folder / name)
            write_zip(public / f"{name}.zip", {name: folder / name}, compress=False)
    _write(sample, private / "sample_submission.csv")
    _write(sample.assign(after=test["after"]), private / "answers.csv")


def _renumbered(tokens: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with sentences numbered from 0 in their order."""
    return tokens.assign(sentence_id=pd.factorize(tokens["sentence_id"])[0])[COLUMNS]


def _write(table: pd.DataFrame, path: Path) -> None:
    quoted: Any = csv.QUOTE_NONNUMERIC
    write_csv(table, path, quoting=quoted)
