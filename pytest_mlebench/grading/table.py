"""A csv file in memory, whose columns are parsed when they are asked for.

It has as much of a pandas table as aligning needs: ``columns``, ``len`` and columns by name.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeAlias

import pandas as pd

from pytest_mlebench._csv import TooManyRows, read_frame
from pytest_mlebench.grading.csv_layout import Layout, find_layout
from pytest_mlebench.grading.inference import inferred, is_clearly_text, is_settled
from pytest_mlebench.grading.rules import Rules

WRITTEN = {"label", "name", "text", "words", "first"}  # kinds of columns that are mostly texts

Blame = Callable[[Exception], Exception]


class CsvTable:
    """A csv file of UTF-8 text; what is wrong with it is put into words by *blame*.

    A file of *max_rows* rows at most comes from elsewhere: each of its lines is looked at.
    """

    def __init__(
        self, data: bytes, rules: Rules, blame: Blame, *, max_rows: int | None = None
    ) -> None:
        self._data = data
        self._rules = rules
        self._blame = blame
        self._max_rows = max_rows
        self._parsed: dict[str, pd.Series[Any]] = {}
        self._written = {column for column, kind in rules.kinds.items() if kind in WRITTEN}

    @cached_property
    def columns(self) -> list[str]:
        """Return the names of its columns."""
        return [str(name) for name in self._head(nrows=0).columns]

    @cached_property
    def layout(self) -> Layout | None:
        """Return where its fields are, if it is a plain file."""
        layout = find_layout(self._data)
        if layout is not None and self._max_rows is not None and len(layout) > self._max_rows:
            raise self._blame(TooManyRows(self._max_rows))
        return layout

    @property
    def lines(self) -> int:
        """Return the number of lines after the header, which are at least as many as its rows."""
        return self._data.count(b"\n") - self._data.endswith(b"\n")

    def __len__(self) -> int:
        return len(self[self.columns[0]])

    def __getitem__(self, column: str) -> pd.Series[Any]:
        if column not in self._parsed:
            self.load((column,))
        return self._parsed[column]

    def load(self, columns: Iterable[str]) -> None:
        """Parse some columns, those of them that there are, in one go."""
        if self._max_rows is not None and self.__dict__.get("layout") is None:
            # the parser looks for rows that are too long only if it is to read all columns
            columns = self.columns
        wanted = [name for name in columns if name in self.columns and name not in self._parsed]
        if wanted:
            texts = self._written.union(self._rules.as_written).intersection(wanted)
            table = self._parse(usecols=self._places(wanted), dtype=dict.fromkeys(texts, object))
            self._parsed.update((name, self._settled(table[name])) for name in wanted)

    def frame(self) -> pd.DataFrame:
        """Return all columns as a table of pandas."""
        self.load(self.columns)
        return pd.DataFrame({name: self._parsed[name] for name in self.columns}, copy=False)

    def first(self, column: str) -> str:
        """Return the first cell of a column as it is written, nothing if it is empty."""
        cells = self._head(nrows=1, dtype=object)[column]
        return "" if cells.isna().all() else str(cells.iloc[0])

    def _settled(self, cells: pd.Series[Any]) -> pd.Series[Any]:
        """Return a column as every pandas would have it, which some of its cells may depend on."""
        name = str(cells.name)
        if name in self._rules.as_written:
            return cells
        if name in self._written:
            first = cells.first_valid_index()
            if first is not None and is_clearly_text(cells[first]):
                return cells
            written, cells = cells, self._column(name)
        else:
            written = None
        if is_settled(cells):
            return cells
        return inferred(self._column(name, dtype=object) if written is None else written)

    def _column(self, name: str, **options: Any) -> pd.Series[Any]:
        column: pd.Series[Any] = self._parse(usecols=self._places([name]), **options)[name]
        return column

    def _places(self, columns: Sequence[str]) -> list[int] | None:
        """Return which columns to parse; None stands for all of them."""
        if len(columns) == len(self.columns):
            return None
        return [self.columns.index(name) for name in columns]

    def _parse(self, **options: Any) -> pd.DataFrame:
        with self._blaming():
            return read_frame(
                io.BytesIO(self._data),
                index_col=False,
                max_rows=self._max_rows,
                width=len(self.columns),
                **options,
            )

    def _head(self, **options: Any) -> pd.DataFrame:
        with self._blaming():
            return pd.read_csv(io.BytesIO(self._data), index_col=False, **options)

    @contextmanager
    def _blaming(self) -> Iterator[None]:
        try:
            with warnings.catch_warnings():
                # pandas warns, and drops data, where rows are longer than the header
                warnings.simplefilter("error", pd.errors.ParserWarning)
                yield
        except Exception as error:
            raise self._blame(error) from None


Table: TypeAlias = pd.DataFrame | CsvTable


def load(table: Table, columns: Iterable[str]) -> None:
    """Parse some columns of a file in one go; a table of pandas has them."""
    if isinstance(table, CsvTable):
        table.load(columns)


def row_bound(table: Table) -> int:
    """Return how many rows a table has, or may have, without parsing it."""
    return table.lines if isinstance(table, CsvTable) else len(table)
