"""The baseline agent paints masks and cleans pictures, pixel by pixel."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from baseline_agent import Home, imported
from drawings import encode


@pytest.fixture
def masks() -> Iterator[ModuleType]:
    with imported("masks") as (module,):
        yield module


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_mask_is_read_as_it_was_written(masks: ModuleType, order: str, first: int) -> None:
    mask = np.random.default_rng(0).random((7, 9)) < 0.4
    runs = masks.encode_runs(mask, order=order, first=first)
    read = masks.decode_runs(runs, 7, 9, order=order, first=first)
    np.testing.assert_array_equal(read, mask)


def test_runs_are_pairs_of_a_pixel_and_a_length(masks: ModuleType) -> None:
    assert masks.encode_runs(np.array([[0, 1, 1], [1, 0, 1]]), order="C", first=1) == "2 3 6 1"
    assert masks.encode_runs(np.array([[0, 1, 1], [1, 0, 1]]), order="F", first=1) == "2 2 5 2"
    assert masks.encode_runs(np.zeros((2, 2)), order="F", first=1) == ""


@pytest.mark.parametrize("cell", ["", "1", "1 0", "1 2 2 1", "a b", "1.5 2", "-1 2"])
def test_other_cells_are_no_runs(masks: ModuleType, cell: str) -> None:
    assert masks.are_runs(pd.Series(["1 3 9 2", "4 1"]))
    assert not masks.are_runs(pd.Series(["1 3 9 2", cell]))
    assert not masks.are_runs(pd.Series([], dtype=str))


def blob(random: np.random.Generator, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a dark picture with a bright ellipse, lying rather than standing, and its mask."""
    rows, columns = np.mgrid[0:height, 0:width]
    centre = random.uniform(0.3, 0.7, 2) * (height, width)
    radii = random.uniform(0.1, 0.15) * height, random.uniform(0.2, 0.3) * width
    mask = ((rows - centre[0]) / radii[0]) ** 2 + ((columns - centre[1]) / radii[1]) ** 2 < 1
    mask &= random.random() < 0.8  # some pictures have none
    picture = 70 + 60 * mask[..., None] + random.normal(0, 25, (height, width, 3))
    return picture.clip(0, 255).astype(np.uint8), mask


@pytest.mark.parametrize(
    ("order", "height", "width"), [("F", 40, 40), ("C", 40, 40), ("C", 150, 60)]
)
def test_masks_are_painted_in_the_order_of_the_training_table(
    home: Home, masks: ModuleType, order: str, height: int, width: int
) -> None:
    random = np.random.default_rng(0)
    pictures, truth = zip(*(blob(random, height, width) for _ in range(45)), strict=True)
    table = pd.DataFrame({"id": [f"s{i}" for i in range(45)]})
    table["rle"] = [masks.encode_runs(mask, order=order, first=1) for mask in truth]
    for row, picture in enumerate(pictures):
        folder = home.data / ("train" if row < 30 else "test") / "images"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"s{row}.png").write_bytes(encode(picture))
    home.write("train.csv", table[:30])
    home.write("sample_submission.csv", table[30:][["id"]].assign(rle="1 1"))
    log = home.run()
    said = home.submission()["rle"].fillna("")
    scores = []
    for row in range(30, 45):
        mask = masks.decode_runs(said[f"s{row}"], height, width, order=order, first=1)
        size = mask.sum() + truth[row].sum()
        scores.append(2 * (mask & truth[row]).sum() / size if size else 1.0)
    assert np.mean(scores) > 0.85
    assert f"order {order}" in log


def test_masks_of_several_kinds_in_pictures_whose_folders_are_part_of_the_name(
    home: Home, masks: ModuleType
) -> None:
    random = np.random.default_rng(0)
    rows, truth = [], {}
    for number in range(48):
        case, day, split = number % 12, number // 12, "train" if number % 12 < 8 else "test"
        picture, bright = blob(random, 24, 30)
        picture[8:16, 20:28] //= 3
        dark = np.zeros_like(bright)
        dark[8:16, 20:28] = True
        folder = home.data / split / f"case{case}" / f"case{case}_day{day}" / "scans"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "slice_0007_24_30_1.50.png").write_bytes(encode(picture))
        name = f"case{case}_day{day}_slice_0007"
        for kind, mask in (("bright", bright & ~dark), ("dark", dark)):
            rows.append((name, kind, masks.encode_runs(mask, order="F", first=1), split))
            truth[name, kind] = mask
    table = pd.DataFrame(rows, columns=["id", "class", "segmentation", "split"])
    test = table[table["split"] == "test"][["id", "class"]]
    home.write("train.csv", table[table["split"] == "train"].drop(columns="split"))
    home.write("test.csv", test)
    # in another order than the test table
    home.write("sample_submission.csv", test[::-1].assign(predicted="1 1 5 2"))
    home.run()
    said = pd.read_csv(home.path / "submission" / "submission.csv", keep_default_na=False)
    scores = []
    for name, kind, runs in said.itertuples(index=False):
        mask, true = masks.decode_runs(runs, 24, 30, order="F", first=1), truth[name, kind]
        scores.append(2 * (mask & true).sum() / max(mask.sum() + true.sum(), 1))
    assert np.mean(scores) > 0.7


def test_dirty_pictures_are_cleaned(home: Home) -> None:
    random = np.random.default_rng(0)
    rows = []
    for number in range(12):
        clean = np.full((24, 30), 255.0)
        for line in range(4, 24, 6):
            clean[line : line + 2, random.integers(0, 8) : random.integers(15, 30)] = 0
        dirt = 90 * np.sin(np.arange(30) / random.uniform(4, 8)) ** 2
        dirty = (clean * 0.7 + 60 - dirt + random.normal(0, 6, clean.shape)).clip(0, 255)
        for name, picture in (("train", dirty), ("train_cleaned", clean), ("test", dirty)):
            if (number < 9) == (name != "test"):
                (home.data / name).mkdir(exist_ok=True)
                (home.data / name / f"{number}.png").write_bytes(encode(picture.astype(np.uint8)))
        if number >= 9:
            rows += [
                (f"{number}_{y + 1}_{x + 1}", value / 255)
                for (y, x), value in np.ndenumerate(clean)
            ]
    truth = pd.DataFrame(rows, columns=["id", "value"])
    home.write("sampleSubmission.csv", truth.assign(value=1))
    home.run()
    said = home.submission().loc[truth["id"], "value"].to_numpy()
    assert said.min() >= 0
    assert said.max() <= 1
    errors = said - truth["value"].to_numpy()
    assert np.sqrt((errors**2).mean()) < 0.3 * truth["value"].std()


def test_without_time_the_sample_of_masks_is_handed_in(home: Home) -> None:
    random = np.random.default_rng(0)
    (home.data / "train").mkdir()
    (home.data / "test").mkdir()
    for row in range(30):
        folder = home.data / ("train" if row < 20 else "test")
        (folder / f"s{row}.png").write_bytes(encode(blob(random, 20, 20)[0]))
    home.write("train.csv", pd.DataFrame({"id": [f"s{i}" for i in range(20)], "rle": "5 9"}))
    sample = pd.DataFrame({"id": [f"s{i}" for i in range(20, 30)], "rle": "1 1"})
    home.write("sample_submission.csv", sample)
    log = home.run(MLE_TIME_LIMIT_SECS="0.001")
    assert (home.submission()["rle"] == "1 1").all()
    assert "too few pictures can be read: the sample must do" in log
