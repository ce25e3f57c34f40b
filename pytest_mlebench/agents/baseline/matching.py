"""Which file belongs to which row: a column whose values are names of files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pandas as pd
from listing import Kind, MediaFile, Split, key_of
from tables import Tables

LOOK_AT = 500  # rows, to find the column
MIN_FOUND = 0.5  # of the rows must have a file

_WORDS = re.compile(r"[/_\W]")

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Files:
    """A file for each row, None where there is none."""

    train: Sequence[MediaFile | None]
    test: Sequence[MediaFile | None]


def match_files(tables: Tables, files: list[MediaFile]) -> Files | None:
    """Return the files of the rows, or None where hardly any row has one."""
    if not files:
        return None
    by_split = _by_split(files)
    if tables.train_files:
        tests = _index(by_split, "test", _key)
        return Files(tables.train_files, _files_of(tables.test[tables.ids[0]], tests, key_of))
    shared = [name for name in tables.test.columns if name in tables.train.columns]
    return _match(tables, by_split, shared, _key, key_of) or _match_words(tables, by_split)


def _match(
    tables: Tables,
    files: dict[Split, list[MediaFile]],
    columns: list[str],
    file_key: Callable[[MediaFile], Key],
    value_key: Callable[[str], Key],
) -> Files | None:
    trains, tests = _index(files, "train", file_key), _index(files, "test", file_key)
    found = {
        name: min(
            _found(tables.train[name], trains, value_key),
            _found(tables.test[name], tests, value_key),
        )
        for name in columns
    }
    # numbers may be names of files by chance: ids are those that differ the most
    column = max(found, key=lambda name: (found[name], _variety(tables.test[name])), default=None)
    if column is None or found[column] < MIN_FOUND:
        return None
    return Files(
        _files_of(tables.train[column], trains, value_key),
        _files_of(tables.test[column], tests, value_key),
    )


def _match_words(tables: Tables, files: dict[Split, list[MediaFile]]) -> Files | None:
    """Return files whose paths have the words of an id in them, in folders and name together."""
    name = tables.ids[0]
    if name not in tables.train or name not in tables.test:
        return None
    if any(len(_words_of(str(value))) < 2 for value in tables.test[name].head(LOOK_AT)):
        return None  # a word alone is found anywhere
    every = {
        word
        for table in (tables.train, tables.test)
        for value in table[name].unique()
        for word in _words_of(str(value))
    }
    return _match(tables, files, [name], lambda file: _words_of(file.path) & every, _words_of)


def _words_of(text: str) -> frozenset[str]:
    return frozenset(_WORDS.split(text)) - {""}


def _key(file: MediaFile) -> str:
    return file.key


def _by_split(files: list[MediaFile]) -> dict[Split, list[MediaFile]]:
    found: dict[Split, list[MediaFile]] = {"train": [], "test": [], "": []}
    for file in files:
        found[file.split].append(file)
    return found


def _index(
    files: dict[Split, list[MediaFile]], split: Split, key_of: Callable[[MediaFile], Key]
) -> dict[Key, MediaFile]:
    """Return the files of a split by key; of several, that with a counterpart in the other."""
    other: Split = "test" if split == "train" else "train"
    counterparts = {file.place for file in files[other]}
    index: dict[Key, MediaFile] = {}
    for file in files[split] + files[""]:
        key = key_of(file)
        if key not in index or (
            file.place in counterparts and index[key].place not in counterparts
        ):
            index[key] = file
    return index


def _found(values: pd.Series, index: dict[Key, MediaFile], key_of: Callable[[str], Key]) -> float:
    some = values.head(LOOK_AT)
    return sum(file is not None for file in _files_of(some, index, key_of)) / max(len(some), 1)


def _variety(values: pd.Series) -> int:
    return int(values.head(LOOK_AT).astype(str).nunique())


def _files_of(
    values: pd.Series, index: dict[Key, MediaFile], key_of: Callable[[str], Key]
) -> list[MediaFile | None]:
    return [index.get(key_of(str(value))) for value in values]


def main_kind(files: Iterable[MediaFile | None]) -> Kind | None:
    """Return what most of the files are."""
    kinds = Counter(file.kind for file in files if file is not None)
    return next((kind for kind, _ in kinds.most_common(1)), None)
