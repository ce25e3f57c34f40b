"""Which file belongs to which row: a column whose values are names of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
from listing import Kind, MediaFile, Split, key_of
from tables import Tables

LOOK_AT = 500  # rows, to find the column
MIN_FOUND = 0.5  # of the rows must have a file


@dataclass(frozen=True)
class Files:
    """A file for each row, None where there is none."""

    train: Sequence[MediaFile | None]
    test: Sequence[MediaFile | None]


def match_files(tables: Tables, files: Iterable[MediaFile]) -> Files | None:
    """Return the files of the rows, or None where hardly any row has one."""
    by_split = _by_split(list(files))
    tests = _index(by_split, "test")
    if tables.train_files:
        return Files(tables.train_files, _files_of(tables.test[tables.ids[0]], tests))
    trains = _index(by_split, "train")
    found = {
        name: min(_found(tables.train[name], trains), _found(tables.test[name], tests))
        for name in tables.test.columns
        if name in tables.train.columns
    }
    column = max(found, key=found.__getitem__, default=None)
    if column is None or found[column] < MIN_FOUND:
        return None
    return Files(
        _files_of(tables.train[column], trains),
        _files_of(tables.test[column], tests),
    )


def _by_split(files: list[MediaFile]) -> dict[Split, list[MediaFile]]:
    found: dict[Split, list[MediaFile]] = {"train": [], "test": [], "": []}
    for file in files:
        found[file.split].append(file)
    return found


def _index(files: dict[Split, list[MediaFile]], split: Split) -> dict[str, MediaFile]:
    """Return the files of a split by key; of several, that with a counterpart in the other."""
    other: Split = "test" if split == "train" else "train"
    counterparts = {file.place for file in files[other]}
    index: dict[str, MediaFile] = {}
    for file in files[split] + files[""]:
        if file.key not in index or (
            file.place in counterparts and index[file.key].place not in counterparts
        ):
            index[file.key] = file
    return index


def _found(values: pd.Series, index: dict[str, MediaFile]) -> float:
    some = values.head(LOOK_AT)
    return sum(file is not None for file in _files_of(some, index)) / max(len(some), 1)


def _files_of(values: pd.Series, index: dict[str, MediaFile]) -> list[MediaFile | None]:
    return [index.get(key_of(str(value))) for value in values]


def main_kind(files: Iterable[MediaFile | None]) -> Kind | None:
    """Return what most of the files are."""
    kinds = Counter(file.kind for file in files if file is not None)
    return next((kind for kind, _ in kinds.most_common(1)), None)
