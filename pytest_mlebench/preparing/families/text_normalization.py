"""Tokens and their spoken forms, in the layout that the text normalization challenges share."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pandas as pd

from pytest_mlebench.archives.archive import write_zip
from pytest_mlebench.preparing.csv_rows import open_rows
from pytest_mlebench.preparing.files import require
from pytest_mlebench.preparing.split import split_indices_by
from pytest_mlebench.preparing.tables import write_csv
from pytest_mlebench.preparing.unpack import unpacked

TEST_SHARE = 0.1
COLUMNS = ["sentence_id", "token_id", "class", "before", "after"]
QUOTED: Any = {"quoting": csv.QUOTE_NONNUMERIC}


def prepare_tokens(raw: Path, public: Path, private: Path, *, language: str) -> None:
    """Hold out a tenth of the sentences; *language* begins the names of all files."""
    names = [f"{language}_{name}.csv" for name in ("train", "test_2", "sample_submission_2")]
    for name in names:
        require(raw / f"{name}.zip")
    with unpacked(raw / f"{names[0]}.zip", near=public) as folder:
        new = folder / "new"
        with open_rows(
            folder / names[0], needs=COLUMNS, keep=["sentence_id"], copied=False
        ) as tokens:
            sentences = tokens.column("sentence_id")
            train, held_out = split_indices_by(sentences, TEST_SHARE)
            numbers = {"sentence_id": _numbered(sentences.iloc[train])}
            tokens.write(train, new / names[0], assign=numbers, columns=COLUMNS, **QUOTED)
            test = tokens.table(held_out)
        test = test.assign(sentence_id=_numbered(test["sentence_id"]))[COLUMNS]
        ids = test["sentence_id"].astype(str) + "_" + test["token_id"].astype(str)
        sample = pd.DataFrame({"id": ids, "after": test["before"]})
        write_csv(test[["sentence_id", "token_id", "before"]], new / names[1], **QUOTED)
        write_csv(sample, new / names[2], **QUOTED)
        for name in names:
            write_zip(public / f"{name}.zip", {name: new / name}, compress=False)
    write_csv(sample, private / "sample_submission.csv", **QUOTED)
    write_csv(sample.assign(after=test["after"]), private / "answers.csv", **QUOTED)


def _numbered(sentences: pd.Series[Any]) -> Any:
    """Return the numbers of sentences from 0 in their order."""
    return pd.factorize(sentences)[0]
