"""Tables from annotations in the manner of COCO: files that list pictures and their categories.

A file for training has a list of pictures (``file_name``) and one of annotations (``image_id``,
``category_id``); a file for testing has pictures alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from tables import MAX_JSON_BYTES, Tables, id_column

_NAME, _PICTURE, _CATEGORY = "file_name", "image_id", "category_id"
_PATTERNS = ("*.json", "*/*.json", "*/*/*.json")
MAX_FILES = 200  # where there are more, each describes one row


def read_annotations(folders: Iterable[Path], sample: pd.DataFrame) -> Tables | None:
    """Return what annotations say as tables, or None where there are none for the sample."""
    identity = id_column(sample)
    asked = set(sample[identity])
    train, test = None, None
    for parts in (_parts(file) for folder in folders for file in _files(folder)):
        pictures, categories = _pictures(parts, identity), _categories(parts)
        if pictures is None:
            continue
        if categories is None:
            test = pictures if asked <= set(pictures[identity]) else test
        elif train is None:
            train = pictures.merge(categories, left_on=identity, right_index=True)
    if train is None or test is None:
        return None
    return Tables(sample=sample, train=train, test=test, ids=(identity,))


def _files(folder: Path) -> Iterator[Path]:
    for pattern in _PATTERNS:
        files = sorted(folder.glob(pattern))
        if len(files) <= MAX_FILES:
            yield from (file for file in files if file.stat().st_size <= MAX_JSON_BYTES)


def _parts(file: Path) -> list[list[dict[str, Any]]]:
    """Return the lists of records in a file."""
    text = file.read_bytes()
    if f'"{_NAME}"'.encode() not in text:  # which is much faster to find out than to parse
        return []
    try:
        content = json.loads(text)
    except ValueError:
        return []
    parts = content.values() if isinstance(content, dict) else [content]
    return [part for part in parts if isinstance(part, list) and part and type(part[0]) is dict]


def _pictures(parts: list[list[dict[str, Any]]], identity: str) -> pd.DataFrame | None:
    """Return the pictures, identified as text."""
    for part in parts:
        key = _PICTURE if _PICTURE in part[0] else "id"
        if _NAME in part[0] and key in part[0]:
            frame = pd.DataFrame(part).drop_duplicates(key)
            return frame.assign(**{key: frame[key].astype(str)}).rename(columns={key: identity})
    return None


def _categories(parts: list[list[dict[str, Any]]]) -> pd.Series | None:
    """Return the category of each picture; of several, the first."""
    for part in parts:
        if {_PICTURE, _CATEGORY} <= set(part[0]):
            frame = pd.DataFrame(part)[[_PICTURE, _CATEGORY]].drop_duplicates(_PICTURE)
            frame[_PICTURE] = frame[_PICTURE].astype(str)
            # not a quantity, however many there are
            return frame.set_index(_PICTURE)[_CATEGORY].astype("category")
    return None
