"""What kinds of columns a table has: numbers, categories, dates, text."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import pandas as pd

FEW_LEVELS = 0.5  # of the rows: a category with more different values says nothing
TEXT_WORDS = 3.0  # on average: from here on, words rather than values matter
LOOK_AT = 2_000  # rows, to decide

_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{2,4}")


@dataclass(frozen=True)
class Columns:
    """The names of the useful columns by kind."""

    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    dates: tuple[str, ...]
    texts: tuple[str, ...]

    @property
    def only_text(self) -> bool:
        """Tell whether there is text and nothing else."""
        return bool(self.texts) and not (self.numbers or self.categories or self.dates)

    @property
    def are_none(self) -> bool:
        """Tell whether there is no useful column."""
        return not (self.numbers or self.categories or self.dates or self.texts)

    def without_keys(self, names: Collection[str]) -> Columns:
        """Return the columns but for those of *names* that are no text."""

        def others(columns: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(name for name in columns if name not in names)

        kept = others(self.numbers), others(self.categories), others(self.dates)
        return Columns(*kept, self.texts)


def sort_columns(frame: pd.DataFrame) -> Columns:
    """Tell what each column of *frame* is; those without any use are left out."""
    kinds = {str(name): _kind(frame[name].dropna()) for name in frame.columns}

    def those(kind: str) -> tuple[str, ...]:
        return tuple(name for name in kinds if kinds[name] == kind)

    return Columns(those("number"), those("category"), those("date"), those("text"))


def has_lists(values: pd.Series) -> bool:
    """Tell whether cells are more than single values."""
    return bool(values.map(type).isin((list, dict)).any())


def _kind(values: pd.Series) -> str | None:
    if has_lists(values) or values.nunique() < 2:
        return None
    if pd.api.types.is_bool_dtype(values.dtype):
        return "category"
    if pd.api.types.is_numeric_dtype(values.dtype):
        return "number"
    some = values.astype(str).head(LOOK_AT)
    if some.map(lambda value: _DATE.match(value) is not None).mean() > 0.9:
        return "date"
    if some.str.count(r"\S+").mean() > TEXT_WORDS:
        return "text"
    return "category" if values.nunique() <= FEW_LEVELS * len(values) else None
