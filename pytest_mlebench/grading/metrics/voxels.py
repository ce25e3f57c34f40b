"""The distance of two volumes of voxels."""

from __future__ import annotations

from typing import Any

import numpy as np

SMALL = 10_000  # voxels, whose distances are transformed before a search has begun
SEARCHED_SHARE = 1 / 8  # of all voxels; to search for more takes longer than to transform all

Array = np.ndarray[Any, np.dtype[Any]]


def hausdorff(truth: Array, mask: Array) -> float:
    """Return the distance of two volumes that are not empty, each side being 1 long."""
    spacing = 1 / np.array(truth.shape)
    box = _box(truth | mask)
    truth, mask = truth[box], mask[box]
    return max(_directed(truth, mask, spacing), _directed(mask, truth, spacing))


def _box(volume: Array) -> tuple[slice, ...]:
    """Return the smallest box with all voxels of a volume."""
    places = [np.flatnonzero(volume.any(axis=others)) for others in ((1, 2), (0, 2), (0, 1))]
    return tuple(slice(place[0], place[-1] + 1) for place in places)


def _directed(here: Array, there: Array, spacing: Array) -> float:
    """Return how far the farthest voxel of the one volume is from the other."""
    from scipy import ndimage, spatial  # late on purpose: a mere check needs none of it

    alone = here & ~there
    count = np.count_nonzero(alone)
    if not count:
        return 0.0
    if alone.size < SMALL or count > SEARCHED_SHARE * alone.size:
        return float(ndimage.distance_transform_edt(~there, sampling=spacing)[alone].max())
    near = np.argwhere(_surface(there)) * spacing
    tree = spatial.cKDTree(near, balanced_tree=False, compact_nodes=False)
    return float(tree.query(np.argwhere(alone) * spacing)[0].max())


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
