"""The order of rows and columns never matters, in no competition."""

from __future__ import annotations

import csv
import random
from collections import defaultdict
from pathlib import Path

import pytest
from golden_pack import IDS, Pack, case_file
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlebench import load_competition

Row = list[str]


@pytest.mark.parametrize("competition_id", IDS)
def test_the_score_is_the_same_in_every_order(competition_id: str, tmp_path: Path) -> None:
    pack, competition = Pack(competition_id), load_competition(competition_id)
    private, cases = pack.unpack("private", tmp_path), pack.unpack("cases", tmp_path)
    original = case_file(cases, "noisy-1")
    header, *rows = _read(original)
    score = competition.score(original, private)
    target = tmp_path / "submission.csv"
    keys = [header.index(name) for name in competition.rules.id]

    @settings(max_examples=20)
    @given(st.integers(0, 2**32))
    def law(seed: int) -> None:
        source = random.Random(seed)
        columns = source.sample(range(len(header)), len(header))
        shuffled = [header, *_shuffled(rows, keys, source)]
        _write(target, [[row[column] for column in columns] for row in shuffled])
        assert competition.score(target, private) == score

    law()


def _shuffled(rows: list[Row], keys: list[int], source: random.Random) -> list[Row]:
    """Return the rows in another order, but for those of one id among themselves.

    Where ids repeat, as in the sample, the first row of an id answers the first of that id.
    """
    by_id: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        by_id[tuple(row[key] for key in keys)].append(row)
    order = [key for key, same in by_id.items() for _ in same]
    source.shuffle(order)
    remaining = {key: iter(same) for key, same in by_id.items()}
    return [next(remaining[key]) for key in order]


def _read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.reader(file) if row]


def _write(path: Path, rows: list[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
