"""Scanned pages are split at random; the answers are the grey values of the clean ones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.preparing import (
    link_all,
    list_files,
    reading,
    require,
    split_list,
    unpacked,
    write_csv,
)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a fifth of the pages."""
    with unpacked(raw / "train.zip", near=public) as folder:
        pages = list_files(folder / "train", "*.png")
        _, dirty = split_list(pages, 0.2)
        _link_others(folder, dirty, public)
        link_all((page, public / "test" / page.name) for page in dirty)
    with unpacked(raw / "train_cleaned.zip", near=public) as folder:
        clean = [require(folder / "train_cleaned" / page.name) for page in sorted(dirty)]
        _link_others(folder, clean, public)
        answers = pd.concat([_pixels(page) for page in clean])
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(value=1), public / "sampleSubmission.csv")


def _link_others(folder: Path, held_out: Iterable[Path], public: Path) -> None:
    """Put everything that an archive holds into public, except the pages held out."""
    paths = set(folder.rglob("*")).difference(held_out)
    for path in filter(Path.is_dir, paths):  # also those with nothing in them
        (public / path.relative_to(folder)).mkdir(parents=True, exist_ok=True)
    link_all((path, public / path.relative_to(folder)) for path in paths if path.is_file())


def _pixels(page: Path) -> pd.DataFrame:
    """Return a row for each pixel, along the rows: its name and its value from 0 to 1."""
    grey = _read_grey(page)
    columns = [f"_{column}" for column in range(1, grey.shape[1] + 1)]
    starts = [f"{page.stem}_{row}" for row in range(1, grey.shape[0] + 1)]
    ids = [start + column for start in starts for column in columns]
    return pd.DataFrame({"id": ids, "value": grey.ravel() / 255.0})


def _read_grey(page: Path) -> np.ndarray[Any, Any]:
    """Return the luminance of a picture in 8 bits."""
    try:
        from PIL import Image  # late on purpose: nothing else reads pictures here
    except ImportError:
        raise ConfigError(
            "reading pictures needs Pillow: pip install 'pytest-mlebench[competitions]'"
        ) from None
    with reading(page), Image.open(page) as picture:
        return np.asarray(picture.convert("L"))
