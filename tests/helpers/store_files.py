"""Small competitions and trees to try the store with."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from pytest_mlebench.archives.archive import write_zip
from pytest_mlebench.competition import Competition

TOML = """
title = "A test"
complexity = "custom"
category = "Tabular"
source = "{source}"
answers = "test.csv"
sample = "sample_submission.csv"

[metric]
name = "own"
direction = "higher"

[submission]
id = "id"
targets = ["y"]

[leaderboard]
teams = 10
gold = 0.9
silver = 0.8
bronze = 0.7
median = 0.5
percentiles = [{percentiles}]
"""

PREPARE = """
from __future__ import annotations

import os
from pathlib import Path


def generate(raw: Path) -> None:
    (raw / "train.csv").write_text("id,y\\n" + "".join(f"{i},{i % 2}\\n" for i in range(20)))
    (raw / "images").mkdir()
    for number in range(5):
        (raw / "images" / f"{number}.bin").write_bytes(bytes([number]) * 1000)


def prepare(raw: Path, public: Path, private: Path) -> None:
    header, *rows = (raw / "train.csv").read_text().splitlines()
    (public / "train.csv").write_text("\\n".join([header, *rows[:15]]) + "\\n")
    (private / "test.csv").write_text("\\n".join([header, *rows[15:]]) + "\\n")
    sample = [row.split(",")[0] + ",0" for row in rows[15:]]
    (public / "sample_submission.csv").write_text("\\n".join([header, *sample]) + "\\n")
    (public / "images").mkdir()
    for path in sorted((raw / "images").iterdir()):
        os.link(path, public / "images" / path.name)
"""

MakeCompetition = Callable[..., Competition]


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, but for the marker, which holds a time."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".mlebench.json"
    }


def zipped(competition: Competition, tmp_path: Path) -> bytes:
    """Return the zip that Kaggle would have of a generated competition's raw files."""
    with tempfile.TemporaryDirectory(dir=tmp_path) as scratch:
        raw = Path(scratch) / "raw"
        raw.mkdir()
        competition.generate(raw)
        write_zip(Path(scratch) / "raw.zip", raw)
        return (Path(scratch) / "raw.zip").read_bytes()
