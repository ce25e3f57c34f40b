"""Raw trees of eight kinds of competitions, and how one would prepare them without a toolbox."""

from __future__ import annotations

import json
import random
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Family:
    """A kind of competition."""

    competition: str
    generate: Callable[[Path, float], None]
    by_hand: Callable[[Path, Path, Path], None]

    def check(self, one: Path, other: Path) -> None:
        """Make sure that both sides made the same."""
        first, second = contents(one), contents(other)
        if first != second:
            differing = {n for n in first.keys() | second.keys() if first.get(n) != second.get(n)}
            raise SystemExit(f"{self.competition}: not the same: {sorted(differing)[:5]}")


def contents(folder: Path) -> dict[str, Any]:
    """Return what is in the files of a folder; of archives, what is in their members."""
    import hashlib

    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name == "description.md":
            continue
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                found[name] = {n: hashlib.md5(archive.read(n)).digest() for n in archive.namelist()}
        elif path.suffix == ".7z":
            import py7zr

            with py7zr.SevenZipFile(path) as archive:
                factory = py7zr.io.BytesIOFactory(1 << 34)
                archive.extractall(factory=factory)
            files = factory.products.items()
            found[name] = {n: hashlib.md5(file.read()).digest() for n, file in files}
        else:
            found[name] = hashlib.md5(path.read_bytes()).digest()
    return found


# A row split of a csv file


def generate_rides(raw: Path, scale: float) -> None:
    count = int(4_000_000 * scale)
    write_rides(raw / "train.csv", count)
    (raw / "GCP-Coupons-Instructions.rtf").write_text("none")


def write_rides(path: Path, count: int, batch: int = 500_000) -> None:
    """Write rides like those of the original, of which some have no places, written as 0."""
    draw = np.random.default_rng(0)
    with path.open("w") as file:
        for start in range(0, count, batch):
            rows = min(batch, count - start)
            seconds = draw.integers(1_230_000_000, 1_430_000_000, rows)
            times = np.datetime_as_string(seconds.astype("datetime64[s]"))
            texts = pd.Series(times).str.replace("T", " ")
            numbers = pd.Series(np.arange(start, start + rows)).astype(str).str.zfill(7)
            table = pd.DataFrame({"key": texts + "." + numbers})
            table["fare_amount"] = draw.integers(250, 6000, rows) / 100
            table["pickup_datetime"] = texts + " UTC"
            for place in ("pickup", "dropoff"):
                table[f"{place}_longitude"] = draw.normal(-73.9, 0.05, rows).round(6)
                table[f"{place}_latitude"] = draw.normal(40.7, 0.05, rows).round(6)
            table["passenger_count"] = draw.integers(0, 7, rows)
            table.loc[::50, table.columns[3:7]] = 0.0
            text = table.to_csv(index=False, header=start == 0)
            file.write(text.replace(",0.0,0.0,0.0,0.0,", ",0,0,0,0,"))


def split_rides(raw: Path, public: Path, private: Path) -> None:
    from sklearn.model_selection import train_test_split

    table = pd.read_csv(raw / "train.csv")
    train, test = train_test_split(table, test_size=9914, random_state=0)
    train.to_csv(public / "labels.csv", index=False)
    test.drop(columns="fare_amount").to_csv(public / "test.csv", index=False)
    sample = test[["key"]].copy()
    sample["fare_amount"] = 11.35
    sample.to_csv(public / "sample_submission.csv", index=False)
    test.to_csv(private / "test.csv", index=False)
    shutil.copy(raw / "GCP-Coupons-Instructions.rtf", public)


# One image for each id


def write_picture(path: Path, number: int, size: int) -> None:
    block = np.random.default_rng(number % 64).bytes(size - 8)
    path.write_bytes(block + number.to_bytes(8, "big"))


def generate_retinas(raw: Path, scale: float) -> None:
    count = int(30_000 * scale)
    (raw / "train_images").mkdir()
    names = [f"{number * 2654435761 % 2**48:012x}" for number in range(count)]
    for number, name in enumerate(names):
        write_picture(raw / "train_images" / f"{name}.png", number, 40_000)
    table = pd.DataFrame({"id_code": names, "diagnosis": np.arange(count) % 5})
    table.to_csv(raw / "train.csv", index=False)


def split_retinas(raw: Path, public: Path, private: Path) -> None:
    from sklearn.model_selection import train_test_split

    table = pd.read_csv(raw / "train.csv")
    train, test = train_test_split(table, test_size=0.1, random_state=0)
    train.to_csv(public / "train.csv", index=False)
    test[["id_code"]].to_csv(public / "test.csv", index=False)
    sample = test[["id_code"]].copy()
    sample["diagnosis"] = 0
    sample.to_csv(public / "sample_submission.csv", index=False)
    test.to_csv(private / "test.csv", index=False)
    for folder, part in (("train_images", train), ("test_images", test)):
        (public / folder).mkdir()
        for name in part["id_code"]:
            shutil.copyfile(raw / "train_images" / f"{name}.png", public / folder / f"{name}.png")


