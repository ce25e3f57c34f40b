"""Molecules that passed the quality filter are drawn at random; all keep their order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import reading, require, write_csv

TARGETS = ["reactivity", "deg_Mg_pH10", "deg_pH10", "deg_Mg_50C", "deg_50C"]
TEST_SHARE = 0.1  # of all molecules, those that did not pass the filter included
DECIMALS = "%.10f"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out one good molecule for every ten."""
    needed = ["index", "id", "SN_filter", "seq_length", "seq_scored", *TARGETS]
    molecules = _read(raw / "train.json", needed)
    public_columns = list(_read(raw / "test.json", ["index", "id"]))
    is_test = _draw(molecules)
    train, test = _renumbered(molecules[~is_test]), _renumbered(molecules[is_test])
    _write(train, public / "train.json")
    _write(test[public_columns], public / "test.json")
    answers = _by_position(test, raw / "train.json")
    write_csv(answers, private / "test.csv", float_format=DECIMALS)
    sample = answers.drop(columns="keep").assign(**dict.fromkeys(TARGETS, 0.0))
    write_csv(sample, public / "sample_submission.csv", float_format=DECIMALS)


def _draw(molecules: pd.DataFrame) -> np.ndarray:
    """Return which molecules are for the test."""
    good = np.flatnonzero(molecules["SN_filter"] > 0)
    size = int(TEST_SHARE * len(molecules))
    chosen = np.random.RandomState(0).permutation(len(good))[:size]
    is_test = np.zeros(len(molecules), dtype=bool)
    is_test[good[chosen]] = True
    return is_test


def _renumbered(part: pd.DataFrame) -> pd.DataFrame:
    return part.assign(index=range(len(part)))


def _by_position(test: pd.DataFrame, source: Path) -> pd.DataFrame:
    """Return a row for each base of each molecule, zeros where nothing was measured."""
    lengths = test["seq_length"].to_numpy()
    position = np.concatenate([np.arange(length) for length in lengths])
    measured = position < np.repeat(test["seq_scored"].to_numpy(), lengths)
    names = pd.Series(np.repeat(test["id"].to_numpy(dtype=object), lengths))
    table = pd.DataFrame({"id_seqpos": names + "_" + pd.Series(position).astype(str)})
    for target in TARGETS:
        wrong = test["id"][(test[target].str.len() != test["seq_scored"]).to_numpy()]
        if len(wrong):
            raise PreparationError(f"{source}: {target} of {wrong.iloc[0]} is not of seq_scored")
        values = np.zeros(len(table))
        values[measured] = np.concatenate(test[target].tolist())
        table[target] = values
    return table.assign(keep=measured)


def _read(path: Path, needs: list[str]) -> pd.DataFrame:
    require(path)
    with reading(path):
        table = pd.read_json(path, lines=True)
    for column in needs:
        if column not in table.columns:
            raise PreparationError(f"{path} has no column {column!r}")
    return table


def _write(table: pd.DataFrame, path: Path) -> None:
    table.to_json(path, orient="records", lines=True)
