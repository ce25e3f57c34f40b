"""The baseline agent learns from sounds, and from signals and fields in other files."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from baseline_agent import Home, imported
from drawings import RATE, draw, encode_aiff, encode_wav, sing
from sklearn.metrics import accuracy_score, mean_squared_error, roc_auc_score

TRAIN, TEST = 80, 40


def names_and_sounds(seed: int = 0) -> tuple[pd.DataFrame, list[np.ndarray]]:
    random = np.random.default_rng(seed)
    rising = random.permutation([0, 1] * ((TRAIN + TEST) // 2))
    table = pd.DataFrame({"id": [f"clip_{i:03d}" for i in range(len(rising))], "rising": rising})
    return table, [sing(bool(flag), random) for flag in rising]


def test_labels_in_the_names_of_folders(home: Home) -> None:
    table, sounds = names_and_sounds()
    words = table["rising"].map({0: "down", 1: "up"})
    for row, sound in enumerate(sounds):
        folder = home.data / ("test/audio" if row >= TRAIN else f"train/audio/{words[row]}")
        folder.mkdir(parents=True, exist_ok=True)
        # speakers say several words: names are unique within a folder only
        name = table["id"][row] if row >= TRAIN else f"speaker_{row // 4}_{row % 2}_{row}"
        (folder / f"{name}.wav").write_bytes(encode_wav(sound))
    test = table[TRAIN:]
    sample = pd.DataFrame({"id": test["id"] + ".wav", "label": "silence"})
    home.write("sample_submission.csv", sample)
    home.run()
    said = home.submission().loc[sample["id"], "label"]
    assert accuracy_score(words[TRAIN:], said) > 0.8


def test_labels_in_the_names_of_files_in_archives(home: Home) -> None:
    table, sounds = names_and_sounds()
    with (
        zipfile.ZipFile(home.data / "train2.zip", "w") as train,
        zipfile.ZipFile(home.data / "test2.zip", "w") as test,
    ):
        for row, sound in enumerate(sounds):
            day = f"2009033{row % 2}_{row:06d}"
            if row < TRAIN:
                name = f"train2/{day}_TRAIN{row}_{table['rising'][row]}.aif"
                train.writestr(name, encode_aiff(sound))
            else:
                test.writestr(f"test2/{day}_Test{row}.aif", encode_aiff(sound))
    asked = table[TRAIN:].assign(id=[f"2009033{r % 2}_{r:06d}_Test{r}.aif" for r in range(80, 120)])
    home.write("sampleSubmission.csv", asked[["id"]].assign(probability=0))
    home.run()
    said = home.submission().loc[asked["id"], "probability"]
    assert roc_auc_score(asked["rising"], said) > 0.85


def test_tags_of_which_several_may_be_right(home: Home) -> None:
    table, sounds = names_and_sounds()
    random = np.random.default_rng(1)
    loud = random.random(len(table)) < 0.5
    tags = [
        ",".join(word for word, here in (("up", up), ("loud", big), ("sound", True)) if here)
        for up, big in zip(table["rising"], loud, strict=True)
    ]
    (home.data / "train_curated").mkdir()
    (home.data / "test").mkdir()
    for row, sound in enumerate(sounds):
        folder = home.data / ("train_curated" if row < TRAIN else "test")
        quiet = sound if loud[row] else sound // 8
        (folder / f"{table['id'][row]}.wav").write_bytes(encode_wav(quiet))
    names = table["id"] + ".wav"
    # two tables for two halves of the rows
    home.write("train_curated.csv", pd.DataFrame({"id": names[:50], "labels": tags[:50]}))
    home.write("train_noisy.csv", pd.DataFrame({"id": names[50:TRAIN], "labels": tags[50:TRAIN]}))
    sample = pd.DataFrame({"id": names[TRAIN:], "loud": 0, "sound": 0, "up": 0})
    home.write("sample_submission.csv", sample)
    home.run()
    said = home.submission().loc[names[TRAIN:]]
    assert roc_auc_score(table["rising"][TRAIN:], said["up"]) > 0.85
    assert roc_auc_score(loud[TRAIN:], said["loud"]) > 0.95
    assert (said["sound"] > 0.99).all()


def test_arrays_and_tables_of_signals(home: Home) -> None:
    random = np.random.default_rng(0)
    speed = random.uniform(1, 5, 150)
    table = pd.DataFrame({"id": [str(1000 + i) for i in range(150)], "speed": speed})
    for row, name in enumerate(table["id"]):
        folder = home.data / ("train" if row < 100 else "test")
        folder.mkdir(exist_ok=True)
        phases = np.linspace(0, 40, 400)[:, None] * speed[row] + random.uniform(0, 6, 3)
        signals = pd.DataFrame(np.sin(phases) + random.normal(0, 0.5, (400, 3)))
        signals.assign(empty=np.nan).to_csv(folder / f"{name}.csv", index=False)
    home.write("train.csv", table[:100])
    home.write("sample_submission.csv", table[100:][["id"]].assign(speed=0))
    home.run()
    said = home.submission().loc[table["id"][100:], "speed"]
    assert mean_squared_error(speed[100:], said) < 0.2 * speed[100:].var()


@pytest.mark.parametrize("form", ["files", "lists"])
def test_fields(home: Home, form: str) -> None:
    random = np.random.default_rng(0)
    kinds = random.permutation([0, 1] * 60)
    fields = [draw(("rings", "stripes")[kind], random)[..., 0].astype(float) for kind in kinds]
    table = pd.DataFrame({"id": [f"f{i:03d}" for i in range(120)], "target": kinds})
    train, test = table[:80], table[80:]
    if form == "files":
        for row, name in enumerate(table["id"]):
            folder = home.data / ("train" if row < 80 else "test") / name[-1]
            folder.mkdir(parents=True, exist_ok=True)
            content = io.BytesIO()
            np.save(content, np.stack([fields[row]] * 2).astype(np.float16))
            (folder / f"{name}.npy").write_bytes(content.getvalue())
        home.write("train_labels.csv", train)
    else:
        lists = [field.ravel().round(1).tolist() for field in fields]
        rows = table.assign(band=lists, angle=["na"] * 120).to_dict("records")
        (home.data / "train.json").write_text(json.dumps(rows[:80]))
        for row in rows[80:]:
            del row["target"]
        (home.data / "test.json").write_text(json.dumps(rows[80:]))
    home.write("sample_submission.csv", test[["id"]].assign(target=0.5))
    home.run()
    said = home.submission().loc[test["id"], "target"]
    assert roc_auc_score(test["target"], said) > 0.9


def test_the_same_sound_in_two_formats_has_the_same_numbers() -> None:
    sound = sing(True, np.random.default_rng(0))
    with imported("sounds") as (sounds,):
        numbers = sounds.sound_features(encode_wav(sound))
        assert len(numbers) > 500
        np.testing.assert_allclose(numbers, sounds.sound_features(encode_aiff(sound)))
        assert sounds._decode_aiff(encode_aiff(sound))[0] == RATE


@pytest.mark.parametrize("samples", [0, 1, 10])
def test_a_sound_of_hardly_any_samples_is_broken_or_finite(samples: int) -> None:
    content = encode_wav(np.ones(samples, dtype=np.int16))
    with imported("sounds") as (sounds,):
        if samples:
            assert np.isfinite(sounds.sound_features(content)).all()
        else:
            with pytest.raises(ValueError, match="a sound without samples"):
                sounds.sound_features(content)
