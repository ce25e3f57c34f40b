"""The tables of a data folder: what is for training, what is to be predicted, and the sample."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pandas as pd

MOST_ROWS = 300_000  # of the training table: a baseline need not see more

_SUFFIXES = (".csv", ".tsv", ".json")


@dataclass(frozen=True)
class Source:
    """A table in a file, or in a member of an archive."""

    file: Path
    member: str | None = None

    @property
    def name(self) -> str:
        """Return the table's name in lower case."""
        return Path(self.member or self.file).name.lower()

    @property
    def stem(self) -> str:
        """Return ``train`` for ``Train.csv.zip``."""
        return self.name.partition(".")[0]

    def read(self, *, as_text: Iterable[str] = (), rows: int | None = None) -> pd.DataFrame:
        """Read the table, or its first rows; some columns stay as they are written."""
        types: Any = dict.fromkeys(as_text, str)
        with self._open() as stream:
            if self.name.endswith(".json"):
                frame = pd.read_json(stream, convert_dates=False, dtype=False)
                return frame.astype({name: types[name] for name in types if name in frame})[:rows]
            separator = "\t" if self.name.endswith(".tsv") else ","
            return pd.read_csv(stream, sep=separator, dtype=types, nrows=rows, low_memory=False)

    def read_as_written(self) -> pd.DataFrame:
        """Read the table with every value as text."""
        with self._open() as stream:
            return pd.read_csv(stream, dtype=str, keep_default_na=False)

    def _open(self) -> IO[bytes]:
        if self.member is None:
            return self.file.open("rb")
        return zipfile.ZipFile(self.file).open(self.member)


@dataclass(frozen=True)
class Tables:
    """The tables of a competition; ``ids`` are the sample's columns that name rows."""

    sample: pd.DataFrame  # as text, so that ids stay as they are
    train: pd.DataFrame
    test: pd.DataFrame  # where there is none, the ids alone
    ids: tuple[str, ...]


def find_sample(folder: Path) -> Source | None:
    """Return the sample submission, the plainest name first."""
    found = (source for source in _sources(folder) if _is_sample(source))
    return min(found, key=lambda source: len(source.stem), default=None)


def read_tables(folder: Path, sample: pd.DataFrame) -> Tables | None:
    """Return the tables of *folder*, or None where there is nothing to learn from."""
    sources = [source for source in _sources(folder) if not _is_sample(source)]
    tests = _called("test", sources)[:1]
    trains = _called("train", sources) + _called("label", sources)
    if not trains:
        return None
    known = {name for test in tests for name in test.read(rows=1).columns}
    ids = tuple(name for name in sample.columns if name in known) or (str(sample.columns[0]),)
    return Tables(
        sample=sample,
        train=_joined([one.read(as_text=ids, rows=MOST_ROWS) for one in trains], ids[0]),
        test=tests[0].read(as_text=ids) if tests else sample[list(ids)],
        ids=ids,
    )


def _sources(folder: Path) -> Iterator[Source]:
    files = [path for pattern in ("*", "*/*.csv") for path in sorted(folder.glob(pattern))]
    for file in files:
        if file.suffix in _SUFFIXES:
            yield Source(file)
        elif file.suffix == ".zip" and zipfile.is_zipfile(file):
            names = zipfile.ZipFile(file).namelist()
            tables = (name for name in names if Path(name).suffix in _SUFFIXES)
            yield from (Source(file, name) for name in tables if "__MACOSX" not in name)


def _is_sample(source: Source) -> bool:
    return "sample" in source.stem and "sub" in source.stem


def _called(word: str, sources: list[Source]) -> list[Source]:
    """Return the tables whose names have *word* in them, the plainest first."""
    return sorted((s for s in sources if word in s.stem), key=lambda source: len(source.stem))


def _joined(frames: list[pd.DataFrame], key: str) -> pd.DataFrame:
    """Return the first table with the columns that others add to the same rows."""
    first, *others = frames
    for other in others:
        new = [name for name in other.columns if name not in first.columns]
        if new and key in first and key in other and other[key].is_unique:
            first = first.merge(other[[key, *new]], on=key, how="inner")
    return first
