"""Drives are split at random by their log; every table and every file follows its sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import (
    link,
    link_all,
    read_csv,
    read_records,
    reading,
    split_list,
    write_csv,
    write_json,
)

SPLIT = {  # the tables of both parts, with what they are split by
    "log": ["token"],
    "scene": ["log_token"],
    "sample": ["token", "scene_token"],
    "sample_data": [
        "sample_token",
        "calibrated_sensor_token",
        "ego_pose_token",
        "fileformat",
        "filename",
    ],
    "calibrated_sensor": ["token"],
    "ego_pose": ["token"],
    "map": [],
}
TRAIN_ONLY = {"sample_annotation": ["sample_token", "instance_token"], "instance": ["token"]}
SHARED = ("attribute", "category", "sensor", "visibility")
FOLDERS = {"jpeg": "images", "bin": "lidar"}  # by the format of a recording
MAP_PICTURE = "map_raster_palo_alto.png"
OBJECT = 8  # tokens

Table = list[dict[str, Any]]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a fifth of the drives."""
    data = raw / "train_data"
    objects = read_csv(raw / "train.csv", needs=["Id", "PredictionString"])
    tables = {
        name: read_records(data / f"{name}.json", needs=keys)
        for name, keys in {**SPLIT, **TRAIN_ONLY}.items()
    }
    train_logs, test_logs = split_list([log["token"] for log in tables["log"]], 0.2)
    with reading(data):  # a token that leads nowhere
        train, test = (_part(tables, set(logs)) for logs in (train_logs, test_logs))
        train["instance"] = _instances(tables["instance"], train, test)
    for part, own in (("train", train), ("test", test)):
        # the reference writes the map of the test logs into both parts
        own["map"] = [{**entry, "log_tokens": test_logs} for entry in tables["map"]]
        for name in SPLIT if part == "test" else (*SPLIT, *TRAIN_ONLY):
            write_json(own[name], public / f"{part}_data" / f"{name}.json")
        for name in SHARED:
            link(data / f"{name}.json", public / f"{part}_data" / f"{name}.json")
        link(raw / "train_maps" / MAP_PICTURE, public / f"{part}_maps" / MAP_PICTURE)
        _link_recordings(raw, own["sample_data"], public, part)
    write_csv(_rows(objects, train), public / "train.csv")
    held_out = _rows(objects, test)
    write_csv(held_out.assign(PredictionString=""), public / "sample_submission.csv")
    write_csv(_answers(held_out, raw / "train.csv"), private / "test.csv")


def _part(tables: dict[str, Table], logs: set[str]) -> dict[str, Table]:
    """Return the tables of some logs; a scene and its log have the same token."""
    samples = [entry for entry in tables["sample"] if entry["scene_token"] in logs]
    tokens = {sample["token"] for sample in samples}
    recordings = [entry for entry in tables["sample_data"] if entry["sample_token"] in tokens]
    sensors, poses = _by_token(tables["calibrated_sensor"]), _by_token(tables["ego_pose"])
    used = dict.fromkeys(entry["calibrated_sensor_token"] for entry in recordings)
    return {
        "log": [entry for entry in tables["log"] if entry["token"] in logs],
        "scene": [entry for entry in tables["scene"] if entry["log_token"] in logs],
        "sample": samples,
        "sample_data": recordings,
        "calibrated_sensor": [sensors[token] for token in used],
        "ego_pose": [poses[entry["ego_pose_token"]] for entry in recordings],
        "sample_annotation": [
            entry for entry in tables["sample_annotation"] if entry["sample_token"] in tokens
        ],
    }


def _by_token(table: Table) -> dict[str, dict[str, Any]]:
    return {entry["token"]: entry for entry in table}


def _instances(instances: Table, train: dict[str, Table], test: dict[str, Table]) -> Table:
    """Return the objects that are annotated in training samples."""
    named, elsewhere = (
        {entry["instance_token"] for entry in part["sample_annotation"]} for part in (train, test)
    )
    for entry in instances:
        if entry["token"] not in named | elsewhere:
            raise PreparationError(f"instance {entry['token']} has no annotation")
    return [entry for entry in instances if entry["token"] in named]


def _link_recordings(raw: Path, recordings: Table, public: Path, part: str) -> None:
    with reading(raw / "train_data" / "sample_data.json"):
        files = {
            (FOLDERS[entry["fileformat"]], Path(entry["filename"]).name) for entry in recordings
        }
    link_all(
        (raw / f"train_{folder}" / name, public / f"{part}_{folder}" / name)
        for folder, name in files
    )


def _rows(objects: pd.DataFrame, part: dict[str, Table]) -> pd.DataFrame:
    return objects[objects["Id"].isin([sample["token"] for sample in part["sample"]])]


def _answers(rows: pd.DataFrame, source: Path) -> pd.DataFrame:
    """Return the objects with a confidence in front of each, as in a submission."""
    empty = rows.loc[rows["PredictionString"].isna(), "Id"]
    if len(empty):
        raise PreparationError(f"{source}: the test sample {empty.iloc[0]} has no objects")
    return rows.assign(PredictionString=rows["PredictionString"].map(_with_confidence))


def _with_confidence(text: str) -> str:
    tokens = text.split()
    starts = range(0, len(tokens), OBJECT)
    return " ".join(" ".join(["1.0", *tokens[start : start + OBJECT]]) for start in starts)
