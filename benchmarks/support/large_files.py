"""Large submissions and answers: the tiny ones of a golden pack, repeated under new ids."""

from __future__ import annotations

import json
import math
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "helpers"))

from golden_pack import Pack, case_file

from pytest_mlebench.competition import Competition

GROUPS = {  # columns of the answers, beside the ids, whose values must be new in every copy
    "osic-pulmonary-fibrosis-progression": ["Patient"],
    "rsna-2022-cervical-spine-fracture-detection": ["StudyInstanceUID"],
}
NUMBERS = {"number", "unbounded", "probability"}
FLOATS = {"hms-harmful-brain-activity-classification"}  # whose rules do not tell


@dataclass(frozen=True)
class LargeFiles:
    """What a competition is graded with."""

    submission: Path
    private: Path
    answers: Path
    rows: int

    @property
    def size(self) -> int:
        """Return the size of both files."""
        return self.submission.stat().st_size + self.answers.stat().st_size


def make(competition: Competition, folder: Path, rows: int, *, shuffle: bool) -> LargeFiles:
    """Write a submission of *rows* rows or more and its answers below *folder*."""
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as scratch:
        pack = Pack(competition.id)
        private = pack.unpack("private", Path(scratch))
        given = _read(case_file(pack.unpack("cases", Path(scratch)), "noisy-1"))
        copies = math.ceil(rows / len(given))
        (folder / "private").mkdir(parents=True)
        answers = _write_answers(competition, private, folder / "private", copies)
    names = _names(competition, given)
    large = _repeated(given, names, copies)
    _vary(large, competition, random)
    if shuffle:
        large = large.sample(frac=1, random_state=0)
    submission = folder / "submission.csv"
    large.to_csv(submission, index=False)
    return LargeFiles(submission, folder / "private", answers, len(large))


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def _write_answers(competition: Competition, source: Path, target: Path, copies: int) -> Path:
    path = target / competition.answers
    if path.suffix == ".jsonl":
        _write_lines(source / competition.answers, path, copies)
        return path
    for other in source.iterdir():
        if other.name != competition.answers and other.is_file():
            shutil.copy(other, target)
    answers = _read(source / competition.answers)
    groups = dict.fromkeys(GROUPS.get(competition.id, ()), _prefixed)
    _repeated(answers, _names(competition, answers) | groups, copies).to_csv(path, index=False)
    return path


def _write_lines(source: Path, target: Path, copies: int) -> None:
    records = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    with target.open("w", encoding="utf-8") as file:
        for copy in range(copies):
            for record in records:
                name = _prefixed(pd.Series([str(record["example_id"])]), copy)[0]
                file.write(json.dumps(record | {"example_id": name}) + "\n")


Rename = Callable[[pd.Series, int], pd.Series]


def _names(competition: Competition, table: pd.DataFrame) -> dict[str, Rename]:
    """Return for each id column how its values are made new: numbers stay numbers."""
    ids = competition.rules.id
    numbers = {name: pd.to_numeric(table[name], errors="coerce") for name in ids}
    return {
        name: _counted if (values % 1 == 0).all() else _prefixed for name, values in numbers.items()
    }


def _counted(values: pd.Series, copy: int) -> pd.Series:
    numbers = values.astype(np.int64)
    span = int(numbers.max() - numbers.min() + 1) if numbers.max() < 2**50 else 1
    return (numbers + copy * span).astype(str)


def _prefixed(values: pd.Series, copy: int) -> pd.Series:
    return f"{copy:05}" + values


def _repeated(table: pd.DataFrame, names: dict[str, Rename], copies: int) -> pd.DataFrame:
    parts = [
        table.assign(**{name: rename(table[name], copy) for name, rename in names.items()})
        for copy in range(copies)
    ]
    return pd.concat(parts, ignore_index=True)


def _vary(table: pd.DataFrame, competition: Competition, random: np.random.Generator) -> None:
    """Give predicted fractions digits of their own, as those of a model have."""
    rules = competition.rules
    targets = [
        name
        for name in rules.targets
        if (rules.kinds[name] in NUMBERS or competition.id in FLOATS)
        and table[name].str.contains(".", regex=False).any()
    ]
    if not targets:
        return
    values = table[targets].astype(np.float64).to_numpy()
    varied = values * (1 - 1e-3 * random.random(values.shape))
    if rules.row_sum is not None or competition.id in FLOATS:
        varied /= varied.sum(axis=1, keepdims=True)
    table[targets] = varied
