"""The baseline agent learns from pictures, wherever they and their labels are."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from baseline_agent import Home
from drawings import KINDS, draw, encode
from sklearn.metrics import accuracy_score, f1_score, log_loss, mean_squared_error

TRAIN, TEST = 90, 45


@pytest.fixture
def pictures() -> pd.DataFrame:
    """Return pictures with an id and a kind; the first are to be learnt from."""
    random = np.random.default_rng(0)
    kinds = random.permutation(KINDS * ((TRAIN + TEST) // 3))
    ids = [f"{number:04x}" for number in random.permutation(5000)[: len(kinds)]]
    contents = [encode(draw(kind, random)) for kind in kinds]
    return pd.DataFrame({"id": ids, "kind": kinds, "content": contents})


def write_files(folder: Path, names: pd.Series, contents: pd.Series) -> None:
    for name, content in zip(names, contents, strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def write_folders(home: Home, pictures: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    train, test = pictures[:TRAIN], pictures[TRAIN:]
    write_files(home.data / "train_images", train["id"] + ".png", train["content"])
    write_files(home.data / "test_images", test["id"] + ".png", test["content"])
    return train, test


def test_labels_in_a_table(home: Home, pictures: pd.DataFrame) -> None:
    train, test = write_folders(home, pictures)
    home.write("train.csv", train[["id", "kind"]])
    home.write("sample_submission.csv", test[["id"]].assign(kind="rings"))
    log = home.run()
    said = home.submission().loc[test["id"], "kind"]
    assert accuracy_score(test["kind"], said) > 0.8
    assert "the rows have files: 90 to learn from, 45 to predict" in log
    home.run()
    assert said.equals(home.submission().loc[test["id"], "kind"])


def test_probabilities_from_archives_some_of_whose_pictures_are_broken(
    home: Home, pictures: pd.DataFrame
) -> None:
    contents = pictures["content"].where(np.arange(len(pictures)) % 10 > 0, b"\x89PNG broken")
    train, test = pictures[:TRAIN], pictures[TRAIN:]
    for name, part in (("train", train), ("test", test)):
        with zipfile.ZipFile(home.data / f"{name}.zip", "w") as archive:
            for row in part.index:
                archive.writestr(f"{name}/{pictures['id'][row]}.png", contents[row])
    home.write("train.csv", train[["id", "kind"]].assign(id=train["id"] + ".png"))
    sample = test[["id"]].assign(id=test["id"] + ".png", checks=0.3, rings=0.3, stripes=0.4)
    home.write("sample_submission.csv", sample)
    home.run()
    said = home.submission().loc[test["id"] + ".png"]
    assert log_loss(test["kind"], said[list(KINDS)]) < 0.6 * np.log(3)


def test_labels_in_the_names_of_folders(home: Home, pictures: pd.DataFrame) -> None:
    train, test = pictures[:TRAIN], pictures[TRAIN:]
    write_files(home.data / "train", train["kind"] + "/" + train["id"] + ".png", train["content"])
    write_files(home.data / "test", test["id"] + ".png", test["content"])
    sample = test[["id"]].assign(id=test["id"] + ".png", species="none")
    home.write("sample_submission.csv", sample)
    home.run()
    said = home.submission().loc[test["id"] + ".png", "species"]
    assert accuracy_score(test["kind"], said) > 0.8


def test_the_probability_of_a_label_in_the_names_of_files(
    home: Home, pictures: pd.DataFrame
) -> None:
    two = pictures[pictures["kind"] != "rings"].reset_index(drop=True)
    two["id"] = [str(number) for number in range(len(two))]
    train, test = two[:60], two[60:]
    write_files(home.data / "train", train["kind"] + "." + train["id"] + ".png", train["content"])
    write_files(home.data / "test", test["id"] + ".png", test["content"])
    home.write("sample_submission.csv", test[["id"]].assign(label=0.5))
    home.run()
    said = home.submission().loc[test["id"], "label"].to_numpy()
    assert log_loss(test["kind"], said) < 0.5 * np.log(2)


def test_annotations_that_list_pictures_and_categories(home: Home, pictures: pd.DataFrame) -> None:
    train, test = pictures[:TRAIN], pictures[TRAIN:]
    for name, part in (("train", train), ("test", test)):
        write_files(home.data / name / "images", part["id"] + ".png", part["content"])
        images = [
            {"id": row, "file_name": f"images/{pictures['id'][row]}.png", "license": 1}
            for row in part.index
        ]
        content: dict[str, object] = {"images": images, "info": {"year": 2020}}
        if name == "train":
            content["annotations"] = [
                {"image_id": row, "category_id": 70 + 10 * KINDS.index(kind)}
                for row, kind in part["kind"].items()
            ]
        (home.data / name / "metadata.json").write_text(json.dumps(content))
    home.write("sample_submission.csv", pd.DataFrame({"id": test.index, "Predicted": 0}))
    home.run()
    said = home.submission().loc[test.index.astype(str), "Predicted"]
    assert set(said) <= {70, 80, 90}
    assert accuracy_score([70 + 10 * KINDS.index(kind) for kind in test["kind"]], said) > 0.8


def test_a_ranking_of_labels(home: Home, pictures: pd.DataFrame) -> None:
    train, test = write_folders(home, pictures)
    home.write("train.csv", train[["id", "kind"]])
    home.write("sample_submission.csv", test[["id"]].assign(kind="checks rings"))
    home.run()
    said = home.submission().loc[test["id"], "kind"].str.split(expand=True)
    assert said.shape[1] == 2
    first, second = (said[i].to_numpy() == test["kind"].to_numpy() for i in (0, 1))
    assert first.mean() > 0.8
    assert (first | second).mean() > first.mean()


def test_a_set_of_labels(home: Home) -> None:
    random = np.random.default_rng(0)
    words = np.array(["left", "right", "top", "bottom", "red", "blue", "dark"])
    flags = random.random((240, len(words))) < 0.4
    flags[np.arange(240), random.integers(0, len(words), 240)] = True
    contents = []
    for left, right, top, bottom, red, blue, dark in flags:
        picture = random.normal(120, 10, (40, 40, 3))
        picture[10:30, :8] += 100 * left
        picture[10:30, -8:] += 100 * right
        picture[:8, 10:30] += 100 * top
        picture[-8:, 10:30] += 100 * bottom
        picture[15:25, 15:25] += (120 * red, 0, 120 * blue)
        contents.append(encode((picture * (0.5 if dark else 1)).clip(0, 255).astype(np.uint8)))
    table = pd.DataFrame({"id": [f"p{i}" for i in range(240)]})
    table["labels"] = [" ".join(words[row]) for row in flags]
    write_files(home.data / "train", table["id"][:160] + ".png", pd.Series(contents[:160]))
    write_files(home.data / "test", table["id"][160:] + ".png", pd.Series(contents[160:]))
    home.write("train.csv", table[:160])
    home.write("sample_submission.csv", table[160:][["id"]].assign(labels="left right"))
    home.run()
    said = home.submission().loc[table["id"][160:], "labels"]
    members = np.array([[word in cell.split() for word in words] for cell in said])
    assert f1_score(flags[160:], members, average="samples") > 0.75


@pytest.fixture
def table(home: Home) -> pd.DataFrame:
    """Write rows whose cost is the sum of a column and of what a picture shows."""
    random = np.random.default_rng(0)
    weight, width = random.normal(size=(2, 200))
    table = pd.DataFrame({"id": [f"p{i}" for i in range(200)], "weight": weight})
    table["cost"] = weight + width
    contents = []
    for number in width:
        picture = random.normal(60, 20, (40, 40, 3))
        picture[:, : int(20 + 8 * np.clip(number, -2, 2))] += 90
        contents.append(encode(picture.clip(0, 255).astype(np.uint8), "JPEG"))
    write_files(home.data / "images", table["id"] + ".jpg", pd.Series(contents))
    home.write("train.csv", table[:120])
    home.write("test.csv", table[120:].drop(columns="cost"))
    home.write("sample_submission.csv", table[120:][["id"]].assign(cost=1.5))
    return table


def test_pictures_help_a_table(home: Home, table: pd.DataFrame) -> None:
    home.run()
    test = table[120:]
    said = home.submission().loc[test["id"], "cost"]
    # neither weight nor width alone explains more than half of the variance
    assert mean_squared_error(test["cost"], said) < 0.25 * test["cost"].var()


def test_too_few_pictures_do_not_cost_a_table_its_rows(home: Home, table: pd.DataFrame) -> None:
    for name in table["id"][:70]:
        (home.data / "images" / f"{name}.jpg").write_bytes(b"\xff\xd8 broken")
    log = home.run()
    assert "read 50 and 80 files" in log
    assert "too few files: the tables must do" in log
    test = table[120:]
    said = home.submission().loc[test["id"], "cost"]
    assert mean_squared_error(test["cost"], said) < 0.7 * test["cost"].var()


def test_without_pillow_the_prior_is_handed_in(
    home: Home, pictures: pd.DataFrame, tmp_path: Path
) -> None:
    (tmp_path / "without" / "PIL").mkdir(parents=True)
    (tmp_path / "without" / "PIL" / "__init__.py").write_text("raise ImportError('none here')\n")
    train, test = write_folders(home, pictures)
    home.write("train.csv", train[["id", "kind"]])
    home.write("sample_submission.csv", test[["id"]].assign(kind="rings"))
    log = home.run(PYTHONPATH=str(tmp_path / "without"))
    assert home.submission()["kind"].nunique() == 1
    assert "pictures need pillow: pip install 'pytest-mlebench[competitions]'" in log
    assert "there is nothing to learn from: the prior must do" in log


def test_without_time_the_prior_of_pictures_is_handed_in(
    home: Home, pictures: pd.DataFrame
) -> None:
    train, test = write_folders(home, pictures)
    home.write("train.csv", train[["id", "kind"]])
    home.write("sample_submission.csv", test[["id"]].assign(checks=0.3, rings=0.3, stripes=0.4))
    home.run(MLE_TIME_LIMIT_SECS="0.001")
    shares = train["kind"].value_counts(normalize=True)
    assert home.submission().iloc[0][list(KINDS)].to_numpy() == pytest.approx(shares[list(KINDS)])
