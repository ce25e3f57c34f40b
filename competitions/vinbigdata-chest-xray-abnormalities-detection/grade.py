"""Mean over classes of the COCO average precision at IoU 0.4, as the reference computes it.

Two oddities of the reference shape every score and are kept: x_max and y_max are taken for width
and height where overlaps are measured, and number 0 stands for "no match", so that a match with
the very first answer is a false alarm and a truth that the very first prediction takes stays free.
The order of the rows does not matter: images are gone through in the order of their ids, and the
very first prediction is that of the first image.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission
from pytest_mlebench._csv import read_frame
from pytest_mlebench.grading.metrics.boxes import Boxes, BoxFormat, joined, precision_recall

GRADE_CHECKS = True
FORMAT = BoxFormat(6, label=None)
COORDINATES = ["x_min", "y_min", "x_max", "y_max"]
COLUMNS = ["class_id", "confidence", *COORDINATES]
TRUTH = ["class_id", *COORDINATES]
GROUP = ["image", "class_id"]
IOU = 0.4
MOST_BOXES = 100  # of an image and class, the surest ones
LARGEST_AREA = 1e10
RECALLS = np.linspace(0, 1, 101)
_NOTHING = (np.empty(0, np.int32), np.empty(0, np.uint64), np.empty((0, 6)))

Array = np.ndarray[Any, np.dtype[Any]]


def read_answers(private: Path) -> pd.DataFrame:
    """Return a row for each image, with the numbers of its true boxes."""
    truth = read_frame(private / "answers.csv", dtype={"image_id": str})
    codes, images = pd.factorize(truth["image_id"], sort=True)
    numbers = truth[TRUTH].to_numpy(np.float64)[np.argsort(codes, kind="stable")]
    ends = np.cumsum(np.bincount(codes)).tolist()
    boxes = [numbers[start:end] for start, end in itertools.pairwise((0, *ends))]
    return pd.DataFrame({"image_id": images, "boxes": boxes})


def check(submission: pd.DataFrame) -> None:
    """Refuse predictions that are not groups of six numbers, the first a finite one."""
    for _ in _portions(submission):
        pass


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean over the classes of the answers."""
    truth = _truth(answers)
    truth["ignored"] = _is_out_of_range(truth)
    boxes = _matched(_boxes(submission, truth["class_id"].unique()), truth)
    counted = boxes[~boxes["ignored"]]
    hits = {name: part["hit"].to_numpy() for name, part in counted.groupby("class_id")}
    totals = truth[~truth["ignored"]].groupby("class_id").size()
    scores = [_precision(hits[name], n) if name in hits else 0.0 for name, n in totals.items()]
    return float(np.mean(scores))


def _truth(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the true boxes, numbered from 0 in the order of the images."""
    boxes = answers["boxes"].tolist()
    numbers = np.concatenate(boxes)
    frame = pd.DataFrame(numbers, columns=TRUTH).assign(number=np.arange(len(numbers)))
    return frame.assign(image=np.repeat(np.arange(len(boxes)), list(map(len, boxes))))


def _boxes(table: pd.DataFrame, classes: Array) -> pd.DataFrame:
    """Return the boxes of a submission, numbered from 0 in the order of the images.

    Of very many in an image only those of these classes that may count.
    """
    parts, places = [Boxes(*_NOTHING)], [np.empty(0, dtype=np.int64)]
    done = 0
    for boxes in _portions(table):
        place = np.arange(done, done + len(boxes.rows))
        done += len(boxes.rows)
        if boxes.is_dense(MOST_BOXES):
            chosen = _surest(boxes, classes)
            boxes, place = boxes.where(chosen), place[chosen]  # noqa: PLW2901  # the rest is over
        parts.append(boxes)
        places.append(place)
    found = joined(parts)
    frame = pd.DataFrame(found.numbers, columns=COLUMNS).assign(image=found.rows)
    frame["class_id"] = np.trunc(frame["class_id"]) + 0.0  # no negative zero
    return frame.assign(number=np.concatenate(places))


def _portions(table: pd.DataFrame) -> Iterator[Boxes]:
    for boxes in FORMAT.portions(table["image_id"], table["PredictionString"]):
        classes = boxes.numbers[:, 0]
        wrong = np.flatnonzero(~np.isfinite(classes))
        if len(wrong):
            raise InvalidSubmission(
                f"a class must be a finite number, given: {classes[wrong[0]]} "
                f"for id {table['image_id'].iloc[boxes.rows[wrong[0]]]}"
            )
        yield boxes


def _surest(boxes: Boxes, classes: Array) -> Array:
    """Return which may be among the surest ones of their image and class."""
    named = np.trunc(boxes.numbers[:, 0])
    known = np.flatnonzero(np.isin(named, classes))
    order = known[np.argsort(-boxes.numbers[known, 1], kind="stable")]
    groups = pd.DataFrame({"image": boxes.rows[order], "class_id": named[order]})
    return np.sort(order[groups.groupby(GROUP).cumcount().to_numpy() < MOST_BOXES])


def _matched(boxes: pd.DataFrame, truth: pd.DataFrame) -> pd.DataFrame:
    """Return the boxes that count, the surest first, with what became of them.

    An image has one truth of a class at most, and the first box that meets it takes it.
    """
    boxes = boxes.iloc[np.argsort(-boxes["confidence"].to_numpy(), kind="stable")]
    boxes = boxes[boxes.groupby(GROUP).cumcount() < MOST_BOXES]
    pairs = boxes.merge(truth, on=GROUP, how="left", suffixes=("", "_true"), validate="m:1")
    meets = pairs["number_true"].notna() & ~(_iou(pairs) < IOU)
    meeting = pairs[meets].groupby(GROUP)["number"]
    turn = meeting.cumcount().reindex(pairs.index, fill_value=-1)
    first = meeting.transform("first").reindex(pairs.index, fill_value=-1)
    takes = (turn == 0) | ((turn == 1) & (first == 0))
    pairs["hit"] = takes & (pairs["number_true"] != 0)
    pairs["ignored"] = takes & pairs["ignored"].eq(True) | ~pairs["hit"] & _is_out_of_range(pairs)
    return pairs


def _iou(pairs: pd.DataFrame) -> Array:
    """Return intersection over union, with x_max for the width and y_max for the height."""
    numbers = pairs[COORDINATES].to_numpy()
    true = pairs[[f"{name}_true" for name in COORDINATES]].to_numpy()
    (start, size), (true_start, true_size) = (np.split(part, 2, axis=1) for part in (numbers, true))
    with np.errstate(all="ignore"):
        sides = np.fmin(start + size, true_start + true_size) - np.fmax(start, true_start)
        common = sides.prod(axis=1)
        shares = common / (size.prod(axis=1) + true_size.prod(axis=1) - common)
    return np.where((sides <= 0).any(axis=1), 0.0, shares)


def _is_out_of_range(boxes: pd.DataFrame) -> Array:
    area = (boxes["x_max"] - boxes["x_min"]) * (boxes["y_max"] - boxes["y_min"])
    return ((area < 0) | (area > LARGEST_AREA)).to_numpy()


def _precision(hits: Array, truths: int) -> float:
    """Return the mean precision at 101 recalls, 0 for those that are not reached."""
    precision, recall = precision_recall(hits, truths)
    places = np.searchsorted(recall, RECALLS)
    return float(np.append(precision, 0.0)[places].mean())
