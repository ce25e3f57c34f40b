"""Tables from files that carry their labels: in the folder's name, or in their own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

import pandas as pd
from listing import MediaFile, key_of
from tables import Tables, id_column

MIN_FILES = 2  # of a label, on average
LABEL = "label of the file"

_PARTS = re.compile(r"[._-]")
_DIGITS, _LETTERS = re.compile(r"\d+"), re.compile(r"[^\W\d]+")


def tables_of_files(files: list[MediaFile], sample: pd.DataFrame) -> Tables | None:
    """Return the training files as rows, or None where no labels can be told."""
    identity = id_column(sample)
    asked = {key_of(value) for value in sample[identity]}
    tests = [file for file in files if file.split == "test" and file.key in asked]
    if len(tests) < len(asked) / 2:
        return None
    kind = Counter(file.kind for file in tests).most_common(1)[0][0]
    trains = [file for file in files if file.kind == kind and file.split != "test"]
    trains = [file for file in trains if file.split == "train"] or trains
    label_of = _by_folder(trains, tests) or _by_name(trains, tests)
    if label_of is None:
        return None
    labels = [label_of(file) for file in trains]
    return Tables(
        sample=sample,
        train=pd.DataFrame({identity: [file.key for file in trains], LABEL: labels}),
        test=sample[[identity]],
        ids=(identity,),
        train_files=tuple(trains),
    )


def _by_folder(
    trains: list[MediaFile], tests: list[MediaFile]
) -> Callable[[MediaFile], str] | None:
    """Return how a folder tells a label, where training files are in more folders than others."""
    if len({file.folder for file in tests}) > 1 or not _are_labels(map(_folder, trains)):
        return None
    return _folder


def _folder(file: MediaFile) -> str:
    return file.folder.rpartition("/")[2]


def _by_name(trains: list[MediaFile], tests: list[MediaFile]) -> Callable[[MediaFile], str] | None:
    """Return how names tell a label: by a first or last part that test files do not have."""
    usual = Counter(_shape(_PARTS.split(file.key)) for file in tests).most_common(1)[0][0]
    for label, rest in ((0, slice(1, None)), (-1, slice(None, -1))):
        shapes = [_shape(_PARTS.split(file.key)[rest]) for file in trains]
        alike = sum(shape == usual for shape in shapes)
        if alike > 0.9 * len(trains) and _are_labels(_part(file, label) for file in trains):
            return partial(_part, number=label)
    return None


def _part(file: MediaFile, number: int) -> str:
    return _PARTS.split(file.key)[number]


def _shape(parts: list[str]) -> str:
    """Return what names of one series have in common: where digits are, and where letters."""
    return _LETTERS.sub("a", _DIGITS.sub("0", " ".join(parts)))


def _are_labels(values: Iterable[str]) -> bool:
    counts = Counter(values)
    return len(counts) > 1 and counts.total() >= MIN_FILES * len(counts)
