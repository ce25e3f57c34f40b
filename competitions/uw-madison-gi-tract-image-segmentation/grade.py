"""Mean Dice of the masks, weighted 0.4, and 3D Hausdorff distance of the scans, weighted 0.6."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from scipy import ndimage

from pytest_mlebench.grading.metrics.masks import Runs, dice, read_masks, true_masks

DICE_WEIGHT, DISTANCE_WEIGHT = 0.4, 0.6
TOO_MANY = 10  # so many times the true voxels are as far off as can be

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, int, int]


def check(submission: pd.DataFrame) -> None:
    """Refuse masks that cannot be decoded."""
    read_masks(_names(submission), submission["predicted"])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the weighted mean of both parts; what is empty on both sides is left out."""
    height, width = (answers[f"image_{side}"].astype(int) for side in ("height", "width"))
    rows = pd.DataFrame({"id": answers["id"], "height": height, "width": width})
    rows["truth"] = _cut(true_masks(_names(answers), answers["predicted"]), height * width)
    rows["mask"] = _cut(read_masks(_names(submission), submission["predicted"]), height * width)
    scans = rows["id"].str.split("_slice_").str[0]
    overlaps = [dice(t, m, np.nan) for t, m in zip(rows["truth"], rows["mask"], strict=True)]
    distances = [_scan_distance(scan) for _, scan in rows.groupby(scans)]
    return DICE_WEIGHT * _mean(overlaps) + DISTANCE_WEIGHT * (1 - _mean(distances))


def _names(table: pd.DataFrame) -> pd.Series[str]:
    return table["id"] + " " + table["class"]


def _cut(masks: Iterable[Runs], pixels: Iterable[int]) -> list[Runs]:
    return [mask.within(size) for mask, size in zip(masks, pixels, strict=True)]


def _mean(values: list[float]) -> float:
    defined = np.array(values)[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else np.nan


def _scan_distance(scan: pd.DataFrame) -> float:
    """Return the distance of the true and the predicted volume of one scan."""
    slices, depth = np.unique(scan["id"], return_inverse=True)
    # pixels are numbered down the columns, so a slice is an array of columns
    shape = (len(slices), int(scan["width"].iloc[0]), int(scan["height"].iloc[0]))
    return _hausdorff(_volume(scan["truth"], depth, shape), _volume(scan["mask"], depth, shape))


def _volume(masks: Iterable[Runs], depth: Array, shape: Shape) -> Array:
    """Return which voxels are in any mask: the classes of a slice are merged."""
    volume = np.zeros((shape[0], shape[1] * shape[2]), dtype=bool)
    for mask, level in zip(masks, depth, strict=True):
        volume[level, mask.pixels()] = True
    return volume.reshape(shape)


def _hausdorff(truth: Array, mask: Array) -> float:
    true_voxels, voxels = np.count_nonzero(truth), np.count_nonzero(mask)
    if not true_voxels and not voxels:
        return np.nan
    if not true_voxels or not voxels or voxels > TOO_MANY * true_voxels:
        return 1.0
    spacing = 1 / np.array(truth.shape)
    box = ndimage.find_objects((truth | mask).view(np.int8))[0]
    truth, mask = truth[box], mask[box]
    farthest = max(_directed(truth, mask, spacing), _directed(mask, truth, spacing))
    return float(farthest / np.sqrt(3))


def _directed(here: Array, there: Array, spacing: Array) -> float:
    """Return how far the farthest voxel of the one volume is from the other."""
    return float(ndimage.distance_transform_edt(~there, sampling=spacing)[here].max())
