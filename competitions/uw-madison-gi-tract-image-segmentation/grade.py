"""Mean Dice of the masks, weighted 0.4, and 3D Hausdorff distance of the scans, weighted 0.6."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.grading.metrics.masks import (
    Masks,
    check_masks,
    overlap,
    read_masks,
    true_masks,
)
from pytest_mlebench.grading.tokens import as_texts

GRADE_CHECKS = True
DICE_WEIGHT, DISTANCE_WEIGHT = 0.4, 0.6
TOO_MANY = 10  # so many times the true voxels are as far off as can be
SMALL = 10_000  # voxels, whose distances are transformed before a search has begun
SEARCHED_SHARE = 1 / 8  # of all voxels; to search for more takes longer than to transform all

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, int, int]


def check(submission: pd.DataFrame) -> None:
    """Refuse masks that cannot be decoded."""
    check_masks(_names(submission), submission["predicted"])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the weighted mean of both parts; what is empty on both sides is left out."""
    scan_of, scans = pd.factorize(answers["id"].str.split("_slice_").str[0])
    by_scan = np.argsort(scan_of, kind="stable")
    answers, submission = answers.iloc[by_scan], submission.iloc[by_scan]
    width, height = (answers[f"image_{side}"].to_numpy(dtype=int) for side in ("width", "height"))
    truth = true_masks(_names(answers), answers["predicted"]).within(width * height)
    masks = read_masks(_names(submission), as_texts(submission["predicted"]))
    masks = masks.within(width * height)
    overlaps = overlap(truth, masks).dice(np.nan)
    slices = pd.factorize(answers["id"], sort=True)[0]  # those of a scan follow each other
    distances, begin = np.empty(len(scans)), 0
    for scan, rows in enumerate(np.bincount(scan_of)):
        end = begin + rows
        depth = slices[begin:end] - slices[begin:end].min()
        # pixels are numbered down the columns, so a slice is an array of columns
        shape = (int(depth.max()) + 1, int(width[begin]), int(height[begin]))
        volumes = (_volume(side.of_rows(begin, end), depth, shape) for side in (truth, masks))
        distances[scan] = _hausdorff(*volumes)
        begin = end
    return DICE_WEIGHT * _mean(overlaps) + DISTANCE_WEIGHT * (1 - _mean(distances))


def _names(table: pd.DataFrame) -> pd.Series[str]:
    return table["id"] + " " + table["class"]


def _mean(values: Array) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else np.nan


def _volume(masks: Masks, depth: Array, shape: Shape) -> Array:
    """Return which voxels are in any mask: the classes of a slice are merged."""
    volume = np.zeros(shape, dtype=bool)
    pixels = masks.pixels()
    volume.ravel()[pixels.values + np.repeat(depth * shape[1] * shape[2], pixels.counts)] = True
    return volume


def _hausdorff(truth: Array, mask: Array) -> float:
    """Return the distance of two volumes, relative to the diagonal."""
    true_voxels, voxels = np.count_nonzero(truth), np.count_nonzero(mask)
    if not true_voxels and not voxels:
        return np.nan
    if not true_voxels or not voxels or voxels > TOO_MANY * true_voxels:
        return 1.0
    spacing = 1 / np.array(truth.shape)
    box = _box(truth | mask)
    truth, mask = truth[box], mask[box]
    farthest = max(_directed(truth, mask, spacing), _directed(mask, truth, spacing))
    return float(farthest / np.sqrt(3))


def _box(volume: Array) -> tuple[slice, ...]:
    """Return the smallest box with all voxels of a volume."""
    places = [np.flatnonzero(volume.any(axis=others)) for others in ((1, 2), (0, 2), (0, 1))]
    return tuple(slice(place[0], place[-1] + 1) for place in places)


def _directed(here: Array, there: Array, spacing: Array) -> float:
    """Return how far the farthest voxel of the one volume is from the other."""
    from scipy import ndimage, spatial  # late on purpose: a mere check needs none of it

    apart = here & ~there
    count = np.count_nonzero(apart)
    if not count:
        return 0.0
    if apart.size < SMALL or count > SEARCHED_SHARE * apart.size:
        return float(ndimage.distance_transform_edt(~there, sampling=spacing)[apart].max())
    near = np.argwhere(_surface(there)) * spacing
    tree = spatial.cKDTree(near, balanced_tree=False, compact_nodes=False)
    return float(tree.query(np.argwhere(apart) * spacing)[0].max())


def _surface(volume: Array) -> Array:
    """Return the voxels with a neighbour outside: one of them is the nearest to what is outside."""
    inner = np.zeros_like(volume)
    core = volume[1:-1, 1:-1, 1:-1].copy()
    for axis in range(volume.ndim):
        for side in (slice(None, -2), slice(2, None)):
            neighbours = [slice(1, -1)] * volume.ndim
            neighbours[axis] = side
            core &= volume[tuple(neighbours)]
    inner[1:-1, 1:-1, 1:-1] = core
    return volume & ~inner