# A group split


def generate_breaths(raw: Path, scale: float) -> None:
    breaths = int(40_000 * scale)
    draw = np.random.default_rng(0)
    steps = 80
    rows = breaths * steps
    table = pd.DataFrame({"id": np.arange(1, rows + 1)})
    table["breath_id"] = np.repeat(np.arange(1, breaths + 1), steps)
    table["R"] = np.repeat(draw.choice([5, 20, 50], breaths), steps)
    table["C"] = np.repeat(draw.choice([10, 20, 50], breaths), steps)
    table["time_step"] = np.tile(np.arange(steps) * 0.0337, breaths) + draw.normal(0, 1e-5, rows)
    table["u_in"] = np.abs(draw.normal(5, 4, rows))
    table["u_out"] = np.tile((np.arange(steps) > 30).astype(int), breaths)
    table["pressure"] = draw.integers(80, 900, rows) * 0.0703021454512
    table.to_csv(raw / "train.csv", index=False)


def split_breaths(raw: Path, public: Path, private: Path) -> None:
    from sklearn.model_selection import train_test_split

    table = pd.read_csv(raw / "train.csv")
    groups = dict(iter(table.groupby("breath_id")))
    train_ids, test_ids = train_test_split(list(groups), test_size=0.1, random_state=0)
    train = pd.concat([groups[each] for each in train_ids])
    test = pd.concat([groups[each] for each in test_ids])
    train["id"], test["id"] = range(1, len(train) + 1), range(1, len(test) + 1)
    train.to_csv(public / "train.csv", index=False, float_format="%.10g")
    test.drop(columns="pressure").to_csv(public / "test.csv", index=False, float_format="%.10g")
    test.to_csv(private / "test.csv", index=False, float_format="%.10g")
    sample = test[["id"]].copy()
    sample["pressure"] = 0
    sample.to_csv(public / "sample_submission.csv", index=False)


# A listing of files


def generate_seedlings(raw: Path, scale: float) -> None:
    count = int(40_000 * scale)
    for number in range(count):
        folder = raw / "train" / f"Species {number % 12}"
        folder.mkdir(parents=True, exist_ok=True)
        write_picture(folder / f"{number * 2654435761 % 2**32:08x}.png", number, 20_000)


def split_seedlings(raw: Path, public: Path, private: Path) -> None:
    from sklearn.model_selection import train_test_split

    rows = []
    for folder in sorted((raw / "train").iterdir()):
        rows += [(path.name, folder.name) for path in sorted(folder.glob("*.png"))]
    table = pd.DataFrame(rows, columns=["file", "species"])
    train, test = train_test_split(table, test_size=0.14, random_state=0)
    for name, species in zip(train["file"], train["species"], strict=True):
        target = public / "train" / species / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(raw / "train" / species / name, target)
    (public / "test").mkdir()
    for name, species in zip(test["file"], test["species"], strict=True):
        shutil.copyfile(raw / "train" / species / name, public / "test" / name)
    sample = test.copy()
    sample["species"] = "Sugar beet"
    sample.to_csv(public / "sample_submission.csv", index=False)
    test.to_csv(private / "answers.csv", index=False)


# COCO metadata


