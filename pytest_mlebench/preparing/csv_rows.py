"""Rows of a csv file, taken by their numbers; a large file stays on the disk.

``open_rows`` is ``read_csv`` for files that may be larger than the memory. Of those only the
positions of the rows are kept; rows that a prepared file has as the raw one are copied as text,
others are parsed and written again, some megabytes at a time and on all cores.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.host.crew import Crew
from pytest_mlebench.preparing.csv_examine import CsvLook, Kept, read_columns
from pytest_mlebench.preparing.csv_index import Index, build_index, joined_column
from pytest_mlebench.preparing.csv_parts import Options, by_pandas, table_text
from pytest_mlebench.preparing.csv_source import Array, CsvSource, Part, Types, row_ends
from pytest_mlebench.preparing.files import require
from pytest_mlebench.preparing.gather import gather
from pytest_mlebench.preparing.tables import check_columns, read_csv, write_csv
from pytest_mlebench.preparing.written_sums import followed, new_file

MIN_INDEXED_BYTES = 48 << 20  # below, a table in memory is as good
# Rows that are collected while the file is read once, by all processes together: as few readings as
# memory allows.
MAX_COPIED_BYTES = 512 << 20
MIN_COPIED_BYTES = 16 << 20  # by each
USUAL_LOTS = 12
MIN_REWRITTEN_BYTES = 8 << 20
MAX_REWRITTEN_BYTES = 32 << 20
RUN_ROWS = 1 << 20
LONG_RUN_BYTES = 4 << 10  # of neighbours: the rest of the file need not be read to find them
MANY_CHANGES = 0.3  # of the rows of a piece: then all of them are written anew


class Rows(Protocol):
    """A csv file by rows, which are numbered from 0."""

    def __len__(self) -> int: ...

    def column(self, name: str) -> pd.Series[Any]:
        """Return a column of the whole file."""

    def table(self, rows: Array) -> pd.DataFrame:
        """Return some rows, in the order asked for, with their numbers as index."""

    def write(
        self,
        rows: Array,
        path: Path,
        *,
        assign: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        """Write some rows, in the order asked for; *assign* has new values for some columns."""


@contextmanager
def open_rows(
    path: Path,
    *,
    needs: Iterable[str] = (),
    keep: Iterable[str] = (),
    dtype: Types | None = None,
    copied: bool = True,
) -> Iterator[Rows]:
    """Open a raw csv file; the columns in *needs* must be there, with rows.

    Of a large file the columns in *keep* are read at once and not in a pass of their own. Without
    *copied* no rows are going to be written as they are, and none is looked at for that.
    """
    is_large = require(path).stat().st_size >= MIN_INDEXED_BYTES
    look = CsvLook(copied=copied, kept=tuple(keep))
    with Crew() as crew:
        index = build_index(crew, path, dtype or {}, look) if is_large else None
        if index is None:
            yield TableRows(read_csv(path, needs=needs, dtype=dtype))
        else:
            check_columns(path, index.source.columns, len(index), needs)
            yield FileRows(crew, index)


@dataclass(frozen=True)
class TableRows:
    """The rows of a file that is in memory."""

    whole: pd.DataFrame

    def __len__(self) -> int:
        return len(self.whole)

    def column(self, name: str) -> pd.Series[Any]:
        """Return a column of the whole file."""
        return self.whole[name]

    def table(self, rows: Array) -> pd.DataFrame:
        """Return some rows, in the order asked for, with their numbers as index."""
        return self.whole.iloc[rows]

    def write(
        self,
        rows: Array,
        path: Path,
        *,
        assign: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        """Write some rows, in the order asked for; *assign* has new values for some columns."""
        change = Change.of(assign, columns, options)
        write_csv(change.applied(self.whole.iloc[rows]), path, **options)


@dataclass(frozen=True)
class FileRows:
    """The rows of a file that is on disk."""

    crew: Crew
    index: Index

    def __len__(self) -> int:
        return len(self.index)

    def column(self, name: str) -> pd.Series[Any]:
        """Return a column of the whole file; equal texts are in memory once."""
        if name in self.index.kept:
            return self.index.kept[name]
        with self._errors():
            calls = (partial(read_column, part, name) for part in self.index.parts)
            return joined_column(name, self.crew.map(calls))

    def table(self, rows: Array) -> pd.DataFrame:
        """Return some rows, in the order asked for, with their numbers as index."""
        source = self.index.source
        text = b"".join(piece for _, piece in gather(source.path, *self.index.places(rows)))
        with self._errors():
            return source.parse(text).set_index(pd.Index(rows))

    def write(
        self,
        rows: Array,
        path: Path,
        *,
        assign: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        """Write some rows, in the order asked for; *assign* has new values for some columns."""
        change = Change.of(assign, columns, options)
        header = by_pandas(change.applied(self.index.source.parse(b"")), change.options)
        if change or not self.index.copied:
            self._rewrite(rows, path, header, change)
        else:
            self._copy(rows, path, header)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say what is wrong with a row as it would be said of the whole file, with its line."""
        try:
            yield
        except (ValueError, PreparationError):
            read_csv(self.index.source.path, dtype=self.index.source.types)
            raise

    def _copy(self, rows: Array, path: Path, header: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(header)
        most = MAX_COPIED_BYTES // self.crew.size
        lots = self._copies(rows, path, self._lot_rows(rows, MIN_COPIED_BYTES, most))
        with followed(path) as follow:
            for end in self.crew.map(partial(copy_lot, lot) for lot in lots):
                follow(end)

    def _lot_rows(self, rows: Array, least: int, most: int) -> int:
        """Return how many rows to collect in one reading of the file."""
        mean = self.index.mean_length
        is_sparse = mean * len(rows) / _runs(rows) < LONG_RUN_BYTES
        wanted = mean * len(rows) / USUAL_LOTS if is_sparse else 0
        return max(1, int(max(least, min(most, wanted)) / mean))

    def _copies(self, rows: Array, path: Path, step: int) -> Iterator[Copy]:
        place, changed = path.stat().st_size, self.index.changed
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            starts, lengths = self.index.places(some)
            new = None if changed is None or not changed[some].any() else changed[some]
            lot = Copy(self.index.source, starts, lengths, new, path, place)
            yield lot
            place += lot.size

    def _rewrite(self, rows: Array, path: Path, header: bytes, change: Change) -> None:
        step = self._lot_rows(rows, MIN_REWRITTEN_BYTES, MAX_REWRITTEN_BYTES)
        lots = (
            Rewrite(self.index.source, *self.index.places(rows[some]), change.part(some))
            for some in (slice(start, start + step) for start in range(0, len(rows), step))
        )
        with new_file(path) as file, self._errors():
            file.write(header)
            for texts in self.crew.map(partial(rewrite_lot, lot) for lot in lots):
                file.writelines(texts)


@dataclass(frozen=True)
class Change:
    """What is to be different in the rows that are written."""

    assign: dict[str, Any]
    columns: tuple[str, ...] | None
    options: Options

    @classmethod
    def of(
        cls, assign: Mapping[str, Any] | None, columns: Sequence[str] | None, options: Options
    ) -> Change:
        """Return the change that the arguments of ``write`` ask for."""
        values = {k: v if np.isscalar(v) else np.asarray(v) for k, v in (assign or {}).items()}
        chosen = None if columns is None else tuple(columns)
        return cls(values, chosen, {"index": False, **options})

    def __bool__(self) -> bool:
        return bool(self.assign or self.columns or self.options != {"index": False})

    def part(self, some: slice) -> Change:
        """Return the change of some of the rows."""
        parts = {k: v if np.isscalar(v) else v[some] for k, v in self.assign.items()}
        return replace(self, assign=parts)

    def applied(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table with the change."""
        part = self.part(slice(0, len(table)))
        changed = table.assign(**part.assign)
        return changed if self.columns is None else changed[list(self.columns)]


@dataclass(frozen=True)
class Copy:
    """Rows to be copied to their place in another file; *changed* are new lengths, else zero."""

    source: CsvSource
    starts: Array
    lengths: Array
    changed: Array | None
    target: Path
    place: int

    @property
    def size(self) -> int:
        """Return how many bytes there will be in the other file."""
        if self.changed is None:
            return int(self.lengths.sum(dtype=np.int64))
        return int(np.where(self.changed, self.changed, self.lengths).sum(dtype=np.int64))


@dataclass(frozen=True)
class Rewrite:
    """Rows to be written anew."""

    source: CsvSource
    starts: Array
    lengths: Array
    change: Change


def copy_lot(lot: Copy) -> int:
    """Copy rows as they are, or as they must be; return where they end in the other file."""
    place, end = lot.place, lot.place + lot.size
    with lot.target.open("r+b") as file:
        for piece, text in gather(lot.source.path, lot.starts, lot.lengths):
            changed = None if lot.changed is None else lot.changed[piece]
            if changed is not None and changed.any():
                text = _patched(lot.source, text, lot.lengths[piece], changed)  # noqa: PLW2901
            view = memoryview(text)
            while view:
                written = os.pwrite(file.fileno(), view, place)
                view, place = view[written:], place + written
    if place != end:  # the next ones are where these should end
        raise PreparationError(
            f"{lot.source.path}: {place - end:+} bytes in rows from {int(lot.starts[0])} on, other "
            "than was found when they were examined: has the file been changed meanwhile?"
        )
    return end


def rewrite_lot(lot: Rewrite) -> list[bytes]:
    """Return the text of rows with a change."""
    texts = []
    for piece, text in gather(lot.source.path, lot.starts, lot.lengths):
        table = lot.change.part(piece).applied(lot.source.parse(text))
        texts.append(table_text(table, lot.change.options))
    return texts


def read_column(part: Part, name: str) -> Kept:
    """Return a column of a part."""
    return read_columns(part, part.read(), [name])[name]


def _runs(rows: Array) -> int:
    """Return how many runs of neighbours there are; a few rows at a time, for they may be many."""
    starts = range(0, len(rows), RUN_ROWS)
    pieces = (rows[start : start + RUN_ROWS + 1] for start in starts)
    return 1 + sum(int(np.count_nonzero(np.diff(piece) != 1)) for piece in pieces)


def _patched(source: CsvSource, text: bytes, lengths: Array, changed: Array) -> bytes:
    """Return rows of which some are written anew."""
    flags = changed != 0
    if flags.mean() > MANY_CHANGES:
        return source.written(text)
    places = np.flatnonzero(flags)
    ends = np.cumsum(lengths, dtype=np.int64)[places]
    spans = list(zip((ends - lengths[places]).tolist(), ends.tolist(), strict=True))
    new = source.written(b"".join([text[start:end] for start, end in spans]))
    parts, done, new_start = [], 0, 0
    for (start, end), new_end in zip(spans, row_ends(new).tolist(), strict=True):
        parts += [text[done:start], new[new_start:new_end]]
        done, new_start = end, new_end
    return b"".join([*parts, text[done:]])
