"""Segmentation: masks of pictures, by a model of single pixels and what surrounds them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from listing import MediaFile
from masks import Order, are_runs, decode_runs, encode_runs, first_pixel
from matching import Files, match_files
from pictures import decode, resized
from pixels import fit_classifier, pixels_to_learn, predict, surroundings
from submission import Submission, places_of
from tables import Tables
from workspace import Workspace

SIDE = 128  # pixels: larger pictures are learnt and predicted at this size
MAX_PICTURES = 240  # to learn from
MIN_PICTURES = 8
MAX_KINDS = 10  # of masks in one picture
TRIAL_PIXELS = 40_000  # that tell in which order masks are written
SAVE_EVERY = 30.0  # seconds
READING_SHARE = 0.4  # of the time that is left, at most, goes into reading files
_ORDERS: tuple[Order, ...] = ("F", "C")
_THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_SMALLEST = (0.0, 0.005, 0.02, 0.05)  # shares of a picture below which a mask is none

Picture = tuple[MediaFile | None, object]  # a file, and the cell with its mask


@dataclass(frozen=True)
class Example:
    """A picture of the training table: a row for each pixel, and its mask in either order."""

    rows: np.ndarray
    covers: dict[Order, np.ndarray]  # whether the mask covers each of the pixels


@dataclass(frozen=True)
class Painter:
    """A model of masks, and how to write them."""

    model: Any
    order: Order
    first: int
    threshold: float
    smallest: float

    def paint(self, content: bytes) -> str:
        """Return the mask of a picture as runs, none where it is too small."""
        pixels, (width, height) = decode(content, SIDE)
        pixels = _bounded(pixels)
        chances = predict(self.model, surroundings(pixels)).reshape(pixels.shape[:2])
        mask = resized(chances, height, width) >= self.threshold
        if mask.mean() <= self.smallest:
            return ""
        return encode_runs(mask, order=self.order, first=self.first)


def segment(
    workspace: Workspace, submission: Submission, tables: Tables, files: list[MediaFile]
) -> bool:
    """Predict masks if they are asked for; tell whether something was handed in."""
    source, column = _masks_of(tables)
    matched = match_files(tables, files) if source else None
    places = places_of(tables)
    if source is None or matched is None or places is None:
        return False
    workspace.log(f"to learn: masks {column} (from {source})")
    kinds = _kinds(tables.test, tables.ids).to_numpy()[places]
    painters = dict(_painters(workspace, tables, source, matched))
    if not painters:
        workspace.log("too few pictures can be read: the sample must do")
        return False
    asked = [(painters.get(kind), matched.test[i]) for kind, i in zip(kinds, places, strict=True)]
    # where every picture has a mask, the sample must know what to write for none
    none = "" if tables.train[source].isna().any() else None
    _fill(workspace, submission, column, asked, none)
    return True


def _masks_of(tables: Tables) -> tuple[str | None, str]:
    """Return the columns with masks, of the training table and of the sample."""
    wanted = [name for name in tables.sample.columns if name not in tables.ids]
    for name in tables.train.columns if len(wanted) == 1 else ():
        if name not in tables.test.columns and are_runs(tables.train[name].dropna()):
            return str(name), wanted[0]
    return None, ""


def _kinds(table: pd.DataFrame, ids: tuple[str, ...]) -> pd.Series:
    """Return what kind of mask each row is about: all of its id but the picture."""
    others = list(ids[1:])
    if not others:
        return pd.Series("", table.index)
    return table[others].astype(str).agg(" ".join, axis=1)


def _painters(
    workspace: Workspace, tables: Tables, source: str, files: Files
) -> Iterator[tuple[str, Painter]]:
    """Yield a painter for each kind of mask of which there are enough."""
    kinds = _kinds(tables.train, tables.ids)
    every = kinds.unique()[:MAX_KINDS]
    for number, kind in enumerate(every):
        rows = np.flatnonzero(kinds == kind).tolist()
        share = READING_SHARE * workspace.seconds_left / (len(every) - number)
        pictures = [(files.train[row], tables.train[source].iloc[row]) for row in rows]
        painter = _learn(workspace, pictures, time.monotonic() + share)
        if painter is not None:
            yield kind, painter


def _learn(workspace: Workspace, pictures: list[Picture], deadline: float) -> Painter | None:
    first = first_pixel(cell for _, cell in pictures if not pd.isna(cell))
    random = np.random.default_rng(workspace.seed)
    chosen = [pictures[i] for i in random.permutation(len(pictures))[:MAX_PICTURES]]
    examples = list(_examples(chosen, first, deadline))
    if len(examples) < MIN_PICTURES or not any(one.covers["F"].any() for one in examples):
        return None
    seed, most = workspace.seed, pixels_to_learn(deadline - time.monotonic())
    checked, learnt = examples[: len(examples) // 4], examples[len(examples) // 4 :]
    trials = {order: _trial(learnt, checked, order, seed) for order in _ORDERS}
    order = min(_ORDERS, key=trials.__getitem__)
    model = _fit(learnt, order, seed, most=most, trees=120)
    chances = [predict(model, one.rows) for one in checked]
    covers = [one.covers[order] for one in checked]
    options = product(_THRESHOLDS, _SMALLEST)
    scores = {option: _mean_dice(chances, covers, *option) for option in options}
    best = max(scores, key=scores.__getitem__)
    workspace.log(
        f"learnt {len(learnt)} masks, order {order}: Dice {scores[best]:.3f} on {len(checked)} more"
    )
    return Painter(model, order, first, *best)


def _examples(pictures: list[Picture], first: int, deadline: float) -> Iterator[Example]:
    """Yield training pictures with their masks while there is time."""
    for file, cell in pictures:
        if file is None or time.monotonic() > deadline:
            continue
        try:
            pixels, (width, height) = decode(file.read(), SIDE)
        except Exception:  # decoders raise whatever a broken file drives them to
            continue
        pixels = _bounded(pixels)
        text = "" if pd.isna(cell) else str(cell)
        yield Example(
            surroundings(pixels),
            {
                order: _cover(decode_runs(text, height, width, order=order, first=first), pixels)
                for order in _ORDERS
            },
        )


def _bounded(pixels: np.ndarray) -> np.ndarray:
    """Return a picture whose longer side is within bounds."""
    scale = min(1.0, SIDE / max(pixels.shape[:2]))
    height, width = (max(1, round(length * scale)) for length in pixels.shape[:2])
    return np.stack([resized(pixels[..., i], height, width) for i in range(3)], axis=2)


def _cover(mask: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    return (resized(mask.astype(float), *pixels.shape[:2]) >= 0.5).ravel()


def _fit(examples: list[Example], order: Order, seed: int, *, most: int, trees: int) -> Any:
    random = np.random.default_rng(seed)
    each = most // len(examples) + 1
    picks = [random.permutation(len(one.rows))[:each] for one in examples]
    rows = np.concatenate([one.rows[pick] for one, pick in zip(examples, picks, strict=True)])
    truth = [one.covers[order][pick] for one, pick in zip(examples, picks, strict=True)]
    return fit_classifier(rows, np.concatenate(truth), seed, trees)


def _trial(learnt: list[Example], checked: list[Example], order: Order, seed: int) -> float:
    """Return how far off a small model is: masks that are read the wrong way are hard to learn."""
    model = _fit(learnt[:40], order, seed, most=TRIAL_PIXELS, trees=20)
    errors = [((predict(model, one.rows) - one.covers[order]) ** 2).mean() for one in checked[:40]]
    return float(np.mean(errors))


def _mean_dice(
    chances: list[np.ndarray], covers: list[np.ndarray], threshold: float, smallest: float
) -> float:
    scores = []
    for chance, cover in zip(chances, covers, strict=True):
        mask = chance >= threshold
        mask = mask if mask.mean() > smallest else np.zeros_like(mask)
        size = mask.sum() + cover.sum()
        scores.append(2 * (mask & cover).sum() / size if size else 1.0)
    return float(np.mean(scores))


def _fill(
    workspace: Workspace,
    submission: Submission,
    column: str,
    asked: list[tuple[Painter | None, MediaFile | None]],
    none: str | None,
) -> None:
    """Hand in masks, some first, while there is time."""
    cells = submission.table[column].astype(object).to_numpy().copy()
    saved = time.monotonic()
    for row, (painter, file) in enumerate(asked):
        if painter is None or file is None or workspace.seconds_left < 0:
            continue
        try:
            mask = painter.paint(file.read())
        except Exception:  # decoders raise whatever a broken file drives them to
            continue
        cells[row] = mask or (cells[row] if none is None else none)
        if time.monotonic() - saved > SAVE_EVERY:
            submission.replace(column, cells)
            saved = time.monotonic()
    submission.replace(column, cells)
