"""Restoration: a picture for a picture, pixel by pixel, learnt from pairs of the same name.

The sample asks for single pixels (``NAME_ROW_COLUMN``) of test pictures, and the training pictures
are there twice: as the test pictures are, and as they should be.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from listing import MediaFile
from pictures import decode
from pixels import fit_regressor, neighbourhood, pixels_to_learn, predict
from submission import Submission
from workspace import Workspace

MAX_PICTURES = 150  # to learn from
MIN_PAIRS = 2
READING_SHARE = 0.4  # of the time that is left, at most, goes into reading files
_PIXEL = re.compile(r"(.+)_(\d+)_(\d+)")

Pair = tuple[MediaFile, MediaFile]


def restore(workspace: Workspace, submission: Submission, files: list[MediaFile]) -> bool:
    """Restore pictures if that is asked for; tell whether something was handed in."""
    asked = _asked(submission.table, files)
    pairs = _pairs(files) if asked else []
    if len(pairs) < MIN_PAIRS:
        return False
    column = str(submission.table.columns[1])
    workspace.log(f"to learn: pixels {column} (from {len(pairs)} pairs of pictures)")
    model = _learn(workspace, pairs)
    if model is None:
        workspace.log("too few pictures can be read: the sample must do")
        return False
    bright = pd.to_numeric(submission.table[column], errors="coerce").max()
    _fill(workspace, submission, model, asked, scale=255.0 if bright > 1 else 1.0)
    return True


def _asked(sample: pd.DataFrame, files: list[MediaFile]) -> dict[str, MediaFile]:
    """Return the test pictures by name, if the sample asks for pixels of them and nothing else."""
    if len(sample.columns) != 2 or not _PIXEL.fullmatch(sample.iat[0, 0]):
        return {}
    tests = {file.key: file for file in files if file.split == "test" and file.kind == "picture"}
    names = sample.iloc[:, 0].str.replace(r"_\d+_\d+$", "", regex=True).unique()
    return {name: tests[name] for name in names} if set(names) <= set(tests) else {}


def _pairs(files: list[MediaFile]) -> list[Pair]:
    """Return training pictures that are in a folder like the test's, and in one other."""
    places = {file.place for file in files if file.split == "test"}
    trains = [file for file in files if file.split == "train" and file.kind == "picture"]
    befores = {file.key: file for file in trains if file.place in places}
    afters = {file.key: file for file in trains if file.place not in places}
    if len({file.place for file in afters.values()}) != 1:
        return []
    return [(befores[key], afters[key]) for key in sorted(befores) if key in afters]


def _learn(workspace: Workspace, pairs: list[Pair]) -> Any:
    """Return a model of clean pixels, or None where hardly any pair can be read."""
    random = np.random.default_rng(workspace.seed)
    chosen = [pairs[i] for i in random.permutation(len(pairs))[:MAX_PICTURES]]
    each = pixels_to_learn(workspace.seconds_left) // len(chosen) + 1
    deadline = time.monotonic() + READING_SHARE * workspace.seconds_left
    rows, truth = [], []
    for before, after in _read_pairs(chosen, deadline):
        pick = random.permutation(before.size)[:each]
        rows.append(neighbourhood(before)[pick])
        truth.append(after.ravel()[pick])
    if len(rows) < MIN_PAIRS:
        return None
    return fit_regressor(np.concatenate(rows), np.concatenate(truth), workspace.seed, trees=200)


def _read_pairs(pairs: list[Pair], deadline: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for pair in pairs:
        before, after = (_grey(file) for file in pair)
        if time.monotonic() > deadline:
            return
        if before is not None and after is not None and before.shape == after.shape:
            yield before, after


def _grey(file: MediaFile) -> np.ndarray | None:
    try:
        pixels, _ = decode(file.read())
    except Exception:  # decoders raise whatever a broken file drives them to
        return None
    return np.asarray(pixels.mean(axis=2))


def _fill(
    workspace: Workspace,
    submission: Submission,
    model: Any,
    asked: dict[str, MediaFile],
    scale: float,
) -> None:
    """Hand in the pixels of one picture after the other, while there is time."""
    column = str(submission.table.columns[1])
    parts = submission.table.iloc[:, 0].str.extract(_PIXEL)
    rows, columns = (parts[i].astype(int).to_numpy() for i in (1, 2))
    first = min(rows.min(), columns.min(), 1)
    values = pd.to_numeric(submission.table[column], errors="coerce").to_numpy(dtype=float).copy()
    places = parts.groupby(0).indices
    for name, file in asked.items():
        grey = None if workspace.seconds_left < 0 else _grey(file)
        down, right = (numbers[places[name]] - first for numbers in (rows, columns))
        if grey is None or down.max() >= grey.shape[0] or right.max() >= grey.shape[1]:
            continue
        clean = predict(model, neighbourhood(grey)).reshape(grey.shape).clip(0, 1)
        values[places[name]] = scale * clean[down, right]
    submission.replace(column, values.round(5))
