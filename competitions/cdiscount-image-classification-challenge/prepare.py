"""Products are split at random; BSON documents are copied as they are, in their old order.

A document begins with its length. A test document loses the element ``category_id``.
"""

from __future__ import annotations

import mmap
import struct
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import link, new_file, require, split_indices, write_csv

TEST_SHARE = 0.1
EXAMPLES = 100
SAMPLE_CATEGORY = 1000010653

LENGTH = struct.Struct("<i")
WHOLE_NUMBERS = {0x10: LENGTH, 0x12: struct.Struct("<q")}  # BSON types of 32 and of 64 bits
FIXED = {0x01: 8, 0x07: 12, 0x08: 1, 0x09: 8, 0x0A: 0, 0x10: 4, 0x11: 8, 0x12: 8, 0x13: 16}
PREFIXED = {0x02: 4, 0x03: 0, 0x04: 0, 0x05: 5}  # a length, and how many bytes it leaves out
COLUMNS = ["start", "end", "_id", "category_id", "cut", "resume"]  # the cut is category_id


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the products."""
    link(require(raw / "category_names.csv"), public / "category_names.csv")
    with _mapped(raw / "train.bson") as data:
        products = _survey(data, raw / "train.bson")
        train, test = (np.sort(part) for part in split_indices(len(products), TEST_SHARE))
        _copy(data, products.iloc[train], public / "train.bson")
        _copy(data, products.iloc[train[:EXAMPLES]], public / "train_example.bson")
        _copy_without_category(data, products.iloc[test], public / "test.bson")
    answers = products.iloc[test][["_id", "category_id"]].sort_values("_id")
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(category_id=SAMPLE_CATEGORY), public / "sample_submission.csv")


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    if not require(path).stat().st_size:
        raise PreparationError(f"{path} is empty")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def _survey(data: mmap.mmap, path: Path) -> pd.DataFrame:
    """Go from document to document and note what the head of each says."""
    found = array("q")  # compact: there are seven million documents
    start = 0
    while start < len(data):
        try:
            end = start + LENGTH.unpack_from(data, start)[0]
            if not start + LENGTH.size < end <= len(data):
                raise ValueError("it is cut off")
            found.extend((start, end, *_head(data, start, end)))
        except (ValueError, struct.error) as error:
            raise PreparationError(
                f"{path}: the document at byte {start} cannot be read: {error}"
            ) from None
        start = end
    return pd.DataFrame(np.asarray(found).reshape(-1, len(COLUMNS)), columns=COLUMNS)


def _head(data: mmap.mmap, start: int, end: int) -> tuple[int, int, int, int]:
    """Return id and category of a document, and where its category begins and ends."""
    seen: dict[bytes, tuple[int, int, int]] = {}
    position = start + LENGTH.size
    while position < end - 1 and not (b"_id" in seen and b"category_id" in seen):
        name_end = data.find(b"\0", position + 1, end)
        if name_end < 0:
            raise ValueError("an element has no name")
        kind, name, value = data[position], data[position + 1 : name_end], name_end + 1
        after = value + _size(data, kind, value)
        if name in (b"_id", b"category_id"):
            seen[name] = (_whole(data, kind, value), position, after)
        position = after
    if len(seen) < 2:
        raise ValueError("it has no _id or no category_id")
    return (seen[b"_id"][0], *seen[b"category_id"])


def _size(data: mmap.mmap, kind: int, value: int) -> int:
    if kind in FIXED:
        return FIXED[kind]
    if kind not in PREFIXED:
        raise ValueError(f"unknown type of element {kind:#04x}")
    return max(0, int(LENGTH.unpack_from(data, value)[0])) + PREFIXED[kind]


def _whole(data: mmap.mmap, kind: int, value: int) -> int:
    if kind not in WHOLE_NUMBERS:
        raise ValueError("an id is not a whole number")
    return int(WHOLE_NUMBERS[kind].unpack_from(data, value)[0])


def _copy(data: mmap.mmap, products: pd.DataFrame, target: Path) -> None:
    """Write documents unchanged, neighbours in one go."""
    starts, ends = products["start"].to_numpy(), products["end"].to_numpy()
    gaps = np.flatnonzero(starts[1:] != ends[:-1])
    runs = zip(starts[np.append(0, gaps + 1)], ends[np.append(gaps, -1)], strict=True)
    with new_file(target) as file:
        for start, end in runs:
            file.write(data[start:end])


def _copy_without_category(data: mmap.mmap, products: pd.DataFrame, target: Path) -> None:
    columns = (products[name].tolist() for name in ("start", "cut", "resume", "end"))
    with new_file(target) as file:
        for start, cut, resume, end in zip(*columns, strict=True):
            file.write(LENGTH.pack(end - start - (resume - cut)))
            file.write(data[start + LENGTH.size : cut])
            file.write(data[resume:end])
