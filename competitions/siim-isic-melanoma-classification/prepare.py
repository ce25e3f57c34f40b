"""The images in two of the training TFRecord files are the test set; nothing is random."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link, link_named, list_files, read_csv, read_texts, write_csv

TEST_RECORDS = ("train00-2071.tfrec", "train06-2071.tfrec")
SHOWN = ["image_name", "patient_id", "sex", "age_approx", "anatom_site_general_challenge"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out the images of two record files, about an eighth."""
    table = read_csv(raw / "train.csv", needs=[*SHOWN, "target"])
    records = raw / "tfrecords"
    held_out = {name for file in TEST_RECORDS for name in read_texts(records / file, "image_name")}
    is_test = table["image_name"].isin(held_out)
    train, test = table[~is_test], table[is_test]
    write_csv(train, public / "train.csv")
    write_csv(test[SHOWN], public / "test.csv")
    write_csv(test[["image_name"]].assign(target=0), public / "sample_submission.csv")
    write_csv(test[["image_name", "target"]], private / "test.csv")
    for name, part in (("train", train), ("test", test)):
        link_named(part["image_name"], raw / "train", public / name, ".dcm")
        link_named(part["image_name"], raw / "jpeg" / "train", public / "jpeg" / name, ".jpg")
    _link_records(records, public / "tfrecords")


def _link_records(source: Path, target: Path) -> None:
    """Number the files of both parts anew; the count in their names stays."""
    files = list_files(source, "train*.tfrec")
    test = [file for file in files if file.name in TEST_RECORDS]
    train = [file for file in files if file.name not in TEST_RECORDS]
    for name, part in (("train", train), ("test", test)):
        for number, file in enumerate(part):
            _, _, count = file.name.partition("-")
            link(file, target / f"{name}{number:02d}-{count}")
