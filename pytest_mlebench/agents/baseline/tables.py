"""The tables of a data folder: what is for training, what is to be predicted, and the sample."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import pandas as pd
from listing import MediaFile

MAX_ROWS = 300_000  # of the training table: a baseline need not see more
MAX_JSON_BYTES = 1_000_000_000  # of a file: in memory it takes several times as much

SUFFIXES = (".csv", ".tsv", ".json")
_TEXT = ".txt"  # a table only where nothing else can be the sample


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
            if self.name.endswith(".json") and self.file.stat().st_size > MAX_JSON_BYTES:
                raise ValueError(f"{self.file.name} is too large to be read as a whole")
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
    train_files: tuple[MediaFile, ...] = ()  # of each row, where the files are all there is


def find_sample(folders: Iterable[Path]) -> Source | None:
    """Return the sample submission, else what is called so, else the table of what is asked."""
    sources = _sources(folders, (*SUFFIXES, _TEXT))
    samples = [source for source in sources if _is_sample(source)]
    others = _called("submission", sources) + _called("prediction", sources)
    return next(iter(_plainest_first(samples) + others + _called("test", sources)), None)


def read_tables(folders: Iterable[Path], sample: pd.DataFrame) -> Tables | None:
    """Return the tables of *folders*, or None where there is nothing to learn from."""
    sources = [source for source in _sources(folders, SUFFIXES) if not _is_sample(source)]
    tests = [one for one in _called("test", sources) if "label" not in one.stem][:1]
    trains = _called("train", sources)
    labels = [one for one in _called("label", sources) if one not in trains]
    trains += [one for one in labels if "test" not in one.stem]
    if not trains:
        return None
    header = [name for test in tests for name in test.read(rows=1).columns]
    known = {_respelt(name, sample) for name in header}
    ids = tuple(name for name in sample.columns if name in known) or (id_column(sample),)
    read = partial(_read, sample=sample, ids=ids)
    return Tables(
        sample=sample,
        train=_joined(_readable(trains, partial(read, rows=MAX_ROWS)), ids[0]),
        test=read(tests[0]) if tests else sample[list(ids)],
        ids=ids,
    )


def _readable(
    sources: list[Source], read: Callable[[Source], pd.DataFrame]
) -> list[tuple[Source, pd.DataFrame]]:
    """Return the sources that are tables; raise what is wrong with the first if none is."""
    found, problems = [], []
    for source in sources:
        try:
            found.append((source, read(source)))
        except ValueError as problem:
            problems.append(problem)
    if not found:
        raise problems[0]
    return found


def _read(
    source: Source, sample: pd.DataFrame, ids: tuple[str, ...], rows: int | None = None
) -> pd.DataFrame:
    """Read a table; its columns are spelt as the sample spells them, and ids stay text."""
    spellings = {way(name) for name in ids for way in (str, str.lower, str.upper, str.capitalize)}
    frame = source.read(as_text=spellings, rows=rows)
    spelt = {name: _respelt(name, sample) for name in frame.columns}
    return frame.rename(columns={a: b for a, b in spelt.items() if b not in frame.columns})


def _respelt(name: str, sample: pd.DataFrame) -> str:
    """Return a column's name as the sample has it, where only the case differs."""
    alike = (str(column) for column in sample.columns if column.lower() == str(name).lower())
    return name if name in sample.columns else next(alike, name)


def id_column(sample: pd.DataFrame) -> str:
    """Return the sample's first column with a name, which tells rows where tables do not."""
    return next((str(name) for name in sample.columns if is_named(name)), str(sample.columns[0]))


def is_named(column: str) -> bool:
    """Tell a column with a name from the index that somebody wrote into the table."""
    return not column.startswith("Unnamed: ")


def _sources(folders: Iterable[Path], suffixes: tuple[str, ...]) -> list[Source]:
    return [source for folder in folders for source in _sources_in(folder, suffixes)]


def _sources_in(folder: Path, suffixes: tuple[str, ...]) -> Iterator[Source]:
    files = [path for pattern in ("*", "*/*.csv") for path in sorted(folder.glob(pattern))]
    for file in files:
        if file.suffix in suffixes:
            yield Source(file)
        elif file.suffix == ".zip" and zipfile.is_zipfile(file):
            names = zipfile.ZipFile(file).namelist()
            tables = (name for name in names if Path(name).suffix in suffixes)
            yield from (Source(file, name) for name in tables if "__MACOSX" not in name)


def _is_sample(source: Source) -> bool:
    return "sample" in source.stem and "sub" in source.stem


def _called(word: str, sources: list[Source]) -> list[Source]:
    """Return the tables whose names have *word* in them, the plainest first."""
    return _plainest_first(source for source in sources if word in source.stem)


def _plainest_first(sources: Iterable[Source]) -> list[Source]:
    return sorted(sources, key=lambda source: len(source.stem))


def _joined(tables: list[tuple[Source, pd.DataFrame]], key: str) -> pd.DataFrame:
    """Return the first table with the rows that its likes add, and the columns that others do."""
    (source, first), *others = tables
    for beside, other in others:
        alike = set(other.columns) == set(first.columns) and key in first
        # the same rows again, as in an archive, would only spoil the cross-validation
        new = alike and not first[key].isin(other[key]).any()
        if new and beside.file.parent == source.file.parent:
            first = pd.concat([first, other], ignore_index=True)
    for _, other in others:
        names = [name for name in other.columns if name not in first.columns]
        if names and key in first and key in other and other[key].is_unique:
            first = first.merge(other[[key, *names]], on=key, how="inner")
    return first