def generate_sheets(raw: Path, scale: float) -> None:
    count = int(100_000 * scale)
    categories = max(1, count // 50)
    annotations, images = [], []
    for number in range(count):
        category, which = number % categories, number // categories
        name = f"{category:05d}__{which + 1:03d}"
        file = f"{category // 100:03d}/{category % 100:02d}/{name}.jpg"
        annotations.append(
            {
                "genus_id": category % 7,
                "institution_id": 3,
                "category_id": category,
                "image_id": name,
            }
        )
        images.append({"image_id": name, "file_name": file, "license": 4})
    # a thousand pictures are one: the metadata are what this is about
    for folder in {Path(image["file_name"]).parent for image in images}:
        (raw / "train_images" / folder).mkdir(parents=True)
    for number, image in enumerate(images):
        if number % 1000 == 0:  # a file can have 65 000 names only
            first = raw / "train_images" / f"picture{number}"
            first.write_bytes(b"jpg")
        (raw / "train_images" / image["file_name"]).hardlink_to(first)
    data = {
        "annotations": annotations,
        "images": images,
        "categories": [
            {"category_id": each, "name": f"taxon {each}"} for each in range(categories)
        ],
        "license": [{"id": 4, "name": "CC"}],
    }
    (raw / "train_metadata.json").write_text(json.dumps(data))


def split_sheets(raw: Path, public: Path, private: Path) -> None:
    from sklearn.model_selection import train_test_split

    with (raw / "train_metadata.json").open() as file:
        data = json.load(file)
    by_category: dict[int, list[Any]] = {}
    for annotation, image in zip(data["annotations"], data["images"], strict=True):
        by_category.setdefault(annotation["category_id"], []).append((annotation, image))
    train: dict[str, list[Any]] = {"annotations": [], "images": []}
    test, answers = [], []
    held_out = []
    for category, pairs in by_category.items():
        kept, taken = train_test_split(pairs, test_size=0.2, random_state=0)
        held_out += taken
        for number, (annotation, image) in enumerate(kept, start=1):
            name = f"{category:05d}__{number:03d}"
            file = f"{category // 100:03d}/{category % 100:02d}/{name}.jpg"
            target = public / "train_images" / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(raw / "train_images" / image["file_name"], target)
            annotation["image_id"] = image["image_id"] = name
            image["file_name"] = file
            train["annotations"].append(annotation)
            train["images"].append(image)
    random.Random(0).shuffle(held_out)
    for number, (annotation, image) in enumerate(held_out):
        file = f"{number // 1000:03d}/test-{number:06d}.jpg"
        target = public / "test_images" / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(raw / "train_images" / image["file_name"], target)
        image["image_id"], image["file_name"] = str(number), file
        test.append(image)
        answers.append((number, annotation["category_id"]))
    with (public / "train_metadata.json").open("w") as file:
        json.dump({**data, **train}, file, indent=4, sort_keys=True)
    with (public / "test_metadata.json").open("w") as file:
        json.dump(test, file, indent=4, sort_keys=True)
    table = pd.DataFrame(answers, columns=["Id", "Predicted"])
    table.to_csv(private / "answers.csv", index=False)
    table["Predicted"] = 42
    table.to_csv(public / "sample_submission.csv", index=False)


# Members of a zip


def generate_clips(raw: Path, scale: float) -> None:
    count = int(20_000 * scale)
    draw = np.random.default_rng(0)
    waves = [(draw.normal(0, 300, 4000)).astype(">i2").tobytes() for _ in range(64)]
    with zipfile.ZipFile(raw / "train2.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped:
        for number in range(count):
            day = f"2009032{8 + number % 4 // 2}" if number % 2 else f"2009033{number % 4 // 2}"
            name = f"{day}_{number:06d}_TRAIN{number}_{number % 3 // 2}.aif"
            zipped.writestr(f"train2/{name}", waves[number % 64] + number.to_bytes(8, "big"))


def split_clips(raw: Path, public: Path, private: Path) -> None:
    import re

    scratch = public.parent / "scratch"
    with zipfile.ZipFile(raw / "train2.zip") as zipped:
        zipped.extractall(scratch)
    clips = sorted((scratch / "train2").glob("*.aif"))
    days = sorted({clip.name.split("_")[0] for clip in clips})
    train = [clip for clip in clips if clip.name.split("_")[0] in days[:2]]
    test = [clip for clip in clips if clip.name.split("_")[0] in days[2:]]
    rows = []
    with zipfile.ZipFile(public / "train2.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        for number, clip in enumerate(train):
            zipped.write(clip, f"train2/{re.sub('TRAIN[0-9]+', f'TRAIN{number}', clip.name)}")
    with zipfile.ZipFile(public / "test2.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        for number, clip in enumerate(test):
            name = f"{clip.name.split('TRAIN')[0]}Test{number}.aif"
            zipped.write(clip, f"test2/{name}")
            rows.append((name, int(clip.stem.endswith("_1"))))
    shutil.rmtree(scratch)
    table = pd.DataFrame(rows, columns=["clip", "probability"])
    table.to_csv(private / "test.csv", index=False)
    table["probability"] = 0
    table.to_csv(public / "sampleSubmission.csv", index=False)


# 7z archives


def generate_icebergs(raw: Path, scale: float) -> None:
    import py7zr

    draw = np.random.default_rng(0)

    def image(number: int) -> dict[str, Any]:
        bands = draw.normal(-20, 5, (2, 5625)).round(6).tolist()
        both = {"band_1": bands[0], "band_2": bands[1], "inc_angle": 30.5 + number}
        return {"id": f"{number:08x}", **both}

    quick = [{"id": py7zr.FILTER_LZMA2, "preset": 0}]
    test = [image(number) for number in range(int(50 * scale))]
    train = [{**image(number), "is_iceberg": number % 2} for number in range(int(100 * scale))]
    for name, records in (("train.json", train), ("test.json", test)):
        (raw / name).write_text(json.dumps(records))
        with py7zr.SevenZipFile(raw / f"{name}.7z", "w", filters=quick) as archive:
            archive.write(raw / name, f"data/processed/{name}")
        (raw / name).unlink()


def split_icebergs(raw: Path, public: Path, private: Path) -> None:
    import py7zr
    from sklearn.model_selection import train_test_split

    scratch = public.parent / "scratch"
    for name in ("train.json", "test.json"):
        with py7zr.SevenZipFile(raw / f"{name}.7z") as archive:
            archive.extractall(scratch)
    with (scratch / "data/processed/train.json").open() as file:
        images = json.load(file)
    with (scratch / "data/processed/test.json").open() as file:
        fields = list(json.load(file)[0])
    train, test = train_test_split(images, test_size=0.2, random_state=0)
    shown = [{field: image[field] for field in fields} for image in test]
    answers = pd.DataFrame(
        [{"id": image["id"], "is_iceberg": image["is_iceberg"]} for image in test]
    )
    answers.to_csv(private / "test.csv", index=False)
    sample = answers.copy()
    sample["is_iceberg"] = 0.5
    sample.to_csv(private / "sample_submission.csv", index=False)
    shutil.copy(private / "sample_submission.csv", scratch)
    for name, records in (("train.json", train), ("test.json", shown)):
        with (scratch / name).open("w") as file:
            json.dump(records, file)
    for name in ("train.json", "test.json", "sample_submission.csv"):
        with py7zr.SevenZipFile(public / f"{name}.7z", "w") as archive:
            archive.write(scratch / name, name)
    shutil.rmtree(scratch)


# Lines of a text


def generate_sentences(raw: Path, scale: float) -> None:
    draw = np.random.default_rng(0)
    words = [f"{'aeiou'[k % 5]}{k * 2654435761 % 99991:x}" for k in range(20_000)]
    path = raw / "train_v2.txt.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped,
        zipped.open("train_v2.txt", "w") as file,
    ):
        for _ in range(int(60 * scale)):
            numbers = (draw.zipf(1.3, 250_000) % 20_000).tolist()
            ends = np.cumsum(draw.integers(1, 50, 10_000))
            ends = ends[ends <= len(numbers)].tolist()
            spans = zip([0, *ends[:-1]], ends, strict=True)
            lines = [" ".join([words[k] for k in numbers[start:end]]) for start, end in spans]
            file.write(("\n".join(lines) + "\n").encode())


def split_sentences(raw: Path, public: Path, private: Path) -> None:
    scratch = public.parent / "scratch"
    with zipfile.ZipFile(raw / "train_v2.txt.zip") as zipped:
        zipped.extractall(scratch)
    random_state = np.random.RandomState(0)
    count = 0
    with (
        (scratch / "train_v2.txt").open() as lines,
        (scratch / "new_train.txt").open("w") as train,
        (scratch / "test.csv").open("w") as test,
        (private / "test.csv").open("w") as answers,
    ):
        test.write('"id","sentence"\n')
        answers.write('"id","sentence"\n')
        for line in lines:
            if random_state.uniform() > 0.01 or len(line.split()) <= 2:
                train.write(line)
                continue
            sentence = line.strip().replace('"', '""')
            words = sentence.split()
            words.pop(random_state.randint(1, len(words) - 1))
            test.write(f'{count},"{" ".join(words)}"\n')
            answers.write(f'{count},"{sentence}"\n')
            count += 1
    for name, path in (("train_v2.txt", "new_train.txt"), ("test_v2.txt", "test.csv")):
        with zipfile.ZipFile(public / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
            zipped.write(scratch / path, name)
    shutil.copy(scratch / "test.csv", private / "sample_submission.csv")
    shutil.rmtree(scratch)


FAMILIES = {
    "rows": Family("new-york-city-taxi-fare-prediction", generate_rides, split_rides),
    "images": Family("aptos2019-blindness-detection", generate_retinas, split_retinas),
    "groups": Family("ventilator-pressure-prediction", generate_breaths, split_breaths),
    "listing": Family("plant-seedlings-classification", generate_seedlings, split_seedlings),
    "coco": Family("herbarium-2022-fgvc9", generate_sheets, split_sheets),
    "zip": Family("the-icml-2013-whale-challenge-right-whale-redux", generate_clips, split_clips),
    "7z": Family("statoil-iceberg-classifier-challenge", generate_icebergs, split_icebergs),
    "text": Family("billion-word-imputation", generate_sentences, split_sentences),
}
