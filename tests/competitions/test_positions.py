"""Distances between positions, also where rounding leaves them undefined."""

from __future__ import annotations

import warnings
from pathlib import Path

import pandas as pd
import pytest

from pytest_mlebench import InvalidSubmission, load_competition

PHONES = load_competition("smartphone-decimeter-2022")
HERE = pd.DataFrame(
    {
        "tripId": ["drive-phone"] * 3,
        "UnixTimeMillis": [1, 2, 3],
        "LatitudeDegrees": [35.680446] * 3,
        "LongitudeDegrees": [-120.372017] * 3,
    }
)


def _score(folder: Path, first: tuple[float, float]) -> float:
    """Return the score of a submission that is right but for its first position."""
    given = HERE.copy()
    given.loc[0, ["LatitudeDegrees", "LongitudeDegrees"]] = first
    HERE.to_csv(folder / "test.csv", index=False)
    given.to_csv(folder / "submission.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return PHONES.score(folder / "submission.csv", folder)


def test_whole_turns_make_no_difference(tmp_path: Path) -> None:
    assert _score(tmp_path, (35.680446, -120.372017 + 360)) == pytest.approx(0, abs=1e-6)


def test_a_distance_that_is_not_defined_is_not_skipped(tmp_path: Path) -> None:
    with pytest.raises(InvalidSubmission, match="not a finite number"):
        _score(tmp_path, (144.31955399999998, 59.627983))  # the same place over the pole
