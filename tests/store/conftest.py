"""Small competitions and stores to try the store with."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_mlebench.competition import Competition, read_competition
from pytest_mlebench.preparing import kaggle as client
from pytest_mlebench.preparing.archive import write_zip

from .kaggle_server import KaggleServer

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


@pytest.fixture
def make_competition(tmp_path: Path) -> MakeCompetition:
    """Return a function that writes a competition's folder and reads it."""

    def make(
        name: str = "tiny", *, source: str = "generated", prepare: str = PREPARE, extra: str = ""
    ) -> Competition:
        folder = tmp_path / "competitions" / name
        folder.mkdir(parents=True, exist_ok=True)
        percentiles = ", ".join(str(1 - p / 100) for p in range(101))
        text = TOML.format(source=source, percentiles=percentiles) + extra
        (folder / "competition.toml").write_text(text)
        (folder / "prepare.py").write_text(prepare)
        (folder / "grade.py").write_text("")
        (folder / "description.md").write_text(f"# {name}\n")
        return read_competition(folder)

    return make


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, but for the marker, which holds a time."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".mlebench.json"
    }


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home without any credentials."""
    for name in list(os.environ):
        if name.startswith("KAGGLE_") or name.lower() in ("http_proxy", "no_proxy", "all_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def kaggle(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KaggleServer]:
    """Start a Kaggle that the real client finds, with waits too short to notice."""
    del home
    monkeypatch.setattr(client, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(client, "FIRST_RATE_WAIT", 0.01)
    with KaggleServer() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


def zipped(competition: Competition, tmp_path: Path) -> bytes:
    """Return the zip that Kaggle would have of a generated competition's raw files."""
    with tempfile.TemporaryDirectory(dir=tmp_path) as scratch:
        raw = Path(scratch) / "raw"
        raw.mkdir()
        competition.generate(raw)
        write_zip(Path(scratch) / "raw.zip", raw)
        return (Path(scratch) / "raw.zip").read_bytes()
