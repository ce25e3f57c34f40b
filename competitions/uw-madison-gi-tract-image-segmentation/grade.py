"""Mean Dice of the masks, weighted 0.4, and 3D Hausdorff distance of the scans, weighted 0.6."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.grading.metrics.boxes import pairs_of
from pytest_mlebench.grading.metrics.masks import (
    Masks,
    check_masks,
    overlap,
    read_masks,
    true_masks,
)
from pytest_mlebench.grading.metrics.voxels import hausdorff
from pytest_mlebench.grading.tokens import as_texts

GRADE_CHECKS = True
DICE_WEIGHT, DISTANCE_WEIGHT = 0.4, 0.6
TOO_MANY = 10  # so many times the true voxels are as far off as can be
SMALL_PAIRS = 4_000  # of a true and a given voxel, all of which are compared at once
SCANS_AT_ONCE = 1_000

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, int, int]


def check(submission: pd.DataFrame) -> None:
    """Refuse masks that cannot be decoded."""
    check_masks(_names(submission), submission["predicted"])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the weighted mean of both parts; what is empty on both sides is left out."""
    scan_of, _ = pd.factorize(np.array(_scan_names(answers["id"]), dtype=object))
    by_scan = np.argsort(scan_of, kind="stable")
    answers, submission = answers.iloc[by_scan], submission.iloc[by_scan]
    width, height = (answers[f"image_{side}"].to_numpy(dtype=int) for side in ("width", "height"))
    truth = true_masks(_lazy_names(answers), answers["predicted"]).within(width * height)
    masks = read_masks(_lazy_names(submission), as_texts(submission["predicted"]))
    masks = masks.within(width * height)
    overlaps = overlap(truth, masks).dice(np.nan)
    slices = pd.factorize(answers["id"], sort=True)[0]  # those of a scan follow each other
    ends = np.cumsum(np.bincount(scan_of))
    begins = np.append(0, ends[:-1])
    depth = slices - np.repeat(np.minimum.reduceat(slices, begins), ends - begins)
    # pixels are numbered down the columns, so a slice is an array of columns
    depths = np.maximum.reduceat(depth, begins) + 1
    scans_of_rows = _Scans(
        begins, ends, depth, np.stack([depths, width[begins], height[begins]], axis=1)
    )
    distances = scans_of_rows.distances(truth, masks)
    return DICE_WEIGHT * _mean(overlaps) + DISTANCE_WEIGHT * (1 - _mean(distances))


def _names(table: pd.DataFrame) -> pd.Series[str]:
    return table["id"] + " " + table["class"]


def _lazy_names(table: pd.DataFrame) -> Iterator[str]:
    """Yield the same: they are needed only if one is to be named."""
    return map(" ".join, zip(table["id"], table["class"], strict=True))


def _scan_names(ids: Iterable[str]) -> list[str]:
    return [name.partition("_slice_")[0] for name in ids]


def _mean(values: Array) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else np.nan


@dataclass(frozen=True)
class _Scans:
    """Which rows each scan has, the depth of each row, and the shape of each scan."""

    begins: Array
    ends: Array
    depth: Array
    shapes: Array

    def distances(self, truth: Masks, masks: Masks) -> Array:
        """Return the distance of each scan: of small ones many at once."""
        pairs = np.multiply(*(np.add.reduceat(each.sizes, self.begins) for each in (truth, masks)))
        found = np.empty(len(self.begins))
        for scan in np.flatnonzero(pairs > SMALL_PAIRS):
            rows, shape = slice(self.begins[scan], self.ends[scan]), tuple(self.shapes[scan])
            volumes = (
                _volume(side.of_rows(rows.start, rows.stop), self.depth[rows], shape)
                for side in (truth, masks)
            )
            found[scan] = _hausdorff(*volumes)
        for start in range(0, len(found), SCANS_AT_ONCE):
            scans = np.arange(start, min(start + SCANS_AT_ONCE, len(found)))
            small = scans[pairs[scans] <= SMALL_PAIRS]
            if len(small):
                found[small] = self._small(small, truth, masks)
        return found

    def _small(self, scans: Array, truth: Masks, masks: Masks) -> Array:
        """Return the distances of scans with few voxels, each compared with each."""
        first, last = self.begins[scans[0]], self.ends[scans[-1]]
        number = np.full(len(self.begins), -1)
        number[scans] = np.arange(len(scans))
        scan = np.repeat(number, self.ends - self.begins)[first:last]
        chosen = scan >= 0
        shapes, scan, depth = self.shapes[scans], scan[chosen], self.depth[first:last][chosen]
        parts = (side.of_rows(first, last).where(chosen) for side in (truth, masks))
        return _small_distances(*(_Voxels.of(part, scan, depth, shapes) for part in parts), shapes)


@dataclass(frozen=True)
class _Voxels:
    """The voxels of many scans, one scan after the other: a number for each, and where it is."""

    numbers: Array
    scans: Array
    places: Array  # on each of the three axes, relative to the size of the scan

    @classmethod
    def of(cls, masks: Masks, scan: Array, depth: Array, shapes: Array) -> _Voxels:
        """Return the voxels that are in any mask: the classes of a slice are merged."""
        sizes = shapes.prod(axis=1)
        begins = np.cumsum(sizes) - sizes
        area, height = shapes[:, 1] * shapes[:, 2], shapes[:, 2]
        pixels = masks.pixels()
        offsets = begins[scan] + depth * area[scan]
        numbers = np.unique(pixels.values + np.repeat(offsets, pixels.counts))
        scans = np.searchsorted(begins, numbers, side="right") - 1
        deep, flat = np.divmod(numbers - begins[scans], area[scans])
        places = np.stack([deep, *np.divmod(flat, height[scans])])
        return cls(numbers, scans, places / shapes[scans].T)

    def missing_in(self, other: _Voxels) -> _Voxels:
        """Return the voxels that another does not have."""
        alone = ~np.isin(self.numbers, other.numbers, assume_unique=True)
        return _Voxels(self.numbers[alone], self.scans[alone], self.places[:, alone])


def _small_distances(truth: _Voxels, masks: _Voxels, shapes: Array) -> Array:
    """Return the distance of the two volumes of each scan, relative to the diagonal."""
    true, given = (np.bincount(each.scans, minlength=len(shapes)) for each in (truth, masks))
    farthest = np.zeros(len(shapes))
    for here, there in ((truth, masks), (masks, truth)):
        alone = here.missing_in(there)
        nearest = np.full(len(alone.numbers), np.inf)
        for some, others in pairs_of(alone.scans, there.scans):
            squares = np.zeros(len(some))
            for mine, theirs in zip(alone.places, there.places, strict=True):
                squares += (mine[some] - theirs[others]) ** 2
            firsts = np.flatnonzero(np.diff(some, prepend=-1))
            least = np.minimum.reduceat(squares, firsts)
            nearest[some[firsts]] = np.minimum(nearest[some[firsts]], least)
        np.maximum.at(farthest, alone.scans, nearest)
    distances = np.sqrt(farthest) / np.sqrt(3)
    distances[(true == 0) | (given == 0) | (given > TOO_MANY * true)] = 1.0
    distances[(true == 0) & (given == 0)] = np.nan
    return distances


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
    return float(hausdorff(truth, mask) / np.sqrt(3))
