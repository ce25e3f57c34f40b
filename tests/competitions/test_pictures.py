"""What competitions of masks and boxes say of a broken raw tree and of impossible predictions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from golden_pack import Pack

from pytest_mlebench import InvalidSubmission, load_competition
from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import read_records

LYFT = "3d-object-detection-for-autonomous-vehicles"
CONTRAILS = "google-research-identify-contrails-reduce-global-warming"
UW_MADISON = "uw-madison-gi-tract-image-segmentation"
VESUVIUS = "vesuvius-challenge-ink-detection"
VINBIGDATA = "vinbigdata-chest-xray-abnormalities-detection"


def _rewrite(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text()))


def _forget_objects(raw: Path) -> None:
    table = pd.read_csv(raw / "train.csv")
    table.assign(PredictionString="").to_csv(raw / "train.csv", index=False)


def _forget_annotations(raw: Path) -> None:
    (raw / "train_data" / "sample_annotation.json").write_text("[]")


def _rename_key(raw: Path) -> None:
    _rewrite(raw / "train_data" / "sample.json", lambda text: text.replace("scene_token", "scene"))


def _lose_slices(raw: Path) -> None:
    for path in raw.glob("train/*/*/scans/slice_0001_*"):
        path.unlink()


def _cut_masks(raw: Path) -> None:
    for path in raw.glob("train/*/human_pixel_masks.npy"):
        path.write_bytes(path.read_bytes()[:-10])


@pytest.mark.parametrize(
    ("competition_id", "damage", "message"),
    [
        (LYFT, _forget_objects, r"train.csv: the test sample \w+ has no objects"),
        (LYFT, _forget_annotations, r"instance \w+ has no annotation"),
        (LYFT, _rename_key, r"sample.json: entry 0 has no 'scene_token'"),
        (
            CONTRAILS,
            lambda raw: (raw / "train_metadata.json").write_text("{}"),
            r"train_metadata.json is not a list of records",
        ),
        (CONTRAILS, _cut_masks, r"human_pixel_masks.npy cannot be read"),
        (
            "hubmap-kidney-segmentation",
            lambda raw: _rewrite(raw / "train.csv", lambda text: text[: text.index("\n", 200)]),
            r"train.csv has \d rows, expected 15",
        ),
        (UW_MADISON, _lose_slices, r"train has no picture of slice \w+_slice_0001"),
        (
            VESUVIUS,
            lambda raw: (raw / "train/3/ir.png").write_bytes(b"GIF89a, not PNG at all"),
            r"ir.png is not a PNG picture, it begins with b'GIF89a, '",
        ),
        (
            VESUVIUS,
            lambda raw: (raw / "train/3/inklabels_rle.csv").write_text(
                "Id,Predicted\n3,1 2\n3,5 1\n"
            ),
            r"inklabels_rle.csv has 2 rows, expected one",
        ),
        (
            VINBIGDATA,
            lambda raw: _rewrite(raw / "train.csv", lambda text: text.replace(".0,", ".x,")),
            r"train.csv cannot be read: .*\.x",
        ),
    ],
)
def test_a_broken_raw_tree_is_one_error_that_names_the_file(
    competition_id: str, damage: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    raw = Pack(competition_id).unpack("raw", tmp_path)
    damage(raw)
    with pytest.raises(PreparationError, match=rf"^{competition_id}: .*{message}"):
        load_competition(competition_id).prepare(raw, tmp_path / "public", tmp_path / "private")
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


@pytest.mark.parametrize(
    ("competition_id", "prediction", "message"),
    [
        (
            "siim-covid19-detection",
            "negative nan 0 0 1 1",
            "a confidence must be a finite number, given: nan for id {id}",
        ),
        (VINBIGDATA, "inf 1 0 0 1 1", "a class must be a finite number, given: inf for id {id}"),
        (
            LYFT,
            "1 2387 2529 -24 4 nan 4 3 {class}",
            "a box must have numbers, given: 1 2387 2529 -24 4 nan 4 3 for id {id}",
        ),
        (
            LYFT,
            "1 2387 2529 -24 4 4 0 3 {class}",
            "the sizes of a box must be positive, given: 1 2387 2529 -24 4 4 0 3 for id {id}",
        ),
        (
            LYFT,
            "1 2387 inf -24 4 4 4 3 {class}",
            "a box is too large or too far away, given: 1 2387 inf -24 4 4 4 3 for id {id}",
        ),
    ],
)
def test_an_impossible_prediction_is_named(
    competition_id: str, prediction: str, message: str, tmp_path: Path
) -> None:
    competition = load_competition(competition_id)
    private = Pack(competition_id).unpack("private", tmp_path)
    gold = pd.read_csv(private / (competition.gold or competition.answers))
    facts = {"id": gold.iloc[0, 0], "class": gold.iloc[0, 1].split()[-1]}
    gold.iloc[0, 1] = prediction.format(**facts)
    gold.to_csv(tmp_path / "submission.csv", index=False)
    with pytest.raises(InvalidSubmission) as caught:
        competition.score(tmp_path / "submission.csv", private)
    assert str(caught.value) == message.format(**facts)


def test_volumes_are_compared_slice_by_slice(tmp_path: Path) -> None:
    answers = pd.DataFrame(
        [(f"case1_day1_slice_{n:04}", c) for n in (1, 2, 3, 4) for c in ("stomach", "small_bowel")],
        columns=["id", "class"],
    ).assign(predicted="", image_width=2.0, image_height=2.0)
    answers.loc[0, "predicted"] = "1 1"  # one pixel, on the first slice
    (tmp_path / "private").mkdir()
    answers.to_csv(tmp_path / "private" / "test.csv", index=False)
    guess = answers.assign(predicted="")[["id", "class", "predicted"]]
    guess.loc[4, "predicted"] = "1 1"  # the same pixel two slices, half the depth, away
    guess.to_csv(tmp_path / "guess.csv", index=False)
    score = load_competition(UW_MADISON).score(tmp_path / "guess.csv", tmp_path / "private")
    assert score == pytest.approx(0.6 * (1 - 0.5 / 3**0.5))


@pytest.mark.parametrize("density", [0.0, 0.02, 0.2])
def test_distances_of_scans_are_the_same_at_once_or_one_by_one(
    density: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    grader = load_competition(UW_MADISON).grader
    random = np.random.default_rng(0)
    places = [(scan, part) for scan in range(12) for part in range(3 + scan % 2)]
    shape = {scan: (5 + scan % 3, 4 + scan % 4) for scan in range(12)}
    answers, guess = (
        pd.DataFrame(
            {
                "id": [f"case{scan}_day0_slice_{part:04}" for scan, part in places],
                "class": "stomach",
                "predicted": [
                    " ".join(
                        f"{pixel + 1} 1"
                        for pixel in range(shape[scan][0] * shape[scan][1])
                        if scan != empty and random.random() < share
                    )
                    for scan, _ in places
                ],
                "image_width": [shape[scan][0] for scan, _ in places],
                "image_height": [shape[scan][1] for scan, _ in places],
            }
        )
        for share, empty in ((0.1, 3), (density, 5))
    )
    order = random.permutation(len(places))
    answers, guess = answers.iloc[order], guess.iloc[order]
    scores = []
    for most in (-1, 20, 10**9):
        monkeypatch.setattr(grader, "SMALL_PAIRS", most)
        for at_once in (1, 5, 100):
            monkeypatch.setattr(grader, "SCANS_AT_ONCE", at_once)
            scores.append(grader.grade(guess, answers))
    assert scores == pytest.approx([scores[0]] * len(scores), rel=1e-12)


def test_damaged_records_are_named(tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    path.write_text(json.dumps([{"a": 1, "b": 2}, {"b": 3}]))
    assert len(read_records(path, needs=["b"])) == 2
    with pytest.raises(PreparationError, match=r"records.json: entry 1 has no 'a'"):
        read_records(path, needs=["a"])


def test_the_first_image_says_which_box_is_the_very_first(tmp_path: Path) -> None:
    """A truth that this box takes stays free, so a second box on it is no false alarm."""
    box = [10.0, 10.0, 50.0, 50.0]
    truth = pd.DataFrame(
        [[image, 3, *box] for image in ("a", "b", "c")],
        columns=["image_id", "class_id", "x_min", "y_min", "x_max", "y_max"],
    )
    truth.to_csv(tmp_path / "answers.csv", index=False)
    twice = " ".join(f"3 {sure} 10 10 50 50" for sure in (0.9, 0.8))
    missed = "3 0.1 900 900 10 10"
    scores = []
    for order, doubled in (("abc", "c"), ("cab", "c"), ("abc", "a"), ("cab", "a")):
        rows = dict.fromkeys("abc", missed) | {doubled: twice}
        table = pd.DataFrame({"image_id": [*order], "PredictionString": [rows[k] for k in order]})
        table.to_csv(tmp_path / "submission.csv", index=False)
        competition = load_competition(VINBIGDATA)
        scores.append(competition.score(tmp_path / "submission.csv", tmp_path))
    assert scores[0] == scores[1]
    assert scores[2] == scores[3] != scores[0]


def test_findings_without_a_reader_are_kept(tmp_path: Path) -> None:
    raw = Pack(VINBIGDATA).unpack("raw", tmp_path)
    table = pd.read_csv(raw / "train.csv")
    table.assign(rad_id=None).to_csv(raw / "train.csv", index=False)
    load_competition(VINBIGDATA).prepare(raw, tmp_path / "public", tmp_path / "private")
    assert (pd.read_csv(tmp_path / "private" / "answers.csv")["rad_id"] == 0).all()
