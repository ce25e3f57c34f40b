"""Distances of volumes, however they are found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import directed_hausdorff

from pytest_mlebench.grading.metrics import voxels


@pytest.mark.parametrize("share", [0.001, 0.02, 0.5, 1])
@pytest.mark.parametrize("searched", [0, 1])
def test_the_farthest_voxel_is_the_same_searched_or_transformed(
    share: float, searched: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    here, there = random.random((2, 9, 14, 12)) < [[[[0.3]]], [[[0.05]]]]
    here &= random.random(here.shape) < share
    here[0, 0, 0] = True
    there[2:6, 3:9, 4:9] = True
    monkeypatch.setattr(voxels, "SMALL", 0)
    monkeypatch.setattr(voxels, "SEARCHED_SHARE", searched)
    mine, theirs = (np.argwhere(volume) / volume.shape for volume in (here, there))
    expected = max(directed_hausdorff(mine, theirs)[0], directed_hausdorff(theirs, mine)[0])
    assert voxels.hausdorff(here, there) == pytest.approx(expected, rel=1e-12)
