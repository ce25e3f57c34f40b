"""Phrases are split at random, not by sentence, and packed as they came."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing import read_csv, split_rows, unpacked, write_csv, write_zip

COLUMNS = ["PhraseId", "SentenceId", "Phrase", "Sentiment"]
NEUTRAL = 2


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out three tenths of the phrases."""
    with unpacked(raw / "train.tsv.zip", near=public) as folder:
        table = read_csv(folder / "train.tsv", needs=COLUMNS, sep="\t")
    train, test = split_rows(table, 0.3)
    _write_packed(train, public / "train.tsv.zip")
    _write_packed(test.drop(columns="Sentiment"), public / "test.tsv.zip")
    write_csv(test[["PhraseId"]].assign(Sentiment=NEUTRAL), public / "sampleSubmission.csv")
    write_csv(test, private / "answers.csv")


def _write_packed(part: pd.DataFrame, archive: Path) -> None:
    """Write a table, tab-separated, alone into an archive."""
    with tempfile.TemporaryDirectory(prefix=".pack.", dir=archive.parent.parent) as folder:
        member = Path(folder, archive.stem)
        write_csv(part, member, sep="\t")
        write_zip(archive, {member.name: member})
